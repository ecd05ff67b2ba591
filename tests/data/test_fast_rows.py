"""Rows read from their bytes against the same rows read with care: equal numbers, lines, times and problems."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data import DataError, read_signals
from tocsin.data.delimited import FastRowReader

NUMBERS = ["1", "-2.5", "+3", "1e3", "2.5E-3", ".5", "5.", "-0", "0.1234567890123456789",
           "123456789012345678901234567890", "1e-320", "1e308", "17976931348623157e292", "9007199254740993",
           " 7", "8 ", '"9.25"', '" 1"', "007"]  # fmt: skip
ODD = ["", "NA", "nan", " ", "abc", "1_000", "inf", "1e999", "0x10", "1,5", '"1,5"', "1.5.2", "--1", "+", "1e", "1e+",
       '"a""b"', '"', "é", "-999", "1\t", "1 000"]  # fmt: skip
TIMES = ["2024-02-29 00:00:00", "2024-02-29T23:59", "2024-03-01", "1999-12-31 23:59:59.999999999Z", "1700-01-01",
           "2199-12-31T00:00:00.5+00:00", "1970-01-01 00:00:01", "2000-02-29T12:00Z"]  # fmt: skip
NOT_TIMES = ["", "2023-02-29", "2024-13-01", "2024-01-01 24:00", "2024-01-01 00:60", "2024-1-1",
              "2024-01-01T00:00+02:00", "1600-01-01", "2024-01-01 00:00:60",
              "soon", "2024-01-01 00:00:00.1234567890", "2024/01/01"]  # fmt: skip
LINES = ["", "# a comment", "1,2", "a,b,c,d,e", ",,,", "\t", " "]


def outcome(text, **options):
    """All that comes of a text, as something that can be compared; or the error."""
    try:
        with read_signals(io.BytesIO(text), **options) as signals:
            found = [
                [s.name, s.features, s.times.tolist(), s.lines.tolist(), s.interval, s.values.tobytes(), s.problems]
                for s in signals
            ]
            return found, str(signals.summary), signals.problems
    except DataError as error:
        return str(error)


def both(text, chunk, **options):
    """The outcome, the same in both ways; and how many chunks were plain."""
    plain = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tocsin.data.sources.CHUNK_SIZE", chunk)
        block = FastRowReader.block
        patch.setattr(FastRowReader, "block", lambda self, one: plain.append(block(self, one)) or plain[-1])
        fast = outcome(text, **options)
        patch.setattr(FastRowReader, "block", lambda self, one: None)
        assert fast == outcome(text, **options)
    return fast, sum(one is not None for one in plain)


def mostly(usual, odd):
    return st.integers(0, 15).flatmap(lambda n: st.sampled_from(odd if n == 0 else usual))


ROWS = st.tuples(mostly(TIMES, NOT_TIMES), mostly(["a", "b"], ["", "c d", '"x,y"']), mostly(NUMBERS, ODD),
                 mostly(NUMBERS, ODD)).map(",".join)  # fmt: skip


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 30).flatmap(lambda n: st.sampled_from(LINES) if n == 0 else ROWS), max_size=60),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 400),
    st.sampled_from([{}, {"id": "id"}, {"separate": True}, {"missing": ["abc", "-2.5"]}, {"values": "a"}]),
)
def test_any_rows(lines, end, chunk, options):
    text = end.join(["time,id,a,b", "2024-01-01,a,1,2", *lines])
    both(text.encode(), chunk, **options)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["1,5", "2", "1.234,5", "-0,25", "", "x", "1.5"]), st.integers(1, 28)),
                min_size=5, max_size=60), st.integers(30, 300))  # fmt: skip
def test_decimal_commas_and_days_first(rows, chunk):
    lines = ["when;a;b", "31.12.2023;0,5;1.000,5", *(f"{day:02}.01.2024;{cell};{day},5" for cell, day in rows)]
    both("\n".join(lines).encode("latin-1"), chunk)


@pytest.mark.parametrize("form", ["{0},{1}", '"{0}","{1}"', "{0}, {1} ", "{0},{1}\r"])
def test_usual_files_are_plain(form):
    start = np.datetime64("2024-01-01T00:00")
    lines = [form.format(start + i, f"{i / 7!r}" if i % 5 else "") for i in range(2000)]
    (_, understood, _), plain = both(("time,a\n" + "\n".join(lines)).encode(), 5000)
    assert "every 1 min" in understood
    assert plain > 5


def test_what_is_damaged_is_told_with_its_line():
    lines = [f"2024-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02},{i}" for i in range(5000)]
    lines[4000] = "2024-01-01T01:06:40,broken"
    (((*_, problems),), _, _), plain = both(("time,a\n" + "\n".join(lines) + "\n").encode(), 5000)
    assert [str(problem) for problem in problems] == ["not a number (1): line 4002, column a: 'broken'"]
    assert plain > 20


def test_a_line_of_any_length(monkeypatch):
    monkeypatch.setattr("tocsin.data.sources.CHUNK_SIZE", 64)
    text = "a,b\n1,2\n" + f'3,"{"x" * 300_000}"\n' + "5,6\n" * 100
    with read_signals(io.BytesIO(text.encode()), values="a") as signals:
        assert [signal.values[:, 0].tolist() for signal in signals] == [[1.0, 3.0] + [5.0] * 100]

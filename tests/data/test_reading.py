"""Files into signals: every format, layout and way of writing, when nothing is wrong with them."""

import gzip
import io
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import full
from tests.data.tables import FILES, assert_same, write
from tocsin.data import DataError, read_signals


def read(text, **options):
    source = io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text)
    with read_signals(source, **options) as signals:
        return list(signals)


def read_one(text, **options):
    (signal,) = read(text, **options)
    return signal


START = datetime(2024, 1, 1)
TIMES = [START + timedelta(minutes=5 * i) for i in (0, 1, 2, 5, 4, 4, 6)]
WIDE = {
    "time": TIMES,
    "pressure": [1.5, 2.0, None, 4.25, 5.0, 6.0, -7e-3],
    "flow": [10, 20, 30, None, 50, 60, 70],
    "comment": ["a", "b", None, "c", "d", "e", "f"],
}
LONG = {
    "sensor": ["b", "a", "b", "a", "c", "b", "a"],
    "time": [START + timedelta(hours=i) for i in (0, 0, 1, 2, 0, 2, 3)],
    "value": [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0],
}


@pytest.mark.parametrize("suffix", FILES)
def test_wide(tmp_path, suffix):
    (signal,) = read_signals(write(tmp_path / f"pump.{suffix}", WIDE))
    first = 1 if "csv" not in suffix and "tsv" not in suffix else 2
    assert signal.name == "pump"
    assert signal.features == ("pressure", "flow")
    assert signal.times.dtype == "datetime64[ns]"
    assert np.array_equal(signal.times, np.datetime64(START, "ns") + np.arange(7) * np.timedelta64(5, "m"))
    assert signal.interval == np.timedelta64(5, "m")
    assert signal.lines.tolist() == [first, first + 1, first + 2, 0, first + 4, first + 3, first + 6]
    expected = [[1.5, 10], [2, 20], [np.nan, 30], [np.nan, np.nan], [5, 50], [4.25, np.nan], [-7e-3, 70]]
    assert np.array_equal(signal.values, expected, equal_nan=True)
    assert {problem.kind: problem.count for problem in signal.problems} == {
        "missing value": 2,
        "unsorted": 2,
        "duplicate time": 1,
        "gap": 1,
    }
    assert len(signal) == 7


@pytest.mark.parametrize("suffix", FILES)
def test_wide_and_separate(tmp_path, suffix):
    path = write(tmp_path / f"pump.{suffix}", WIDE)
    (whole,) = read_signals(path)
    pressure, flow = read_signals(path, separate=True)
    assert (pressure.name, flow.name) == ("pressure", "flow")
    assert (pressure.features, flow.features) == (("pressure",), ("flow",))
    for i, part in enumerate((pressure, flow)):
        assert np.array_equal(part.times, whole.times)
        assert np.array_equal(part.values[:, 0], whole.values[:, i], equal_nan=True)
        assert np.array_equal(part.lines, whole.lines)


@pytest.mark.parametrize("suffix", FILES)
def test_long(tmp_path, suffix):
    with read_signals(write(tmp_path / f"all.{suffix}", LONG), id="sensor") as signals:
        assert len(signals) == 3
        assert signals.rows == 7
        assert (signals.columns.time, signals.columns.values, signals.columns.id) == ("time", ("value",), "sensor")
        b, a, c = signals
        assert [signal.name for signal in signals] == ["b", "a", "c"]
    assert np.array_equal(b.values[:, 0], [1, np.nan, 6], equal_nan=True)
    assert np.array_equal(a.values[:, 0], [2, np.nan, 4, 7], equal_nan=True)
    assert (a.times - np.datetime64(START)).astype("timedelta64[h]").astype(int).tolist() == [0, 1, 2, 3]
    assert a.interval == np.timedelta64(1, "h")  # of two steps the lower median
    assert c.interval is None
    assert c.values.tolist() == [[5.0]]


def test_long_with_features_together_and_separate():
    text = "id,t,x,y\na,0,1,2\nb,0,3,4\na,1,5,6\n"
    a, b = read(text, id="id", time="t")
    assert a.values.tolist() == [[1, 2], [5, 6]]
    assert b.values.tolist() == [[3, 4]]
    separate = read(text, id="id", time="t", separate=True)
    assert [signal.name for signal in separate] == ["a/x", "a/y", "b/x", "b/y"]
    assert separate[1].values.tolist() == [[2], [6]]


@pytest.mark.parametrize("suffix", FILES[1:])
@pytest.mark.parametrize(
    ("table", "options"), [full(WIDE, {}), full(WIDE, {"separate": True}), (LONG, {"id": "sensor"})]
)
def test_all_formats_give_the_same(tmp_path, suffix, table, options):
    from_csv = list(read_signals(write(tmp_path / "x.csv", table), **options))
    others = list(read_signals(write(tmp_path / f"x.{suffix}", table), **options))
    off_by = 0 if suffix in ("csv.gz", "tsv") else 1
    for left, right in zip(from_csv, others, strict=True):
        assert_same(left, right, lines_off_by=off_by)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_ways_of_writing_csv(delimiter, newline):
    lines = ["# made by a logger", "", "time,a,b", "2024-01-01,1.5,2", "", "# half-time", '2024-01-02,"3",4', "  "]
    text = newline.join(line.replace(",", delimiter) for line in lines)
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        signal = read_one(content)
        assert signal.features == ("a", "b")
        assert signal.values.tolist() == [[1.5, 2], [3, 4]]
        assert signal.lines.tolist() == [4, 7]


def test_quoted_fields():
    signal = read_one('time,note,"the, value"\n2024-01-01,"two\nlines, ""quoted""",1\n2024-01-02, "x" ,2\n')
    assert signal.features == ("the, value",)
    assert signal.values.tolist() == [[1], [2]]
    assert signal.lines.tolist() == [2, 4]


def test_quoted_fields_across_chunks(monkeypatch):
    monkeypatch.setattr("tocsin.data.sources.CHUNK_SIZE", 30)
    rows = [f'{i},"note {i}\n\n{"x" * i}",{i}.5\n' for i in range(40)]
    signal = read_one("time,note,v\n" + "".join(rows))
    assert signal.values[:, 0].tolist() == [i + 0.5 for i in range(40)]
    assert signal.lines.tolist() == [2 + 3 * i for i in range(40)]
    assert not signal.problems


def test_wide_files_go_in_smaller_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("tocsin.data.sources.CHUNK_SIZE", 100)
    monkeypatch.setattr("tocsin.data.tables.BLOCK_CELLS", 60)
    table = {"time": list(range(50)), **{f"c{i}": [i * 100 + k for k in range(50)] for i in range(20)}}
    for suffix in ("csv", "jsonl", "parquet"):
        with read_signals(write(tmp_path / f"x.{suffix}", table), separate=True, limit=77) as signals:
            assert [signal.name for signal in signals] == [f"c{i}" for i in range(20)]
            assert all(signal.values[:, 0].tolist() == table[signal.name] for signal in signals)


def test_decimal_comma():
    signal = read_one("t;a\n2024-01-01;1,5\n2024-01-02;-2,5e3\n2024-01-03;1.5\n", decimal=",")
    assert np.array_equal(signal.values[:, 0], [1.5, -2500, np.nan], equal_nan=True)
    assert read_one("t;a\n2024-01-01;1.5\n").values.tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("text", "features", "dated"),
    [
        ("1.5,2\n3,4\n", ("1", "2"), False),
        ("1\n2\n", ("1",), False),
        ("2024-01-01,1\n2024-01-02,2\n", ("2",), True),
        ("1700000000,1\n1700000060,2\n", ("2",), True),
        ("31/12/2024 10:00,1\n31/12/2024 10:05,2\n", ("2",), True),
        ("1234567890,1\n1034567890,2\n", ("1", "2"), False),  # a time never falls
        ("a,1\nb,2\n", ("1",), False),  # one word is enough for a header
        ("time,1\n1,2\n", ("1",), True),
    ],
)
def test_without_a_header(text, features, dated):
    signal = read_one(text)
    assert signal.features == features
    assert (signal.times is not None) == dated


def test_the_header_can_be_given():
    assert read_one("1,2\n3,4\n", header=True).features == ("1", "2")
    assert len(read_one("1,2\n3,4\n", header=True)) == 1
    assert read_one("a,b\n3,4\n5,6\n", header=False).features == ("1", "2")


def test_names_of_columns():
    assert read_one(" a ,,a,a\n1,2,3,4\n").features == ("a", "2", "a_2", "a_3")


@pytest.mark.parametrize("name", ["time", "Timestamp", "DATE", "datetime", "ds", " ts "])
def test_a_column_named_like_a_time_is_it(name):
    assert read_one(f"a,{name}\n1,10\n2,20\n").times.tolist() == [10.0, 20.0]


def test_a_column_of_moments_is_the_time():
    signal = read_one("a,when\n1,2024-01-01\n2,\n3,2024-01-02\n")
    assert np.array_equal(signal.times, np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]"))


def test_without_a_time_rows_stay_in_order():
    signal = read_one("a\n3\n1\n1\n")
    assert signal.times is None
    assert signal.interval is None
    assert signal.values[:, 0].tolist() == [3, 1, 1]
    assert read_one("a\n3\n", interval="5min").interval == np.timedelta64(5, "m")


def test_given_columns():
    text = "t1,t2,a,b,text\n2024-01-01,5,1,2,x\n2024-01-02,7,3,4,y\n"
    assert read_one(text, time="t2").times.tolist() == [5, 7]
    assert read_one(text, time="t2", values="a").features == ("a",)
    assert read_one(text, values=["b", "a", "b"]).values.tolist() == [[2, 1], [4, 3]]


def test_what_is_left_out_is_said():
    signals = read_signals(io.StringIO("time,a,comment,later\n1,1,x,\n2,2,y,\n"))
    (problem,) = signals.problems
    assert (problem.kind, problem.severity, problem.count) == ("column left out", "note", 2)
    assert problem.where == ("column comment: text such as 'x'", "column later: empty in the first rows")


def test_zones_are_said():
    signal = read_one("time,a\n2024-01-01T02:00+02:00,1\n2024-01-01T01:00Z,2\n")
    assert signal.times.astype("datetime64[h]").astype(str).tolist() == ["2024-01-01T00", "2024-01-01T01"]
    (problem,) = signal.problems
    assert str(problem) == "zone (1): line 2, column time: '2024-01-01T02:00+02:00'"


def test_a_given_interval_and_longest_gap():
    text = "time,a\n2024-01-01T00:00,1\n2024-01-01T01:00,2\n"
    assert len(read_one(text)) == 2
    assert len(read_one(text, interval="10min")) == 7
    assert len(read_one(text, interval=600)) == 7
    assert len(read_one(text, interval=timedelta(minutes=10), longest_gap=2)) == 4
    assert len(read_one("time,a\n0,1\n3,2\n", interval=1)) == 4


def test_time_format():
    signal = read_one("day,a\n03.04.24,1\n04.04.24,2\n", time="day", time_format="%d.%m.%y")
    assert signal.times[0] == np.datetime64("2024-04-03")


def test_encodings():
    text = "time,Temperatur in °C\n1,20\n2,21\n"
    for encoding in ("utf-8", "latin-1", "utf-16"):
        assert read_one(text.encode(encoding), encoding=encoding).features == ("Temperatur in °C",)


def test_formats_are_told_by_the_content_where_the_suffix_does_not(tmp_path):
    for suffix in ("csv", "jsonl", "parquet", "ndjson.gz"):
        path = write(tmp_path / f"x.{suffix}", LONG)
        renamed = path.rename(tmp_path / f"{suffix.replace('.', '')}-data")
        assert len(read_signals(renamed, id="sensor")) == 3
        with renamed.open("rb") as file:
            assert len(read_signals(file, id="sensor")) == 3
            assert not file.closed
        assert len(read_signals(io.BytesIO(renamed.read_bytes()), id="sensor")) == 3
    assert read_one("2024-01-01,1\n", format="csv").features == ("2",)


def test_a_name_can_be_given():
    assert read_one("1\n").name == "signal"
    assert read_one("1\n", name="pump").name == "pump"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_standard_input(tmp_path, suffix):
    path = write(tmp_path / f"x.{suffix}", LONG)
    script = (
        "from tocsin.data import read_signals\n"
        "for s in read_signals('-', id='sensor'): print(s.name, len(s), s.values[0, 0])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], input=path.read_bytes(), capture_output=True, check=True
    )
    assert done.stdout.decode().split("\n")[:3] == ["b 3 1.0", "a 4 2.0", "c 1 5.0"]


def test_ids_are_texts():
    a, b, c = read(
        '{"i": 1, "v": 2}\n{"i": "NA", "v": 3}\n{"i": 1.5, "v": 4}\n{"i": "1", "v": 5}\n', format="jsonl", id="i"
    )
    assert (a.name, b.name, c.name) == ("1", "NA", "1.5")
    assert a.values[:, 0].tolist() == [2, 5]


CELLS = st.sampled_from(
    ["1.5", "-2", "1e3", "", "NA", "nan", "null", "inf", "-Infinity", "abc", "1_0", "True", " 7 ", "1e999"]
)
NUMBERS = {"1.5": 1.5, "-2": -2.0, "1e3": 1000.0, " 7 ": 7.0}


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=30), st.integers(1, 40))
def test_any_cell_at_any_place(rows, chunk):
    """Against the obvious: a known number or NaN, and every NaN accounted for."""
    text = "time,a,b\n0,1,1\n" + "".join(f"{i + 1},{a},{b}\n" for i, (a, b) in enumerate(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tocsin.data.sources.CHUNK_SIZE", chunk)
        try:
            signal = read_one(text, values=["a", "b"])
        except DataError:
            pytest.fail("there is a number in the first row")
    expected = [[1.0, 1.0]] + [[NUMBERS.get(cell, np.nan) for cell in row] for row in rows]
    assert np.array_equal(signal.values, expected, equal_nan=True)
    counts = {problem.kind: problem.count for problem in signal.problems}
    cells = [cell for row in rows for cell in row]
    assert counts.get("missing value", 0) == sum(cell in ("", "NA", "nan", "null") for cell in cells)
    assert counts.get("infinite value", 0) == sum(cell in ("inf", "-Infinity", "1e999") for cell in cells)
    assert counts.get("not a number", 0) == sum(cell in ("abc", "1_0", "True") for cell in cells)


def test_gzip_without_the_suffix():
    assert read_one(gzip.compress(b"a\n1\n2\n")).values[:, 0].tolist() == [1, 2]


def test_importing_is_light():
    script = "import sys, tocsin.data; print(sorted({'narwhals', 'pyarrow', 'pandas', 'polars'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"

"""Files with something wrong: what can be read is read, what cannot is counted and named, or the error is clear."""

import gzip
import io
import sys

import numpy as np
import pytest

from tests.cases import full
from tests.data.tables import write
from tocsin.data import KINDS, LONGEST_GAP, DataError, merge_problems, read_signals
from tocsin.data.formats import import_pyarrow


def read(text, **options):
    """The one signal and all problems by kind, those of the file and those of the signal."""
    with read_signals(io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text), **options) as signals:
        (signal,) = signals
        problems = merge_problems([*signals.problems, *signal.problems])
    return signal, {problem.kind: problem for problem in problems}


def test_every_kind_of_bad_cell():
    text = "time,a,b\n1,1,2\n2,,NaN\n3,abc,4\n4,inf,5\n5,6,-inf\n6,7,1_000\n"
    signal, problems = read(text)
    nan = np.nan
    expected = [[1, 2], [nan, nan], [nan, 4], [nan, 5], [6, nan], [7, nan]]
    assert np.array_equal(signal.values, expected, equal_nan=True)
    assert problems["missing value"].where == ("line 3, column a", "line 3, column b")
    assert problems["not a number"].where == ("line 4, column a: 'abc'", "line 7, column b: '1_000'")
    assert problems["infinite value"].where == ("line 5, column a: 'inf'", "line 6, column b: '-inf'")
    assert {kind: problem.severity for kind, problem in problems.items()} == {
        "missing value": "note",
        "not a number": "damage",
        "infinite value": "damage",
    }


def test_places_are_bounded_and_counts_are_not():
    _, problems = read("time,a\n" + "".join(f"{i},{'x' if i % 2 else i}\n" for i in range(100)))
    assert problems["not a number"].count == 50
    assert len(problems["not a number"].where) == 5
    assert str(problems["not a number"]).endswith(", ...")


def test_long_cells_are_shortened():
    _, problems = read("a\n1\n" + "x" * 1000 + "\n")
    assert len(problems["not a number"].where[0]) < 70


@pytest.mark.parametrize("bad", ["", "yesterday", "2024-13-01", "9999-01-01"])
def test_rows_with_a_bad_time_are_kept_out(bad):
    signal, problems = read(f"time,a\n2024-01-01,1\n{bad},2\n2024-01-02,3\n")
    assert signal.values[:, 0].tolist() == [1, 3]
    assert problems["bad time"].where == (f"line 3, column time: {bad!r}",)


def test_a_date_that_is_none_once_the_order_is_known():
    signal, problems = read("time,a\n30/01/2024,1\n30/02/2024,2\n31/01/2024,3\n")
    assert signal.values[:, 0].tolist() == [1, 3]
    assert problems["bad time"].where == ("line 3: no such date",)


def test_wrong_numbers_of_fields():
    signal, problems = read("time,a,b\n1,1,1\n2,2\n3,3,3,3\n4,4,4,,\n5,5,5\n")
    assert signal.lines.tolist() == [2, 0, 0, 5, 6]
    assert problems["wrong number of fields"].where == ("line 3: 2 instead of 3", "line 4: 4 instead of 3")


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 20, 50, 10_000])
@pytest.mark.parametrize("place", [0, 3, 200, 399])
def test_a_stray_quote_costs_its_own_line_only(monkeypatch, chunk, place):
    monkeypatch.setattr("tocsin.data.sources.CHUNK_SIZE", chunk)
    rows = [f"{i},{i}\n" for i in range(400)]
    rows[place] = f'{place},"{place}\n'
    signal, problems = read("time,a\n" + "".join(rows))
    assert problems["unclosed quote"].where == (f"line {place + 2}",)
    assert np.count_nonzero(signal.lines) == 399
    assert place + 2 not in signal.lines


def test_two_stray_quotes_do_not_swallow_what_is_between():
    signal, problems = read('time,a\n1,"1\n2,2\n3,"3\n4,4\n5,5\n')
    assert signal.lines.tolist() == [3, 0, 5, 6]
    assert problems["unclosed quote"].where == ("line 2", "line 4")


@pytest.mark.slow
def test_a_quote_behind_megabytes():
    rows = "".join(f"{i},{i}\n" for i in range(60_000))
    signal, problems = read('time,a\n-1,"x\n' + rows)
    assert len(signal) == 60_000
    assert problems["unclosed quote"].where == ("line 2",)


def test_duplicates_and_disorder():
    signal, problems = read("time,a\n2,1\n1,2\n2,3\n3,4\n")
    assert signal.values[:, 0].tolist() == [2, 1, 4]
    assert problems["duplicate time"].where == ("line 4: same time as line 2",)
    assert problems["unsorted"].where == ("line 3: earlier than before",)


def test_one_absurd_time_does_not_eat_the_memory():
    rows = "".join(f"2024-01-01T00:00:{i:02d},{i}\n" for i in range(60))
    signal, problems = read("time,a\n" + rows + "2199-01-01,1\n")
    assert len(signal) == 60 + LONGEST_GAP + 1
    assert problems["gap shortened"].where == (f"after line 61: to {LONGEST_GAP} missing",)


def test_damaged_json_lines():
    lines = ['{"time": 1, "a": 1}', "", "[1, 2]", '{"time": 2, "a"', '{"time": 3, "a": null}', '{"time": 4, "a": true}']
    lines += [
        '{"time": 5, "a": {"b": 1}}',
        '{"time": 6}',
        "[" * 100_000,
        '{"time": 7, "a": 1e999}',
        '{"time": 8, "a": 8}',
    ]
    signal, problems = read("\n".join(lines), format="jsonl")
    assert signal.lines.tolist() == [1, 0, 5, 6, 7, 8, 10, 11]
    assert problems["invalid JSON"].count == 3
    assert problems["invalid JSON"].where[0] == "line 3: expected a JSON object, got '[1, 2]'"
    assert problems["invalid JSON"].where[1].startswith("line 4: Expecting")
    assert problems["missing value"].where == ("line 5, column a", "line 8, column a")
    assert problems["not a number"].where == ("line 6, column a: True", "line 7, column a: {'b': 1}")
    assert problems["infinite value"].where == ("line 10, column a: inf",)


def test_keys_that_come_late_are_said(monkeypatch):
    monkeypatch.setattr("tocsin.data.formats.SAMPLE", 2)
    _, problems = read('{"a": 1}\n{"a": 2}\n{"a": 3, "late": 4}\n{"late": 4}\n', format="jsonl")
    assert problems["column left out"].where == ("column late: not among the keys of the first 2 rows",)


def test_rows_without_an_id():
    with read_signals(io.StringIO("id,a\nx,1\n,2\n  ,3\n"), id="id") as signals:
        assert signals.rows == 1
        (problem,) = signals.problems
    assert str(problem) == "no id (2): line 3; line 4"


def test_problems_go_to_their_signals():
    text = "id,time,a,b\nx,1,1,1\ny,1,,1\nx,2,abc,\ny,bad,1,1\nz,bad,1,1\ny,2,1,inf\n"
    with read_signals(io.StringIO(text), id="id") as signals:
        x, y = signals
        assert [str(problem) for problem in signals.problems] == ["bad time (1): line 6, column time: 'bad'"]
    assert [str(problem) for problem in x.problems] == [
        "missing value (1): line 4, column b",
        "not a number (1): line 4, column a: 'abc'",
    ]
    assert [str(problem) for problem in y.problems] == [
        "bad time (1): line 5, column time: 'bad'",
        "missing value (1): line 3, column a",
        "infinite value (1): line 7, column b: 'inf'",
    ]
    with read_signals(io.StringIO(text), id="id", separate=True) as signals:
        assert {signal.name: [problem.kind for problem in signal.problems] for signal in signals} == {
            "x/a": ["not a number"],
            "x/b": ["missing value"],
            "y/a": ["missing value"],
            "y/b": ["infinite value"],
        }
        assert [problem.count for problem in signals.problems] == [2]


def test_undecodable_bytes():
    signal, problems = read(b"time,a,caf\xe9\n1,1,1\n2,\xff2,2\n3,3,3\n", encoding="utf-8")
    assert signal.features == ("a", "caf\N{REPLACEMENT CHARACTER}")
    assert problems["undecodable text"].where == ("line 1: byte 0xe9", "line 3: byte 0xff")
    assert problems["not a number"].count == 1


CONTENT = ("time,a\n" + "".join(f"{i},{i * 7919 % 1_000_003}\n" for i in range(50_000))).encode()


@pytest.mark.slow
@pytest.mark.parametrize("share", [full(0.1), full(0.5), 0.9, full(0.9999)])
def test_a_truncated_gzip_gives_what_is_there(tmp_path, share):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(CONTENT)
    path.write_bytes(whole[: int(len(whole) * share)])
    with read_signals(path) as signals:
        (problem,) = signals.problems
        (signal,) = signals
    assert problem.kind == "cut short"
    assert problem.severity == "damage"
    assert 0.5 * share < len(signal) / 50_000 <= 1
    assert problem.where == (f"after line {len(signal) + 1}: the rest of the gzip file is damaged or missing",)
    assert np.array_equal(signal.values[:, 0], np.arange(len(signal)) * 7919 % 1_000_003)


def test_a_gzip_damaged_in_the_middle(tmp_path):
    path = tmp_path / "x.csv.gz"
    whole = bytearray(gzip.compress(CONTENT))
    whole[len(whole) // 2 : len(whole) // 2 + 200] = b"\xff" * 200
    path.write_bytes(whole)
    with read_signals(path) as signals:
        assert "cut short" in [problem.kind for problem in signals.problems]
        assert signals.rows > 10_000


def files_that_cannot_be_read(folder):
    table = {"time": [1, 2], "a": [1.0, 2.0]}
    parquet = write(folder / "good.parquet", table).read_bytes()
    contents = {
        "empty.csv": b"",
        "empty.csv.gz": gzip.compress(b""),
        "mark.csv": b"\xef\xbb\xbf",
        "mark.jsonl": b"\xef\xbb\xbf",
        "blank.csv": b"\n\n# nothing\n",
        "header.csv": b"time,a\n",
        "texts.csv": b"time,a\n1,x\n2,y\n",
        "times.csv": b"time\n1\n2\n",
        "missing.csv": b"time,a\n1,\n2,\n",
        "untimely.csv": b"time,a\nfoo,1\nbar,2\n",
        "binary.csv": b"PK\x03\x04\x00\x00\x00\x01",
        "plain.csv.gz": b"a,b\n1,2\n",
        "stub.csv.gz": gzip.compress(CONTENT)[:8],
        "words.jsonl": b"hello\n[1]\n",
        "empty.jsonl": b"",
        "text.parquet": b"time,a\n1,2\n",
        "empty.parquet": b"",
        "cut.parquet": parquet[: len(parquet) // 2],
        "headless.parquet": parquet[100:],
        "stub.parquet.gz": gzip.compress(parquet)[:-20],
        "quote.csv": b'"time,a\n1,2\n',
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    write(folder / "rowless.parquet", {"time": [], "a": []})
    (folder / "folder.csv").mkdir()
    return [*contents, "rowless.parquet", "folder.csv", "nowhere.csv", "no/where.csv", "null\0.csv"]


def test_files_that_cannot_be_read_are_named(tmp_path):
    for name in files_that_cannot_be_read(tmp_path):
        with pytest.raises(DataError) as caught:
            read_signals(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name)), name
        assert len(str(caught.value)) > len(str(tmp_path / name)) + 5


def test_a_parquet_file_damaged_within(tmp_path):
    path = write(tmp_path / "x.parquet", {"time": list(range(20_000)), "a": [i * 0.37 for i in range(20_000)]})
    whole = bytearray(path.read_bytes())
    whole[500:40_000] = bytes(39_500)
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"x\.parquet is damaged"):
        read_signals(path)


def test_nothing_usable_says_what_was_found():
    with pytest.raises(DataError, match=r"no observation could be read from 'a'. Found: not a number \(2\): line 2"):
        read("time,a\n1,x\n2,y\n", values="a")
    with pytest.raises(DataError, match="the open file has no numeric column besides 'time'; its columns: 'time', 'a'"):
        read("time,a\n1,x\n2,y\n")


def test_wrong_columns():
    text = "time,pressure,flow\n1,2,3\n"
    wrong = (
        r"no column 'presure' \(given as `values`\); did you mean 'pressure'\? its columns: 'time', 'pressure', 'flow'"
    )
    with pytest.raises(DataError, match=wrong):
        read(text, values=["flow", "presure"])
    with pytest.raises(DataError, match=r"no column 'when' \(given as `time`\); its columns: 'time'"):
        read(text, time="when")
    with pytest.raises(DataError, match=r"did you mean 'pressure'"):
        read(text, id="PRESSURE")
    with pytest.raises(ValueError, match="values must not include the time or id column, got 'time'"):
        read(text, time="time", values=["time"])
    with pytest.raises(ValueError, match="values must name at least one column"):
        read(text, values=[])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format must be one of 'csv', 'tsv', 'jsonl', 'parquet', 'excel', got 'xml'"),
        ({"delimiter": "::"}, "delimiter must be one character"),
        ({"decimal": "x"}, "decimal must be one of"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"interval": "soon"}, "expected a duration such as"),
        ({"longest_gap": -1}, "longest_gap must be an integer >= 0"),
        ({"limit": 0}, "limit must be an integer >= 1"),
        ({"encoding": "utf-16"}, "cannot be read as utf-16"),
        ({"interval": "5min"}, "interval must be a number, because the times are numbers"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        read(b"time,a\n1,2\n", **options)


def test_a_problem_in_laying_out_names_the_signal():
    text = "id,time,a\n" + "".join(f"x,{i * 10**7},1\n" for i in range(5000))
    with (
        read_signals(io.StringIO(text), id="id", interval=1) as signals,
        pytest.raises(DataError, match="signal 'x': "),
    ):
        list(signals)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'tocsin\[parquet\]'"):
        import_pyarrow()


def test_every_kind_has_a_severity():
    assert set(KINDS.values()) == {"note", "damage"}
    assert [kind for kind, severity in KINDS.items() if severity == "note"] == [
        "missing value", "sentinel", "gap", "zone", "column left out",
    ]  # fmt: skip

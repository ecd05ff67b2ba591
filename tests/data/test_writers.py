"""Results out and back in, and old results that are never lost."""

import gzip
import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data import DataError, check_writable, format_times, open_writer, read_signals

SUFFIXES = ("csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "ndjson", "parquet", "pq")
TIMES = np.datetime64("2024-01-01", "ns") + np.arange(4) * np.timedelta64(90, "s")
TABLE = {
    "time": TIMES,
    "id": ["a", "größer, als", "a", 'say "hi"'],
    "value": np.array([1.5, np.nan, -1e-300, 0.1 + 0.2]),
    "count": np.array([1, 2, 3, 2**40]),
    "alarm": np.array([True, False, False, True]),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    with open_writer(path) as writer:
        writer.write({name: column[:1] for name, column in TABLE.items()})
        writer.write({name: column[1:] for name, column in TABLE.items()})
        assert not path.exists()
    (signal,) = read_signals(path, values=["value", "count"])
    assert np.array_equal(signal.times, TIMES)
    assert np.array_equal(signal.values, np.column_stack([TABLE["value"], TABLE["count"]]), equal_nan=True)
    assert [s.name for s in read_signals(path, id="id")] == ["a", "größer, als", 'say "hi"']
    assert os.listdir(tmp_path) == [path.name]


def test_csv_as_it_stands(tmp_path):
    with open_writer(tmp_path / "x.csv") as writer:
        writer.write(TABLE)
    assert (tmp_path / "x.csv").read_text().splitlines() == [
        "time,id,value,count,alarm",
        "2024-01-01T00:00:00,a,1.5,1,true",
        '2024-01-01T00:01:30,"größer, als",,2,false',
        "2024-01-01T00:03:00,a,-1e-300,3,false",
        '2024-01-01T00:04:30,"say ""hi""",0.30000000000000004,1099511627776,true',
    ]


def test_json_lines_as_they_stand(tmp_path):
    with open_writer(tmp_path / "x.jsonl.gz") as writer:
        writer.write(TABLE)
        writer.write({**TABLE, "value": [np.inf, -np.inf, np.nan, 1.0]})
    rows = [json.loads(line) for line in gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()).splitlines()]
    assert rows[1] == {"time": "2024-01-01T00:01:30", "id": "größer, als", "value": None, "count": 2, "alarm": False}
    assert [row["value"] for row in rows[4:]] == [None, None, None, 1.0]


def test_parquet_has_types(tmp_path):
    with open_writer(tmp_path / "x.parquet") as writer:
        writer.write(TABLE)
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert [str(field.type) for field in schema] == ["timestamp[ns]", "string", "double", "int64", "bool"]
    assert pq.read_table(tmp_path / "x.parquet").column("value").null_count == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_times_and_texts(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    with open_writer(path) as writer:
        writer.write({"end": np.array(["2024-01-01", "NaT"], dtype="datetime64[ns]"), "note": ["x", None], "v": [1, 2]})
    (signal,) = read_signals(path, time="end")
    assert len(signal) == 1
    assert [problem.kind for problem in signal.problems] == ["bad time"]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_times_have_the_digits_they_need(stamps, unit):
    times = (np.array(stamps) // unit * unit).astype("datetime64[ns]")
    texts = format_times(times)
    assert np.array_equal(np.array(texts, dtype="datetime64[ns]"), times)
    assert max(map(len, texts)) <= {1: 29, 10**3: 26, 10**6: 23, 10**9: 19}[unit]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_error_leaves_the_old_result_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    with open_writer(path) as writer:
        writer.write(TABLE)
    path.chmod(0o600)
    before = path.read_bytes()

    def fail():
        with open_writer(path) as writer:
            writer.write({"other": np.arange(5)})
            raise KeyError("half-way")

    with pytest.raises(KeyError, match="half-way"):
        fail()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    with open_writer(path) as writer:
        writer.write({"other": np.arange(5)})
    assert path.read_bytes() != before
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_written_is_an_empty_file(tmp_path, suffix):
    with open_writer(tmp_path / f"x.{suffix}"):
        pass
    assert (tmp_path / f"x.{suffix}").exists()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_chunks_must_fit_together(tmp_path, suffix):
    with open_writer(tmp_path / f"x.{suffix}") as writer:
        writer.write({"a": [1, 2], "b": ["x", "y"]})
        with pytest.raises(
            ValueError, match=r"columns must match those of the first chunk, \('a', 'b'\), got \('b', 'a'\)"
        ):
            writer.write({"b": ["x"], "a": [1]})
        with pytest.raises(ValueError, match=r"columns must be one-dimensional and of equal length, got .*\(3,\)"):
            writer.write({"a": [1, 2, 3], "b": ["x", "y"]})
        with pytest.raises(ValueError, match="columns must be one-dimensional"):
            writer.write({"a": np.zeros((2, 2)), "b": np.zeros((2, 2))})
        writer.write({"a": [3], "b": ["z"]})
    (signal,) = read_signals(tmp_path / f"x.{suffix}")
    assert signal.values[:, 0].tolist() == [1, 2, 3]


def test_parquet_chunks_of_other_types(tmp_path):
    with open_writer(tmp_path / "x.parquet") as writer:
        writer.write({"a": [1.0, 2.0]})
        with pytest.raises(ValueError, match="columns must have the types of the first chunk"):
            writer.write({"a": ["x", "y"]})


def test_the_format_can_be_given(tmp_path):
    with open_writer(tmp_path / "result", "jsonl") as writer:
        writer.write({"a": [1]})
    assert (tmp_path / "result").read_text() == '{"a": 1}\n'


def test_paths_are_checked_before_the_work(tmp_path):
    assert check_writable(tmp_path / "x.csv") == tmp_path / "x.csv"
    (tmp_path / "folder.csv").mkdir()
    for name, message in {
        "x.xlsx": "workbooks can only be read",
        "x.doc": r"x\.doc has no suffix of a known format: \.csv, \.tsv, \.tab, \.jsonl, \.ndjson, \.parquet",
        "x": "has no suffix",
        "x.gz": "has no suffix",
        "x.parquet.gz": r"omit \.gz",
        "no/x.csv": "there is no folder",
        "folder.csv": "it exists and is not a file",
    }.items():
        with pytest.raises(DataError, match=message):
            check_writable(tmp_path / name)
    with pytest.raises(ValueError, match="format must be one of"):
        check_writable(tmp_path / "x.csv", "xml")


def test_no_permission(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(DataError, match="no permission"):
        check_writable(tmp_path / "x.csv")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "x.csv"
    target.write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    with open_writer(link) as writer:
        writer.write({"a": [1]})
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"

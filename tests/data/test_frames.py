"""Frames of every kind give what files give, and get results of their own kind."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.cases import full
from tests.data.tables import FRAMES, assert_same, write
from tests.data.test_reading import LONG, WIDE
from tocsin.data import DataError, frame_like, read_signals, signals_from_frame

every_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
WITHOUT_COMMENT = {name: column for name, column in WIDE.items() if name != "comment"}


@pytest.mark.slow
@every_frame
@pytest.mark.parametrize(
    ("table", "options"),
    [full(WIDE, {}), full(WIDE, {"separate": True}), full(WIDE, {"values": "flow"}), (LONG, {"id": "sensor"})],
)
def test_frames_equal_files(tmp_path, make, table, options):
    for suffix in ("csv", "parquet"):
        files = list(read_signals(write(tmp_path / f"signal.{suffix}", table), **options))
        frames = list(signals_from_frame(make(table), **options))
        for left, right in zip(files, frames, strict=True):
            assert_same(left, right, lines_off_by=int(suffix == "csv"))


@every_frame
def test_times_as_texts_and_numbers(make):
    (texts,) = signals_from_frame(make({"when": ["2024-01-01", "2024-01-02", None], "a": [1, 2, 3]}))
    assert np.array_equal(texts.times, np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]"))
    assert [problem.kind for problem in texts.problems] == ["bad time"]
    assert texts.problems[0].where == ("row 3, column when: None",)
    (unix,) = signals_from_frame(make({"ts": [1700000000000000001, 1700000000000000003], "a": [1, 2]}))
    assert unix.times.astype(np.int64).tolist() == [1700000000000000001, 1700000000000000003]
    (numbers,) = signals_from_frame(make({"ts": [1, 2], "a": [1, 2]}))
    assert numbers.times.tolist() == [1.0, 2.0]


@every_frame
def test_times_with_a_zone_are_utc(make):
    berlin = ZoneInfo("Europe/Berlin")
    times = [datetime(2024, 7, 1, hour, tzinfo=berlin) for hour in (2, 3)]
    (signal,) = signals_from_frame(make({"time": times, "a": [1.0, 2.0]}))
    assert signal.times.astype("datetime64[h]").astype(str).tolist() == ["2024-07-01T00", "2024-07-01T01"]


@every_frame
def test_dates(make):
    (signal,) = signals_from_frame(
        make({"date": [date(2024, 1, 1), date(2024, 1, 3), date(2024, 1, 2)], "a": [1, 2, 3]})
    )
    assert signal.interval == np.timedelta64(1, "D")
    assert signal.values[:, 0].tolist() == [1, 3, 2]


def test_the_index_of_pandas_may_be_the_time():
    index = pd.date_range("2024-01-01", periods=3, freq="h", tz=UTC)
    (signal,) = signals_from_frame(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index))
    assert signal.interval == np.timedelta64(1, "h")
    frame = pd.DataFrame({"a": [1.0], "time": [5]}, index=index[:1].rename("when"))
    (signal,) = signals_from_frame(frame, time="when", values="a")
    assert signal.times[0] == np.datetime64("2024-01-01")
    (signal,) = signals_from_frame(pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]))
    assert signal.times is None


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]", "object"])
def test_missing_numbers_of_every_kind_of_pandas(kind):
    column = pd.Series([1, None, 3], dtype=kind)
    (signal,) = signals_from_frame(pd.DataFrame({"a": column}), values="a")
    assert np.array_equal(signal.values[:, 0], [1, np.nan, 3], equal_nan=True)
    assert [str(problem) for problem in signal.problems] == ["missing value (1): row 2, column a"]


@every_frame
def test_what_is_not_a_number(make):
    signals = signals_from_frame(make({"a": [1.0, float("inf"), 2.0], "b": [True, False, True], "c": ["x", "1", "y"]}))
    assert [problem.where for problem in signals.problems] == [
        ("column b: text such as True", "column c: text such as 'x'")
    ]
    (signal,) = signals
    assert [str(problem) for problem in signal.problems] == ["infinite value (1): row 2, column a: inf"]


@every_frame
def test_frames_that_cannot_be_read(make):
    with pytest.raises(DataError, match="the frame has no column 'b'"):
        signals_from_frame(make({"a": [1.0]}), values="b")
    with pytest.raises(DataError, match="the frame has no rows"):
        signals_from_frame(make({"a": []}))
    with pytest.raises(DataError, match="the frame has no columns"):
        signals_from_frame(make({}))


@pytest.mark.parametrize(
    "frame", [None, [1, 2], pl.LazyFrame({"a": [1]}), np.zeros(3)], ids=lambda frame: type(frame).__name__
)
def test_what_is_no_frame(frame):
    with pytest.raises(TypeError, match="frame must be an eager frame"):
        signals_from_frame(frame)
    with pytest.raises(TypeError, match="frame must be an eager frame"):
        frame_like(frame, {"a": [1]})


@every_frame
def test_results_come_back_in_the_same_kind(make):
    frame = make({"a": [1.0]})
    times = np.datetime64("2024-01-01", "ns") + np.arange(3) * np.timedelta64(1, "h")
    columns = {
        "time": times,
        "id": ["x", "y", "z"],
        "p": np.array([0.5, np.nan, 1.0]),
        "alarm": np.array([True, False, True]),
    }
    result = frame_like(frame, columns)
    assert type(result) is type(frame)
    (signal,) = signals_from_frame(result, values="p")
    assert np.array_equal(signal.times, times)
    assert np.array_equal(signal.values[:, 0], columns["p"], equal_nan=True)
    as_arrow = (
        result if isinstance(result, pa.Table) else result.to_arrow() if make is pl.DataFrame else pa.table(result)
    )
    assert as_arrow.column("id").to_pylist() == ["x", "y", "z"]
    assert as_arrow.column("alarm").to_pylist() == [True, False, True]


@every_frame
def test_large_frames_go_in_blocks(make, monkeypatch):
    monkeypatch.setattr("tocsin.data.tables.BLOCK", 7)
    start = datetime(2024, 1, 1)
    table = {
        "time": [start + timedelta(minutes=i) for i in range(100)],
        "id": [f"s{i % 3}" for i in range(100)],
        "a": [float(i) for i in range(100)],
    }
    signals = list(signals_from_frame(make(table), id="id", interval="3min"))
    assert [signal.lines.tolist() for signal in signals] == [list(range(1 + k, 101, 3)) for k in range(3)]

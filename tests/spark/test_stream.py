"""Streams on Spark: the numbers of a detector for each signal, whatever the triggers."""

import numpy as np
import pandas as pd
import pytest

import tocsin.spark
from tests.spark.files import write_file, write_files
from tests.spark.helpers import QUICK, assert_incidents, assert_verdicts, collect, make_signals, on_one_machine
from tocsin.data import DataError

SCHEMA = "id string, time timestamp, value double"


def read_stream(spark, folder):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(spark, tmp_path, **settings):
    """Let a query take what is there; returns all that it has written, also in runs before."""
    watched = tocsin.spark.watch(read_stream(spark, tmp_path / "in"), **settings)
    query = (
        watched.rows.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    return tocsin.spark.Findings(spark.read.parquet(str(tmp_path / "out")))


def test_two_hundred_signals_split_over_triggers_have_the_numbers_of_one_machine(spark, tmp_path):
    frame = make_signals(200, 620, seed=10)
    write_files(frame, tmp_path / "in", 3)
    # A stream does not guess the interval, without which nobody knows when an incident may have begun.
    settings = {**QUICK, "interval": "5min"}
    found = run(spark, tmp_path, **settings)
    verdicts, incidents = on_one_machine(frame, **settings)
    collected = collect(found.verdicts)
    assert set(collected["status"]) == {"scored"}
    assert_verdicts(collected, verdicts)
    rows = collect(found.incidents)
    # Of an incident that went on over a trigger there are several rows, and the newest holds.
    newest = rows.sort_values(["open", "alarms"], ascending=[False, True]).groupby(["signal", "start"]).tail(1)
    assert_incidents(newest, incidents)


def test_late_repeated_and_nameless_observations_across_restarts(spark, tmp_path):
    frame = make_signals(1, 40, seed=11)
    write_file(frame.iloc[:20], tmp_path / "in", 0)
    run(spark, tmp_path, **QUICK)
    late = frame.iloc[[5]].assign(value=77.0)  # seen before, but not the newest: nobody knows
    newest_again = frame.iloc[[19]].assign(value=78.0)
    twice = frame.iloc[[25]].assign(value=79.0)
    nameless = frame.iloc[[30]].assign(id=None)
    timeless = frame.iloc[[31]].assign(time=pd.NaT)
    write_file(pd.concat([frame.iloc[20:], late, newest_again, twice, nameless, timeless]), tmp_path / "in", 1)
    found = run(spark, tmp_path, **QUICK)
    collected = collect(found.verdicts)
    odd = collected[collected["status"] != "scored"].set_index("value")
    assert odd["status"].to_dict() == {77.0: "late", 78.0: "duplicate", 79.0: "duplicate"}
    assert odd["p"].isna().all()
    assert odd["alarm"].isna().all()
    assert_verdicts(collected[collected["status"] == "scored"], on_one_machine(frame, **QUICK)[0])
    problems = collect(found.problems)
    assert set(zip(problems["signal"], problems["problem"], strict=True)) == {
        (None, "no id"), ("signal 0", "bad time"),
    }  # fmt: skip


def test_with_an_interval_what_was_left_out_counts_as_missing(spark, tmp_path):
    frame = make_signals(1, 60, seed=12).drop(index=[10, 11, 30])
    settings = {**QUICK, "interval": "5min"}
    write_file(frame.iloc[:29], tmp_path / "in", 0)  # the second gap is between the two files
    write_file(frame.iloc[29:], tmp_path / "in", 1)
    collected = collect(run(spark, tmp_path, **settings).verdicts)
    ((name, columns),) = on_one_machine(frame, **settings)[0].items()
    came = np.isin(columns["time"], frame["time"].dt.tz_localize(None).to_numpy("datetime64[ns]"))
    assert came.sum() == len(came) - 3
    assert_verdicts(collected, {name: {column: numbers[came] for column, numbers in columns.items()}})


def test_a_state_of_other_settings_is_refused(spark, tmp_path):
    frame = make_signals(1, 30, seed=13)
    write_file(frame.iloc[:20], tmp_path / "in", 0)
    run(spark, tmp_path, **QUICK)
    write_file(frame.iloc[20:], tmp_path / "in", 1)
    with pytest.raises(Exception, match="settings of the fleet, got gap"):
        run(spark, tmp_path, **QUICK, gap=3)


def test_a_signal_that_was_gone_for_too_long_begins_anew(spark, tmp_path):
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    frame = make_signals(1, 30, seed=14)
    write_file(frame.iloc[:20], tmp_path / "in", 0)
    run(spark, tmp_path, **QUICK, ttl="1s")
    write_file(frame.iloc[20:], tmp_path / "in", 1)  # starting the next run takes longer than a second
    collected = collect(run(spark, tmp_path, **QUICK, ttl="1s").verdicts)
    expected = {name: columns["p"] for name, columns in on_one_machine(frame.iloc[20:], **QUICK)[0].items()}
    (p,) = expected.values()
    assert np.array_equal(collected.sort_values("time")["p"].iloc[20:].to_numpy(np.float64), p, equal_nan=True)


def test_what_cannot_be_watched_is_refused_at_once(spark, tmp_path):
    (tmp_path / "in").mkdir()
    stream = read_stream(spark, tmp_path / "in")
    with pytest.raises(DataError, match="no column 'x'"):
        tocsin.spark.watch(stream, values="x")
    with pytest.raises(ValueError, match="alarm_rate='1/day' is a budget over time"):
        tocsin.spark.watch(stream, alarm_rate="1/day")
    provider = "spark.sql.streaming.stateStore.providerClass"
    known = spark.conf.get(provider)
    try:
        spark.conf.unset(provider)
        with pytest.raises(ValueError, match="providerClass must be RocksDB's"):
            tocsin.spark.watch(stream)
    finally:
        spark.conf.set(provider, known)

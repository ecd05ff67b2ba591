"""Histories on Spark: the numbers of one machine, and what becomes of bad data."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

import tocsin.spark
from tests.spark.helpers import QUICK, assert_incidents, assert_verdicts, collect, make_signals, on_one_machine
from tocsin.data import DataError
from tocsin.forecasting import LastValue


def too_short(found):
    """The notes about signals that are too short to be judged."""
    return found.problems.where("level = 'note' AND problem = 'too short'")


def test_two_hundred_signals_have_the_numbers_of_one_machine(spark):
    frame = make_signals(200, 620)
    shuffled = frame.sample(frac=1, random_state=1)
    found = tocsin.spark.detect(spark.createDataFrame(shuffled), **QUICK)
    rows = found.rows.persist()
    verdicts, incidents = on_one_machine(frame, **QUICK)
    assert_verdicts(collect(tocsin.spark.Findings(rows).verdicts), verdicts)
    assert_incidents(collect(tocsin.spark.Findings(rows).incidents), incidents)
    problems = collect(tocsin.spark.Findings(rows).problems)
    assert set(problems["problem"]) == {"missing value"}
    assert problems["count"].sum() == frame["value"].isna().sum()
    rows.unpersist()


def test_several_features_and_the_default_forecaster(spark):
    frame = make_signals(4, 150, seed=2, features=2)
    found = tocsin.spark.detect(spark.createDataFrame(frame))
    verdicts, _ = on_one_machine(frame)
    collected = collect(found.verdicts)
    assert_verdicts(collected, verdicts)
    assert {"value v0", "p v1"} <= set(collected.columns)
    assert not len(collect(too_short(found)))
    short = tocsin.spark.detect(spark.createDataFrame(frame.groupby("id").head(60)))
    assert set(collect(too_short(short))["signal"]) == set(verdicts)


def test_whole_signals_are_not_shuffled(spark):
    frame = make_signals(6, 120, seed=3)
    table = spark.createDataFrame(frame).repartition(3, "id")
    found = tocsin.spark.detect(table.persist(), whole=True, **QUICK)
    plan = found.rows._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan.split("InMemoryTableScan", 1)[0]
    assert_verdicts(collect(found.verdicts), on_one_machine(frame, **QUICK)[0])


def test_times_that_are_numbers_and_times_without_a_zone(spark):
    frame = make_signals(2, 60, seed=4)
    numbered = frame.assign(time=frame.groupby("id").cumcount() * 2.5)
    found = tocsin.spark.detect(spark.createDataFrame(numbered), **QUICK)
    assert_verdicts(collect(found.verdicts), on_one_machine(numbered, **QUICK)[0])
    # An hour that is there twice in the zone of the session lies in these times.
    local = frame.assign(time=frame["time"].dt.tz_localize(None))
    table = spark.createDataFrame(frame).selectExpr(
        "id", "timestampadd(SECOND, cast(unix_seconds(time) - 1792843200 as int), "
        "TIMESTAMP_NTZ '2026-10-24 12:00:00') as time", "value",
    )  # fmt: skip
    collected = collect(tocsin.spark.detect(table, **QUICK).verdicts)
    assert_verdicts(collected, on_one_machine(local, **QUICK)[0])


def test_each_kind_of_trouble_has_its_rule(spark):
    frame = make_signals(2, 60, seed=5)
    first = frame[frame["id"] == "signal 0"]
    same_time = first.iloc[[10]].assign(value=1e6)  # larger than the one that is there, which stands
    gone = first.drop(first.index[20:23])
    infinite = frame[frame["id"] == "signal 1"].reset_index(drop=True)
    infinite.loc[7, "value"] = np.inf
    nameless = first.iloc[:3].assign(id=None)
    timeless = first.iloc[:2].assign(time=pd.NaT)
    table = pd.concat([gone, same_time, infinite, nameless, timeless]).sample(frac=1, random_state=0)
    found = tocsin.spark.detect(spark.createDataFrame(table), **QUICK)
    good = pd.concat([gone, infinite])
    assert_verdicts(collect(found.verdicts), on_one_machine(good, **QUICK)[0])
    problems = collect(found.problems)
    counts = problems.groupby([problems["signal"].fillna("none"), "problem"])["count"].sum().to_dict()
    assert counts[("none", "no id")] == 3
    assert counts[("signal 0", "bad time")] == 2
    assert counts[("signal 0", "duplicate time")] == 1
    assert counts[("signal 0", "gap")] == 1
    assert counts[("signal 1", "infinite value")] == 1
    assert ("signal 0", "unsorted") not in counts  # a shuffle knows no order that could be wrong


def test_in_a_whole_layout_the_first_of_equal_times_stands(spark):
    first = make_signals(1, 40, seed=6)
    later = first.iloc[[10]].assign(value=-1e6)
    table = spark.createDataFrame(pd.concat([first, later])).coalesce(1)
    found = tocsin.spark.detect(table, whole=True, **QUICK)
    assert_verdicts(collect(found.verdicts), on_one_machine(first, **QUICK)[0])
    assert {"unsorted", "duplicate time"} <= set(collect(found.problems)["problem"])


def test_one_bad_signal_does_not_fail_the_others(spark):
    frame = make_signals(2, 60, seed=7)
    # A budget over time needs an interval, and a signal with a single observation has none.
    lonely = frame.iloc[[0]].assign(id="lonely")
    settings = {**QUICK, "alarm_rate": "1/day"}
    found = tocsin.spark.detect(spark.createDataFrame(pd.concat([frame, lonely])), **settings)
    assert set(collect(found.verdicts)["signal"]) == {"signal 0", "signal 1"}
    (error,) = collect(found.problems.where("level = 'error'")).itertuples()
    assert (error.signal, error.problem) == ("lonely", "not judged")
    assert "interval" in error.text


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ("id string, time timestamp, value string", {}, "no numeric column besides 'id' and 'time'"),
        ("id string, time timestamp, value string", {"values": "value"}, "value column 'value' must be numeric"),
        ("id string, time string, value double", {}, "time column 'time' must hold timestamps, dates or numbers"),
        ("id double, time timestamp, value double", {}, "id column 'id' must hold texts or whole numbers, got double"),
        ("id string, time timestamp, value double", {"id": "name"}, "no column 'name' .given as id."),
        ("id string, time timestamp, value double", {"values": "time"}, "values must not include the time or id"),
        ("id string, time timestamp, value double", {"values": []}, "values must name at least one column"),
        ("id string, time timestamp, value double", {"time": "id"}, "id and time must be different columns"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_are_named_at_once(spark, columns, arguments, message):
    with pytest.raises(DataError, match=message):
        tocsin.spark.detect(spark.createDataFrame([], columns), **arguments)


def test_settings_are_checked_at_once_and_must_travel(spark):
    table = spark.createDataFrame([], "id string, time timestamp, value double")
    with pytest.raises(TypeError, match="forecaster must be given by name"):
        tocsin.spark.detect(table, forecaster=LastValue())
    with pytest.raises(TypeError, match="interval must be a text, a number"):
        tocsin.spark.detect(table, interval=timedelta(seconds=1))
    numbered = spark.createDataFrame([], "id string, time double, value double")
    with pytest.raises(ValueError, match="interval must be a number, because the times are numbers, got '5min'"):
        tocsin.spark.detect(numbered, interval="5min")
    with pytest.raises(ValueError, match="promise must be one of"):
        tocsin.spark.detect(table, promise="everything")
    with pytest.raises(ValueError, match="alarm_rate"):
        tocsin.spark.detect(table, alarm_rate="1/fortnight")

"""`tocsin spark-detect`: a back-fill in parts that can be gone on with."""

import numpy as np
import pandas as pd
import pytest

import tocsin.spark.backfill
from tests.cli.calling import invoke
from tests.spark.helpers import QUICK, assert_incidents, assert_verdicts, collect, make_signals, on_one_machine
from tocsin.data import DataError
from tocsin.spark.backfill import BackFill


def write_input(frame, folder, *, whole):
    folder.mkdir()
    frame = frame.astype({"time": "datetime64[us, UTC]"})
    thirds = np.arange(len(frame)) * 3 // len(frame)
    if whole:
        thirds = frame["id"].factorize()[0] % 3
    for number in range(3):
        frame[thirds == number].to_parquet(folder / f"{number}.parquet", index=False)


@pytest.fixture
def frame():
    return make_signals(9, 560, seed=30)


def back_fill(tmp_path, **more):
    settings = more.pop("settings", QUICK)
    return BackFill(str(tmp_path / "in"), str(tmp_path / "out"), "id", "time", None, settings, **more)


@pytest.mark.parametrize("whole", [True, False])
def test_both_layouts_are_found_and_give_the_numbers_of_one_machine(spark, tmp_path, frame, whole):
    write_input(frame, tmp_path / "in", whole=whole)
    told = []
    totals = back_fill(tmp_path, parts=2).run(spark, told.append)
    verdicts, incidents = on_one_machine(frame, **QUICK)
    count = sum(map(len, incidents.values()))
    assert (totals.signals, totals.verdicts, totals.incidents, totals.errors) == (9, len(frame), count, 0)
    assert ("whole in their files" if whole else "to be shuffled") in told[0]
    for name, compare, expected in (
        ("verdicts", assert_verdicts, verdicts), ("incidents", assert_incidents, incidents),
    ):  # fmt: skip
        compare(collect(spark.read.parquet(str(tmp_path / "out" / name))), expected)


def test_what_is_done_is_not_done_again(spark, tmp_path, frame, monkeypatch):
    write_input(frame, tmp_path / "in", whole=False)
    done = []
    detect = tocsin.spark.backfill.detect

    def interrupted(*arguments, **more):
        done.append(1)
        if len(done) == 4:  # the first call only checks
            raise KeyboardInterrupt
        return detect(*arguments, **more)

    monkeypatch.setattr(tocsin.spark.backfill, "detect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        back_fill(tmp_path, parts=4).run(spark, str)
    monkeypatch.undo()
    told = []
    totals = back_fill(tmp_path, parts=4).run(spark, told.append)
    assert totals.skipped == 2
    assert told[1:] == [f"part {n} of 4: already done" for n in (1, 2)] + [f"part {n} of 4: done" for n in (3, 4)]
    assert_verdicts(collect(spark.read.parquet(str(tmp_path / "out" / "verdicts"))), on_one_machine(frame, **QUICK)[0])
    assert back_fill(tmp_path, parts=4).run(spark, told.append).skipped == 4
    for change, message in (
        ({"parts": 5}, "begun with parts=4, got 5"), ({"settings": {**QUICK, "gap": 3}}, "begun with gap=None, got 3"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            back_fill(tmp_path, **{"parts": 4, **change}).run(spark, told.append)


def test_files_that_spark_would_split_stay_whole(spark, tmp_path):
    frame = make_signals(1, 3000, seed=31)
    (tmp_path / "in").mkdir()
    frame.astype({"time": "datetime64[us, UTC]"}).to_parquet(tmp_path / "in" / "0.parquet", row_group_size=300)
    known = spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        spark.conf.set("spark.sql.files.maxPartitionBytes", "10000")
        assert spark.read.parquet(str(tmp_path / "in")).rdd.getNumPartitions() > 1
        back_fill(tmp_path).run(spark, str)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", known)
        spark.conf.unset("spark.sql.files.openCostInBytes")
    assert_verdicts(collect(spark.read.parquet(str(tmp_path / "out" / "verdicts"))), on_one_machine(frame, **QUICK)[0])


def test_the_command(spark, tmp_path, frame):
    lonely = frame.iloc[[0]].assign(id="lonely")
    write_input(pd.concat([frame, lonely]), tmp_path / "in", whole=False)
    arguments = ["spark-detect", tmp_path / "in", tmp_path / "out", "--forecaster", "last-value", "--views", "error"]
    result = invoke(*arguments, "--alarm-rate", "3/day")
    assert result.exit_code == 1, result.output  # one signal could not be judged
    assert "10 signals" in result.stdout
    assert f"not judged: 1 signals; {tmp_path}/out/problems says why" in result.stdout.replace("\n", "")
    problems = collect(spark.read.parquet(str(tmp_path / "out" / "problems")).where("level = 'error'"))
    assert problems["signal"].tolist() == ["lonely"]
    result = invoke(*arguments, "--alarm-rate", "3/day", "--value", "velocity")
    assert result.exit_code == 1
    assert "no column 'velocity' (given as values)" in result.stderr

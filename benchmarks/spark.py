"""Tocsin on Apache Spark beside processes on the same cores, what a signal costs, and what a trigger costs.

    python benchmarks/spark.py

In the environment of `make test-spark`, on `local[2]`. First the same Parquet files, 1,000 signals of 2,000
observations, ten in each file, go through `tocsin.spark.detect` and through as many local processes, verdicts written
to Parquet by both; the default forecaster. Then 1,000 to 10,000 signals of only 100 observations each with the cheapest
forecaster, so that what shows is the cost of a signal on its way, whole in their files and shuffled. Last a stream of
200 signals with full contexts: what a trigger costs that brings one observation of one signal, one of each and a
hundred of each. Spark's session and workers are started, and compiled code is loaded, before anything is timed; local
processes start within their time, a few seconds, as they do for every run. All of it takes about eight minutes on two
quiet cores.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tocsin.spark
from tocsin.data import open_writer, read_signals
from tocsin.detection import detect_signals
from tocsin.spark.backfill import keep_files_whole
from tocsin.spark.plan import Clock, SparkPlan
from tocsin.spark.step import Step
from tocsin.spark.stream import PROVIDER, ROCKSDB

OF_A_FILE = 10
SHORT = 100
CHEAPEST = {"forecaster": "last-value", "views": "error"}
STREAMED = 200
WARM = 1100
START = np.datetime64("2026-01-01", "us")


def make_values(count, length, seed=0):
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * (np.arange(length) / 96 + rng.random((count, 1)))
    return 3 * np.sin(phase) + rng.standard_normal((count, length))


def write_file(path, values, first=0, number=0):
    """Observations of signals, from the time `first` on; the age of the file says when a stream takes it."""
    count, length = values.shape
    names = np.repeat([f"signal {signal}" for signal in range(number, number + count)], length)
    times = np.tile(START + (first + np.arange(length)) * np.timedelta64(60, "s"), count)
    table = {"id": names.tolist(), "time": pa.array(times).cast(pa.timestamp("us", "UTC")), "value": values.ravel()}
    parquet.write_table(pa.table(table), path)


def write_folder(folder, count, length):
    folder.mkdir()
    for first in range(0, count, OF_A_FILE):
        values = make_values(min(OF_A_FILE, count - first), length, seed=first)
        write_file(folder / f"{first:06}.parquet", values, number=first)
    return folder


def make_session(cores):
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(4 * cores),
        PROVIDER: ROCKSDB,
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def on_spark(spark, folder, out, *, whole, **settings):
    """Seconds for all verdicts of a folder."""
    keep_files_whole(spark, [str(folder)])
    started = time.perf_counter()
    found = tocsin.spark.detect(spark.read.parquet(str(folder)), whole=whole, **settings)
    found.rows.write.mode("overwrite").parquet(str(out))
    return time.perf_counter() - started


def on_processes(folder, out, cores, **settings):
    """Seconds for the same on local processes."""

    def signals():
        for file in sorted(folder.glob("*.parquet")):
            with read_signals(file, id="id") as found:
                yield from found

    started = time.perf_counter()
    with open_writer(out) as writer:
        for result in detect_signals(signals(), settings, sink=lambda _, columns: writer.write(columns), jobs=cores):
            if result.error is not None:
                raise RuntimeError(result.error)
    return time.perf_counter() - started


def state_bytes():
    """The state of a signal that has seen more than its window, as it is kept."""
    step = Step(SparkPlan(("value",), Clock.NUMBERS, {}))
    return len(step.take("signal", np.arange(2500.0), make_values(1, 2500).T, None).state)


def triggers(spark, folder):
    """Seconds of the triggers of a stream, by what each brought."""
    brought = {"warm-up": WARM, "one of each": 1, "one of each, again": 1, "100 of each": 100, "one of one": 1}
    values = make_values(STREAMED, sum(brought.values()), seed=1)
    (folder / "in").mkdir(parents=True)
    first = 0
    for number, (what, length) in enumerate(brought.items()):
        some = values[: 1 if what == "one of one" else STREAMED, first : first + length]
        path = folder / "in" / f"{number}.parquet"
        write_file(path, some, first)
        os.utime(path, (1_600_000_000 + number,) * 2)
        first += length
    schema = "id string, time timestamp, value double"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = tocsin.spark.watch(stream).rows.writeStream.format("parquet").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "out"))
    query.awaitTermination()
    took = [one.durationMs["triggerExecution"] / 1000 for one in query.recentProgress if one.numInputRows]
    return dict(zip(brought, took, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--length", type=int, default=2000, help="observations of each")
    parser.add_argument("--most", type=int, default=10_000, help="how many signals the cost of a signal is followed to")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    screen = Console(width=110)
    spark = make_session(given.cores)
    with tempfile.TemporaryDirectory(prefix="tocsin-spark-") as name:
        folder = Path(name)
        few = write_folder(folder / "few", 4 * OF_A_FILE, SHORT)
        for settings in ({}, CHEAPEST):
            on_spark(spark, few, folder / "out", whole=True, **settings)
        many = write_folder(folder / "many", given.signals, given.length)
        total = given.signals * given.length
        spark_per_s = total / on_spark(spark, many, folder / "out", whole=True)
        local_per_s = total / on_processes(many, folder / "local.parquet", given.cores)
        table = Table("observations a second", f"on {given.cores} cores", box=SIMPLE_HEAD)
        table.add_row("Spark", f"{spark_per_s:,.0f}")
        table.add_row("processes", f"{local_per_s:,.0f}")
        screen.print(table)

        table = Table(f"signals of {SHORT}", "whole, ms a signal", "shuffled, ms a signal", box=SIMPLE_HEAD)
        for count in sorted({given.most // 10, given.most // 3, given.most}):
            source = write_folder(folder / f"growing-{count}", count, SHORT)
            took = [on_spark(spark, source, folder / "out", whole=whole, **CHEAPEST) for whole in (True, False)]
            table.add_row(f"{count:,}", *(f"{1000 * seconds / count:.2f}" for seconds in took))
        screen.print(table)

        took = triggers(spark, folder / "stream")
        empty = took["one of one"]
        table = Table("a trigger that brings", "seconds", "ms a signal", box=SIMPLE_HEAD)
        for what, seconds in took.items():
            each = "" if what == "one of one" else f"{1000 * (seconds - empty) / STREAMED:.1f}"
            table.add_row(f"{what} ({STREAMED} signals)" if each else what, f"{seconds:.2f}", each)
        screen.print(table)
        more = took["100 of each"] - min(took["one of each"], took["one of each, again"])
        screen.print(f"ms for 1,000 observations more in a trigger: {1e6 * more / (99 * STREAMED):.0f}")
        print(f"spark_per_s={spark_per_s:.0f} local_per_s={local_per_s:.0f} state_bytes={state_bytes()}")
    spark.stop()


if __name__ == "__main__":
    main()

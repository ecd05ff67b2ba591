"""A query that is killed in the middle of a batch goes on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import tocsin.spark
from tests.spark.files import write_files
from tests.spark.helpers import QUICK, assert_verdicts, collect, make_signals, on_one_machine

PATIENCE = 240


def start(folder):
    command = [sys.executable, "-m", "tests.spark.job", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wait_for_a_batch(folder, process, number):
    """Until this batch has begun and is not done."""
    offsets, commits = folder / "checkpoint" / "offsets", folder / "checkpoint" / "commits"
    until = time.monotonic() + PATIENCE
    while not (offsets / str(number)).exists():
        assert process.poll() is None, "the query ended before it was killed"
        assert time.monotonic() < until, "the query did not get so far"
        time.sleep(0.02)
    assert not (commits / str(number)).exists()


def test_a_killed_query_gives_every_verdict_once(spark, tmp_path):
    frame = make_signals(40, 400, seed=20)
    write_files(frame, tmp_path / "in", 5)
    process = start(tmp_path)
    machine = int(process.stdout.readline())
    wait_for_a_batch(tmp_path, process, 2)
    time.sleep(0.4)  # into its work
    assert not (tmp_path / "checkpoint" / "commits" / "2").exists()
    os.kill(machine, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    process = start(tmp_path)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    found = tocsin.spark.Findings(spark.read.parquet(str(tmp_path / "out")))
    assert_verdicts(collect(found.verdicts), on_one_machine(frame, **QUICK)[0])

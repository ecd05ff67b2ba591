"""Many signals within bounded memory: on disk or not, the rows are the same."""

import gc
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import assert_same
from tocsin.data import open_writer, read_signals
from tocsin.data.assembly import Spool


@given(
    blocks=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=20), min_size=1, max_size=8),
    limit=st.integers(1, 60),
    features=st.integers(1, 3),
    timed=st.booleans(),
)
def test_against_plain_lists(blocks, limit, features, timed):
    spool = Spool(features, np.int64 if timed else None, limit)
    expected = {code: [] for code in range(8)}
    line = 0
    for block in blocks:
        lines = np.arange(line, line + len(block))
        line += len(block)
        values = lines[:, np.newaxis] * 10.0 + np.arange(features)
        spool.add(np.array(block), lines * 3 if timed else None, lines, values)
        for code, number in zip(block, lines.tolist(), strict=True):
            expected[code].append(number)
    for code in (*reversed(expected), *expected):
        rows = spool.rows(code)
        assert rows["line"].tolist() == expected[code]
        assert rows["values"].tolist() == [[number * 10 + i for i in range(features)] for number in expected[code]]
        if timed:
            assert rows["time"].tolist() == [number * 3 for number in expected[code]]
    counts = np.zeros(8, dtype=int)
    counts[: len(spool.counts)] = spool.counts
    assert counts.tolist() == [len(lines) for lines in expected.values()]
    spool.close()


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory):
    """1,500 signals, eight rows each in turn, with holes."""
    path = tmp_path_factory.mktemp("spool") / "interleaved.parquet"
    rng = np.random.default_rng(0)
    with open_writer(path) as writer:
        for hour in range(8):
            ids = rng.permutation(1500)
            writer.write({
                "sensor": [f"s{i}" for i in ids],
                "time": np.full(1500, np.datetime64("2024-01-01", "ns") + np.timedelta64(hour, "h")),
                "value": np.where(rng.random(1500) < 0.1, np.nan, ids + hour / 10),
                "other": rng.normal(size=1500),
            })  # fmt: skip
    return path


@pytest.mark.slow
def test_interleaved_signals_on_disk_equal_those_in_memory(interleaved):
    with (
        read_signals(interleaved, id="sensor", limit=900) as on_disk,
        read_signals(interleaved, id="sensor") as in_memory,
    ):
        assert len(on_disk) == len(in_memory) == 1500
        assert on_disk.rows == in_memory.rows == 12_000
        for left, right in zip(on_disk, in_memory, strict=True):
            assert_same(left, right)
            assert left.problems == right.problems
            number = int(left.name[1:])
            seen = ~np.isnan(left.values[:, 0])
            assert np.array_equal(left.values[seen, 0], number + np.arange(8)[seen] / 10)


@pytest.mark.slow
def test_the_temporary_file_goes_away(interleaved, monkeypatch):
    import tempfile

    files = []
    create = tempfile.TemporaryFile

    def remember(*arguments, **options):
        files.append(create(*arguments, **options))
        return files[-1]

    monkeypatch.setattr("tempfile.TemporaryFile", remember)
    with read_signals(interleaved, id="sensor", limit=900) as signals:
        first = next(iter(signals))
        assert [file.closed for file in files] == [False]
    assert files[0].closed
    assert len(first) == 8
    assert len(signals) == 1500
    with pytest.raises(ValueError, match="these signals are closed"):
        next(iter(signals))
    forgotten = read_signals(interleaved, id="sensor", limit=900)
    assert not files[1].closed
    del forgotten
    gc.collect()
    assert files[1].closed
    in_memory = read_signals(interleaved, id="sensor")
    assert len(files) == 2
    in_memory.close()


def peak_memory(path, options):
    """The most memory (MiB) that Python's allocations took while reading and iterating, and the rows seen."""
    script = (
        "import tracemalloc, numpy\n"
        "from tocsin.data import read_signals\n"
        f"read_signals({str(path)!r}, **{options!r}).close()\n"  # what is imported and compiled for it is no data
        "tracemalloc.start()\n"
        f"with read_signals({str(path)!r}, **{options!r}) as signals:\n"
        "    rows = sum(len(signal) for signal in signals)\n"
        "print(rows, tracemalloc.get_traced_memory()[1] / 2**20)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    rows, peak = done.stdout.split()
    return int(rows), float(peak)


@pytest.mark.full
def test_memory_is_bounded(tmp_path):
    """300,000 rows of a long CSV: the file, let alone its cells as texts, is never held."""
    path = tmp_path / "long.csv"
    with open_writer(path) as writer:
        for k in range(30):
            writer.write({
                "sensor": [f"sensor-{i % 500}" for i in range(10_000)],
                "time": np.arange(10_000) // 500 + 20 * k,
                "value": np.sin(np.arange(10_000) + k),
            })  # fmt: skip
    rows, peak = peak_memory(path, {"id": "sensor", "limit": 20_000})
    assert rows == 300_000
    assert peak < 25  # a few chunks as texts and cells take most of it

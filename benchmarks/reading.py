"""How long 1,000,000 rows of CSV take to read, beside polars, and how much memory that needs.

python benchmarks/reading.py [--rows N]

Both read a column of times and three of numbers, in turn, several times; the fastest of each counts. polars is taken at
its best: it reads the times as text and parses them by a given form, which is far faster than letting it find out.
Ours finds out, and puts the signal together: in order, without duplicates, with the gaps made explicit.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

FORM = "%Y-%m-%d %H:%M:%S"
HEADER = "time,temperature,pressure,flow"


def write(path: Path, rows: int, digits: int) -> None:
    """A file of one signal; the numbers have so many digits behind the point (all there are, if that is 17)."""
    rng = np.random.default_rng(0)
    start = np.datetime64("2024-01-01T00:00:00")
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{HEADER}\n")
        for first in range(0, rows, 100_000):
            count = min(100_000, rows - first)
            times = np.datetime_as_string(start + np.arange(first, first + count))
            values = rng.normal(20, 3, (count, 3)).round(digits).tolist()
            file.writelines(f"{t.replace('T', ' ')},{a},{b},{c}\n" for t, (a, b, c) in zip(times, values, strict=True))


def ours(path: Path) -> int:
    from tocsin.data import read_signals

    with read_signals(path) as signals:
        (signal,) = signals
    return len(signal)


def polars(path: Path) -> int:
    import polars as pl

    frame = pl.read_csv(path).with_columns(pl.col("time").str.to_datetime(FORM))
    return len(frame.drop_nulls())


def polars_guessing(path: Path) -> int:
    import polars as pl

    return len(pl.read_csv(path, try_parse_dates=True).drop_nulls())


READERS = {"polars, form given": polars, "polars, form found": polars_guessing, "tocsin": ours}


def fastest(readers: dict[str, Callable[[Path], int]], path: Path, rows: int, times: int = 5) -> dict[str, float]:
    """Seconds of each, the fastest of several; in turn, so that a busy machine is busy for all."""
    best = dict.fromkeys(readers, np.inf)
    for _ in range(times):
        for name, read in readers.items():
            start = time.perf_counter()
            if read(path) != rows:
                raise RuntimeError(f"{name} did not read {rows} rows")
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def memory(name: str, path: Path) -> float:
    """The most memory in MB that a process needs that does nothing but read the file."""
    done = subprocess.run([sys.executable, __file__, "--memory", name, str(path)], capture_output=True, check=True)
    return float(done.stdout)


def tables(rows: int) -> Iterator[float]:
    for digits, title in ((3, "3 digits behind the point"), (17, "all digits of a double")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "signal.csv"
            write(path, rows, digits)
            ours(path)  # compiles, once and for all
            best = fastest(READERS, path, rows)
            print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, {title}")
            print(f"{'':20} {'seconds':>8} {'rows/s':>12} {'MB of memory':>13}")
            for name, seconds in best.items():
                print(f"{name:20} {seconds:8.2f} {rows / seconds:12,.0f} {memory(name, path):13.0f}")
            print()
            yield best["tocsin"] / best["polars, form given"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        READERS[arguments.memory[0]](Path(arguments.memory[1]))
        status = Path("/proc/self/status").read_text(encoding="ascii")
        print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
        return
    few, all_digits = tables(arguments.rows)
    print(f"with all digits: csv_ratio_long={all_digits:.2f}")
    print(f"csv_ratio={few:.2f}")


if __name__ == "__main__":
    main()

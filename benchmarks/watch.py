"""How many lines a second `tocsin watch` takes on one core, from the first verdict to the last.

Lines are CSV with a time and a value. Beside the rate by the clock stands that by the processor's time, which other
work on the machine does not lower. The last line printed says `last_value_per_s=... default_per_s=...`, by the clock.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WAYS = {"last_value": ["--forecaster", "last-value"], "default": []}


def lines_of(count: int) -> str:
    """So many lines of one-minute data with a daily period, noise and some faults."""
    rng = np.random.default_rng(0)
    values = 20 + 3 * np.sin(2 * np.pi * np.arange(count) / 1440) + rng.normal(size=count)
    values[::997] += 8
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(count) * np.timedelta64(60, "s")
    rows = (f"{time},{value:.4f}\n" for time, value in zip(times, values.tolist(), strict=True))
    return "time,value\n" + "".join(rows)


def rate(options: list[str], file: Path) -> tuple[float, float]:
    """Verdicts a second after the first, with everything on one core: by the clock, and by the processor's time."""
    one_core = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    core = min(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "tocsin", "watch", *options]
    with file.open("rb") as source:
        watching = subprocess.Popen(
            command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **one_core},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )  # fmt: skip
        assert watching.stdout is not None
        watching.stdout.readline()
        began, worked, count = time.perf_counter(), processor_seconds(watching.pid), 0
        for _ in watching.stdout:
            count += 1
        seconds = time.perf_counter() - began
        _, _, used = os.wait4(watching.pid, 0)
    return count / seconds, count / (used.ru_utime + used.ru_stime - worked)


def processor_seconds(process: int) -> float:
    """How long a process has worked so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure both, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=50_000)
    lines = parser.parse_args().lines
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.csv"
        file.write_text(lines_of(lines))
        for name, options in WAYS.items():
            found[name], alone = rate(options, file)
            print(f"{name}: {found[name]:,.0f} lines a second, {alone:,.0f} a second of the processor's time")
    print(" ".join(f"{name}_per_s={value:.0f}" for name, value in found.items()))


if __name__ == "__main__":
    main()

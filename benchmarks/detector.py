"""What the default detector and the light preset cost: time for each observation, saved size and memory.

    python benchmarks/detector.py

One signal is given as a history (`Detector.run`) and one observation at a time (`Detector.update`, as a stream would),
many signals one observation of each at a time (`Fleet.update`, as a service would); all are warmed up. Each figure is
the best of several rounds: on a shared machine the best is what the code can do. Then the size of a saved detector, the
memory that a signal takes at most, and how long the first detection takes where nothing is compiled yet: a new process,
from its start to its end, with 1,500 observations.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin.detection import Detector, DetectorSettings, Fleet
from tocsin.detection.state.memory import memory_bytes

DETECTORS = {"default": {}, "light preset": {"preset": "light"}}
# A detector is timed after so many observations, and saved then too. The first detection of a process has fewer.
WARM_UP, FIRST = 3000, 1500
# The embedded network reads a context again after so many observations, at most: what is timed must be cycles of them.
CYCLE = 128


def best(rounds, work):
    """The shortest time that `work` took on one of its rounds."""
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - started)
    return min(times)


def signals(count, length, seed=0):
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / 96 + rng.random(count))
    return 3 * np.sin(phase) + rng.standard_normal((length, count))


def one_signal(settings, rounds):
    """Seconds per observation as a history and one by one, and the bytes of a saved detector."""
    values = signals(1, WARM_UP + 3 * rounds * CYCLE)[:, 0]
    detector = Detector(**settings)
    detector.run(values[:WARM_UP])
    size = len(detector.to_bytes())
    histories = values[WARM_UP : WARM_UP + 2 * rounds * CYCLE].reshape(rounds, -1)
    singles = values[WARM_UP + 2 * rounds * CYCLE :].reshape(rounds, -1).tolist()
    history = best(rounds, lambda number: detector.run(histories[number])) / histories.shape[1]
    one_by_one = best(rounds, lambda number: [detector.update(value) for value in singles[number]]) / CYCLE
    return history, one_by_one, size


def many_signals(settings, count, rounds, threads):
    """Seconds per observation of one of many signals.

    What the signals have been makes no difference to the time, so all continue from what one of them was.
    """
    values = signals(count, WARM_UP + rounds * CYCLE)
    fleet = Fleet(count, threads=threads, **settings)
    fleet.run_arrays(values[:WARM_UP, :1], rows=[0])
    warm = fleet.signal_state(0)
    for row in range(1, count):
        fleet.put(row, warm)
    cycles = values[WARM_UP:].reshape(rounds, CYCLE, count)
    return best(rounds, lambda number: [fleet.update(row) for row in cycles[number]]) / (CYCLE * count)


def first_detection():
    """Seconds of a process that detects for the first time, where nothing is compiled yet."""
    work = f"""
import numpy as np
from tocsin import Detector
Detector().run(np.random.default_rng(0).normal(size={FIRST}))
"""
    with tempfile.TemporaryDirectory(prefix="tocsin-numba-") as folder:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", work], check=True, env={**os.environ, "NUMBA_CACHE_DIR": folder})
        return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=64, help="how many are judged together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = Table(box=SIMPLE_HEAD, title="µs per observation, and kB of a signal")
    headings = ("detector", "history", "one by one", f"{given.signals} signals together", "saved", "memory")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "detector" else "right")
    results = {}
    for name, settings in DETECTORS.items():
        history, one_by_one, size = one_signal(settings, given.rounds)
        together = many_signals(settings, given.signals, given.rounds, given.threads)
        memory = memory_bytes(DetectorSettings(**settings))
        results[name] = [1e6 * history, 1e6 * one_by_one, 1e6 * together, size / 1000, memory / 1000]
        table.add_row(name, *(f"{number:,.1f}" for number in results[name]))
    Console(width=120, highlight=False).print(table)
    history, one_by_one, together, size, memory = results["default"]
    light, light_one_by_one, light_together, light_size, _ = results["light preset"]
    print(
        f"history_us={history:.1f} one_by_one_us={one_by_one:.1f} together_us={together:.1f} state_kb={size:.1f} "
        f"memory_kb={memory:.1f} light_us={light:.1f} light_one_by_one_us={light_one_by_one:.1f} "
        f"light_together_us={light_together:.1f} light_kb={light_size:.1f} first_s={first_detection():.1f}"
    )


if __name__ == "__main__":
    main()

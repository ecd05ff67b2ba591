"""Observations per second end to end, for one signal and for many, and what a detector costs beside its forecaster.

    python benchmarks/detector.py

One signal is given one observation at a time (`update`, as a stream would) and as a history (`run`); many signals one
observation of each at a time (`Fleet.update`, as a service would). All with the default views, warmed up, and in the
last row the light preset with its own. The cost of scoring is the time of the whole less that of the forecaster alone,
per observation of a signal. Then 64 signals end to end with the default detector; of real data where `--tsb` names a
folder of files with a column `Data`. Each figure is the best of several rounds: on a shared machine the best is what
the code can do. Last, the size of a saved detector, and how long the first detection takes where nothing is compiled
yet: a new process, from its start to its end, with 1,500 observations.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tocsin.detection import Detector, DetectorSettings, Fleet

DEFAULT, LIGHT = DetectorSettings().forecaster_name, "light preset"
FORECASTERS = ("last-value", "exponential-smoothing", "seasonal-naive", "autoregression", "embedded")
DETECTORS = {**{name: {"forecaster": name} for name in FORECASTERS}, LIGHT: {"preset": "light"}}
WARM_UP = 2500
# A saved detector has seen so many observations, and the first detection of a process so many.
SAVED, FIRST = 3000, 1500
# The embedded network reads a context again after so many observations, at most: what is timed must be cycles of them.
CYCLE = 128
TICKS = {"embedded": CYCLE}
FEW_TICKS = 20
END_TO_END = 64


def best(rounds, work):
    """The shortest time that `work` took."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def signals(count, length, seed=0):
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / 96 + rng.random(count))
    return 3 * np.sin(phase) + rng.standard_normal((length, count))


def real_signals(folder, count, length):
    """Stretches of the files, spread evenly over all that are long enough; they overlap where there are few."""
    files = [np.genfromtxt(path, delimiter=",", names=True)["Data"] for path in sorted(folder.glob("*.csv"))]
    places = [(values, first) for values in files for first in range(values.size - length + 1)]
    if len(places) < count:
        raise ValueError(f"{folder} must hold at least {count} stretches of {length} observations, got {len(places)}")
    chosen = np.linspace(0, len(places) - 1, count).astype(int)
    return np.column_stack([values[first : first + length] for values, first in (places[k] for k in chosen)])


def forecasts_of(settings, count):
    """The forecaster of a detector alone, for so many signals, with as many steps as the detector has it forecast."""
    made = DetectorSettings(**settings)
    return made.chosen_forecaster.open(count, made.steps)


def one_signal(settings, rounds):
    """Seconds per observation: streamed, as a history, and of the forecaster alone in both ways."""
    values = signals(1, WARM_UP + 4 * CYCLE)[:, 0]
    detector = Detector(**settings)
    detector.run(values[:WARM_UP])
    session = forecasts_of(settings, 1)
    session.run(values[:WARM_UP, np.newaxis])
    part = values[WARM_UP:]
    column = part[:, np.newaxis]
    listed = part.tolist()
    streamed = best(rounds, lambda: [detector.update(value) for value in listed])
    history = best(rounds, lambda: detector.run(part))
    pushed = best(rounds, lambda: [session.push(row) for row in column])
    run = best(rounds, lambda: session.run(column))
    return [seconds / part.size for seconds in (streamed, history, pushed, run)]


def many_signals(settings, values, rounds, threads):
    """Seconds per observation of one of many signals, and of the forecaster alone.

    What the signals have been makes no difference to the time, so all go on from what one of them was.
    """
    name = DetectorSettings(**settings).forecaster_name
    ticks, count = TICKS.get(name, FEW_TICKS), values.shape[1]
    session = forecasts_of(settings, count)
    session.run(values[:WARM_UP], wanted=np.zeros((WARM_UP, count), dtype=np.bool_))
    fleet = Fleet(count, threads=threads, **settings)
    fleet.run(values[:WARM_UP, :1], rows=[0])
    warm = fleet.signal_state(0)
    for row in range(1, count):
        fleet.put(row, warm)
    following = values[WARM_UP : WARM_UP + ticks]
    whole = best(rounds, lambda: [fleet.update(row) for row in following])
    forecast = best(rounds, lambda: [session.push(row) for row in following])
    return whole / (ticks * count), forecast / (ticks * count)


def end_to_end(values, rounds):
    """Seconds per observation of one of these signals with the default detector; each round takes the next cycle."""
    count = values.shape[1]
    fleet = Fleet(count)
    fleet.run(values[:WARM_UP])
    cycles = iter(values[WARM_UP:].reshape(rounds, CYCLE, count))
    return best(rounds, lambda: [fleet.update(row) for row in next(cycles)]) / (CYCLE * count)


def state_kb(settings):
    """The size of a saved detector."""
    detector = Detector(**settings)
    detector.run(signals(1, SAVED)[:, 0])
    return len(detector.to_bytes()) / 1000


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
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tsb", type=Path, metavar="DIR", help="real signals: CSV files with a column Data")
    given = parser.parse_args()
    if given.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    length = WARM_UP + given.rounds * CYCLE
    sources = {"synthetic": signals(END_TO_END, length)}
    if given.tsb is not None:
        try:
            sources[f"real, from {given.tsb}"] = real_signals(given.tsb, END_TO_END, length)
        except (OSError, ValueError) as error:
            parser.error(str(error))
    table = Table(box=SIMPLE_HEAD, title="observations per second (and µs per observation beside the forecaster)")
    headings = ("forecaster", "one signal, streamed", "one signal, history", f"{given.signals} signals together")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "forecaster" else "right")
    results = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        many = signals(given.signals, WARM_UP + CYCLE)
        for name, settings in bar.track(DETECTORS.items(), description="detectors"):
            streamed, history, pushed, run = one_signal(settings, given.rounds)
            together, forecast = many_signals(settings, many, given.rounds, given.threads)
            results[name] = (streamed, history, streamed - pushed, history - run, together)
            if name == LIGHT:
                table.add_section()
            table.add_row(
                name,
                f"{1 / streamed:,.0f} ({(streamed - pushed) * 1e6:.1f})",
                f"{1 / history:,.0f} ({(history - run) * 1e6:.1f})",
                f"{1 / together:,.0f} ({(together - forecast) * 1e6:.1f})",
            )
        timed = bar.track(sources.items(), description="end to end")
        per_s = {source: 1 / end_to_end(values, given.rounds) for source, values in timed}
    screen = Console(width=120, highlight=False)
    screen.print(table)
    table = Table(box=SIMPLE_HEAD, title=f"{END_TO_END} signals together, {DEFAULT}, end to end, one core")
    table.add_column("signals")
    table.add_column("observations per second", justify="right")
    for source, figure in per_s.items():
        table.add_row(source, f"{figure:,.0f}")
    screen.print(table)
    streamed, _, around, scoring, together = results[DEFAULT]
    *_, figure = per_s.values()  # of real signals, where there are some
    print(
        f"scoring_us={scoring * 1e6:.1f} stream_us={around * 1e6:.1f} state_kb={state_kb({}):.1f} "
        f"first_s={first_detection():.1f} light_per_s={1 / results[LIGHT][1]:.0f} "
        f"light_kb={state_kb(DETECTORS[LIGHT]):.1f} obs_per_s_1={1 / streamed:.0f} "
        f"obs_per_s_{given.signals}={1 / together:.0f} end_to_end_per_s={figure:.0f}"
    )


if __name__ == "__main__":
    main()

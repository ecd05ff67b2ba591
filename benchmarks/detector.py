"""Observations per second end to end, for one signal and for many, and what scoring costs beside the forecaster.

    python benchmarks/detector.py

One signal is given one observation at a time (`update`, as a stream would) and as a history (`run`); many signals one
observation of each at a time (`Fleet.update`, as a service would). All with 15 horizons and a window of 2,000, warmed
up. The cost of scoring is the time of the whole less that of the forecaster alone, per observation of a signal.
Each figure is the best of several rounds: on a shared machine the best is what the code can do.
"""

import argparse
import time

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tocsin.detection import Detector, Fleet
from tocsin.forecasting import make_forecaster

FORECASTERS = ("last-value", "exponential-smoothing", "seasonal-naive", "autoregression")
DEFAULT = "autoregression"
HORIZONS = 15
WARM_UP = 2500


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


def one_signal(name, rounds, **settings):
    """Seconds per observation: streamed, as a history, and of the forecaster alone in both ways."""
    values = signals(1, WARM_UP + 2000)[:, 0]
    detector = Detector(forecaster=name, **settings)
    detector.run(values[:WARM_UP])
    session = make_forecaster(name).open(1, HORIZONS)
    session.run(values[:WARM_UP, np.newaxis])
    part = values[WARM_UP : WARM_UP + 500]
    column = part[:, np.newaxis]
    listed = part.tolist()
    streamed = best(rounds, lambda: [detector.update(value) for value in listed])
    history = best(rounds, lambda: detector.run(part))
    pushed = best(rounds, lambda: [session.push(row) for row in column])
    run = best(rounds, lambda: session.run(column))
    return [seconds / part.size for seconds in (streamed, history, pushed, run)]


def many_signals(name, count, rounds, threads):
    """Seconds per observation of one of many signals, and of the forecaster alone."""
    values = signals(count, WARM_UP + 20)
    fleet = Fleet(count, forecaster=name, threads=threads)
    fleet.run(values[:WARM_UP])
    session = make_forecaster(name).open(count, HORIZONS)
    session.run(values[:WARM_UP])
    whole = best(rounds, lambda: [fleet.update(row) for row in values[WARM_UP:]])
    forecast = best(rounds, lambda: [session.push(row) for row in values[WARM_UP:]])
    return whole / (20 * count), forecast / (20 * count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    table = Table(box=SIMPLE_HEAD, title="observations per second (and µs per observation beside the forecaster)")
    headings = ("forecaster", "one signal, streamed", "one signal, history", f"{given.signals} signals together")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "forecaster" else "right")
    results = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name in bar.track(FORECASTERS, description="forecasters"):
            streamed, history, pushed, run = one_signal(name, given.rounds)
            together, forecast = many_signals(name, given.signals, given.rounds, given.threads)
            results[name] = (streamed, history, history - run, together, together - forecast)
            table.add_row(
                name,
                f"{1 / streamed:,.0f} ({(streamed - pushed) * 1e6:.1f})",
                f"{1 / history:,.0f} ({(history - run) * 1e6:.1f})",
                f"{1 / together:,.0f} ({(together - forecast) * 1e6:.1f})",
            )
        light = one_signal(DEFAULT, given.rounds, light=True)
    table.add_section()
    table.add_row(f"{DEFAULT}, light", f"{1 / light[0]:,.0f}", f"{1 / light[1]:,.0f}", "")
    Console(width=120, highlight=False).print(table)
    streamed, history, scoring, together, _ = results[DEFAULT]
    print(f"scoring_us={scoring * 1e6:.1f} obs_per_s_1={1 / streamed:.0f} obs_per_s_1000={1 / together:.0f}")


if __name__ == "__main__":
    main()

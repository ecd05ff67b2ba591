"""What is found among a signal's first observations, and whether the promise holds there.

    python benchmarks/early.py

Found: signals of six kinds have one fault that begins at observation 100, 300 or 600. It is found if there is an alarm
from its first observation to the 15th after its last, where the same signal without the fault is in no incident. Sizes
are in standard deviations of the noise; that of counts is of all that is around their profile.

Promise: signals without faults are watched from their first observation. The numbers are incidents over the promised
number, the alarm rate times all observations, in the first 1,000 and in the first 2,000; behind ±, the band that holds
the mean over such signals with 95% confidence, from the spread over the signals. Signals that change for good are among
them: one incident a signal tells of that.

Noise: incidents in files of white noise where nobody chose an alarm rate, and how many are tolerated then.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bands import margin

from tocsin.detection import Fleet
from tocsin.detection.settings.history_settings import HistorySettings
from tocsin.evaluation.detectability import AFTER
from tocsin_bench.families import FAMILIES, Family
from tocsin_bench.faults import EARLY, STUCK, shift

ALARM_RATE = 0.001
STARTS = (100, 300, 600)
FAULTS = (shift(8, 1), shift(4, 60), replace(STUCK, length=60))
RATES = {"1/100": 1 / 100, "1/1000": 1 / 1000, "1/1440": 1 / 1440}
LENGTHS = (1000, 2000)
FILES, FILE_ROWS = 40, (300, 3000, 30_000)


def _ramp(rng, signals, length):
    return 0.05 * np.arange(length)[:, np.newaxis] + rng.standard_normal((length, signals))


def _late_start(rng, signals, length):
    return np.where(np.arange(length)[:, np.newaxis] < 200, 0.0, rng.standard_normal((length, signals)))


def _second_regime(rng, signals, length):
    late = np.arange(length)[:, np.newaxis] >= 500
    level, scale = rng.normal(0, 5, signals), np.exp(rng.normal(0, 0.5, signals))
    return late * level + np.where(late, scale, 1.0) * rng.standard_normal((length, signals))


def _sawtooth(rng, signals, length):
    turns = np.arange(length)[:, np.newaxis] / 97 + rng.random(signals)
    return 6 * (turns % 1) + rng.standard_normal((length, signals))


def _lognormal(rng, signals, length):
    return np.exp(0.5 * rng.standard_normal((length, signals)))


def _markov(rng, signals, length):
    high = np.cumsum(rng.random((length, signals)) < 1 / 50, axis=0) % 2
    return 5.0 * high + rng.standard_normal((length, signals))


def _levy(rng, signals, length):
    return rng.standard_t(1.5, (length, signals))


CHANGING = ("late-start", "second-regime")
WATCHED = FAMILIES | {
    family.name: family
    for family in (
        Family("ramp", "rises by a twentieth of its noise with each observation", _ramp),
        Family("late-start", "constant for 200 observations, then noise", _late_start),
        Family("second-regime", "another level and another scale from observation 500 on", _second_regime),
        Family("sawtooth", "rises with period 97 and falls back, plus normal noise", _sawtooth),
        Family("lognormal", "the exponential of normal draws with a standard deviation of a half", _lognormal),
        Family("markov", "switches between two levels, each time with probability 1/50", _markov),
        Family("levy", "independent draws of Student's law (1.5)", _levy),
    )
}


def new_fleet(signals, rate, preset):
    """The detector that is judged."""
    return Fleet(signals, alarm_rate=rate, **({} if preset is None else {"preset": preset}))


def measure_found(kind, signals, seed, preset):
    """`{(fault, start): share found}` of one kind of signal."""
    rng = np.random.default_rng([seed, list(EARLY).index(kind)])
    clean = EARLY[kind](rng, signals, max(STARTS) + max(fault.length for fault in FAULTS) + AFTER)
    found = {}
    for start in STARTS:
        # All faults, and the signals without one, together.
        copies = [fault(clean, start) for fault in FAULTS]
        stop = start + max(fault.length for fault in FAULTS) + AFTER
        values = np.concatenate([clean.values, *copies], axis=1)[:stop]
        verdicts = new_fleet(values.shape[1], ALARM_RATE, preset).run_arrays(values)
        of_clean, *alarms = np.split(verdicts.alarm[start:], 1 + len(FAULTS), axis=1)
        busy = verdicts.open[start:, : of_clean.shape[1]]
        for fault, alarm in zip(FAULTS, alarms, strict=True):
            hit = (alarm & ~busy)[: fault.length + AFTER].any(axis=0)
            found[fault.name, start] = float(hit.mean())
    return found


def measure_promise(family, signals, seed, preset):
    """`{(rate, length): (incidents of each signal, promised number)}` of one family."""
    values = WATCHED[family](np.random.default_rng([seed, list(WATCHED).index(family)]), signals, max(LENGTHS))
    counted, kept_forecasts = {}, None
    for name, rate in RATES.items():
        pieces = []
        verdicts = new_fleet(signals, rate, preset).run_arrays(
            values, kept_forecasts=kept_forecasts, on_forecast=pieces.append if kept_forecasts is None else None
        )
        kept_forecasts = np.concatenate(pieces) if kept_forecasts is None else kept_forecasts
        for length in LENGTHS:
            counted[name, length] = verdicts.opened[:length].sum(axis=0), rate * length
    return counted


def measure_noise(rows, seed, preset):
    """The incidents in each of several files of white noise, and the number that is tolerated."""
    settings = HistorySettings(**({} if preset is None else {"preset": preset})).of_a_signal(observations=rows)
    values = np.random.default_rng([seed, rows]).standard_normal((rows, FILES))
    return Fleet.of(FILES, settings).run_arrays(values).opened.sum(axis=0), settings.rate * rows


def run(given):
    """What was found of each kind, counted of each family and counted in noise of each length, on several cores."""
    kinds = list(EARLY) if given.only in (None, "found") else []
    families = (given.family or list(WATCHED)) if given.only in (None, "promise") else []
    lengths = FILE_ROWS if given.only in (None, "noise") else ()
    arguments = (given.signals, given.seed, given.preset)
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        found = {kind: pool.submit(measure_found, kind, given.faulty, *arguments[1:]) for kind in kinds}
        counted = {family: pool.submit(measure_promise, family, *arguments) for family in families}
        noise = {rows: pool.submit(measure_noise, rows, *arguments[1:]) for rows in lengths}
        parts = found, counted, noise
        for future in bar.track([future for part in parts for future in part.values()], description="kinds of signals"):
            future.result()
    return tuple({name: future.result() for name, future in part.items()} for part in parts)


def make_table(title, words, numbers):
    """An empty one."""
    table = Table(box=SIMPLE_HEAD, title=title)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def show_found(found, screen):
    """A row for each kind of signal and fault."""
    table = make_table(
        f"share of faults found at {ALARM_RATE:g}, by the observation at which they begin", ("signal", "fault"),
        [f"{start}" for start in STARTS],
    )  # fmt: skip
    for kind, cells in found.items():
        for fault in FAULTS:
            table.add_row(kind, fault.name, *(f"{cells[fault.name, start]:.2f}" for start in STARTS))
        table.add_section()
    screen.print(table)


def ratio(cell):
    """Incidents over the promised number, and the margin of the mean over signals."""
    counted, promised = cell
    return counted.mean() / promised, margin(counted / promised, 0.05)


def show_promise(counted, screen):
    """A row for each family, and which cell is the highest."""
    names = [f"{name}, {length:,}" for name in RATES for length in LENGTHS]
    table = make_table("incidents over the promise, at each rate in the first observations", ("family",), names)
    for family, cells in counted.items():
        table.add_row(family, *("{:.2f} ± {:.2f}".format(*ratio(cell)) for cell in cells.values()))
    screen.print(table)
    cells = {(family, *cell): by_cell[cell] for family, by_cell in counted.items() for cell in by_cell}
    family, name, length = max(cells, key=lambda cell: ratio(cells[cell])[0])
    above = sum(mean - band > 1 for mean, band in map(ratio, cells.values()))
    expected = np.array([promised * of_each.size for of_each, promised in cells.values()])
    chance = (np.random.default_rng(0).poisson(expected, (1000, expected.size)) / expected).max(axis=1)
    screen.print(
        f"highest: {family} at {name} in the first {length:,}; {above} of {len(cells)} beyond 1 by more than the band; "
        f"if all were at 1, the highest would be about {np.median(chance):.2f} by chance"
    )


def show_noise(noise, screen):
    """A row for each length of files."""
    table = make_table(f"incidents in {FILES} files of white noise, without an alarm rate", (),
                       ("rows", "tolerated", "mean", "most"))  # fmt: skip
    for rows, (counted, promised) in noise.items():
        mean = f"{counted.mean():.2f} ± {margin(counted, 0.05):.2f}"
        table.add_row(f"{rows:,}", f"{promised:.3g}", mean, str(counted.max()))
    screen.print(table)


def highest(counted):
    """The highest ratio of these families, NaN if there are none."""
    return max((ratio(cell)[0] for by_cell in counted.values() for cell in by_cell.values()), default=float("nan"))


def last_line(found, counted, noise):
    """What machines read."""
    numbers = {}
    if found:
        by_start = {
            start: [cells[fault.name, start] for cells in found.values() for fault in FAULTS] for start in STARTS
        }
        numbers |= {f"early_{start}": np.mean(shares) for start, shares in by_start.items()}
        numbers["early_worst"] = min(by_start[STARTS[0]])
        numbers |= {f"early_worst_{start}": min(by_start[start]) for start in STARTS[1:]}
    if counted:
        numbers["early_false"] = highest(counted)
        numbers["early_false_steady"] = highest({name: counted[name] for name in counted if name not in CHANGING})
    if noise:
        numbers["noise_incidents"] = max(of_each.mean() for of_each, _ in noise.values())
    return " ".join(f"{name}={value:.3f}" for name, value in numbers.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=48, help="of each family without faults")
    parser.add_argument("--faulty", type=int, default=24, help="signals for each kind of signal and fault")
    parser.add_argument("--family", action="append", choices=list(WATCHED), help="only this one; repeatable")
    parser.add_argument("--only", choices=("found", "promise", "noise"), help="only this part")
    parser.add_argument("--preset", help="of the detector; its default if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    found, counted, noise = run(given)
    screen = Console(width=130, highlight=False)
    if found:
        show_found(found, screen)
    if counted:
        show_promise(counted, screen)
    if noise:
        show_noise(noise, screen)
    screen.print(f"{given.faulty} faulty and {given.signals} clean signals, {time.perf_counter() - started:.0f} s")
    print(last_line(found, counted, noise))


if __name__ == "__main__":
    main()

"""Which faults are found, beside simple charts at the same number of false incidents.

    python benchmarks/faults.py

Signals of four kinds are watched with an alarm rate of 0.001; then comes one fault. It is found if there is an alarm
while it lasts, or in the 15 observations after. Alarms with at most 10 observations between them are one incident. The
thresholds of the charts are chosen in hindsight, on clean signals of the same kind: such that they have as many false
incidents as Tocsin had, which is the comparison, and such that they have one in 1,000 observations, which was promised.
The charts know the season where there is one. Then: how much of a long step is under an open incident and how long
after its end that is over, whether the third of three equal faults is found, how much normal time is under an open
incident at one false incident in 500 observations, and what faults hide that came before. What comes before is watched
once.
"""

import argparse
import io
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tocsin.detection import Fleet
from tocsin.evaluation import charts
from tocsin.evaluation.faults import BASES, DRIFT, FAULTS, STUCK, noise_times, repeated, shift
from tocsin.evaluation.metrics import in_operation, loosest_threshold

ALARM_RATE = 0.001
GAP = 10
AFTER = 15
# Clean observations to choose the thresholds of charts with: many, for the charts cost nothing.
CHART_SIGNALS, CHART_LENGTH, CHART_SETTLES = 50, 10_000, 500
# Clean observations after those that come before the faults, to count false incidents in.
CLEAN = 2000

STEP = shift(5, 500)
# So long after a step its incident has to be over.
LATEST = 300
# How much normal time is covered is told at this rate, on so many signals.
OFTEN, OFTEN_SIGNALS = 1 / 500, 10
REPEATED, TIMES, APART = shift(3, 100), 3, 300
MASKED = (shift(6, 1), shift(3, 100))
# What may hide a later fault: it has this long to come and go, and the fault starts so long after.
OUTLIERS, NOISE = repeated(shift(6, 1), 5, 20), noise_times(3, 100)
MASK_LASTS, MASK_BEFORE = 100, 600


def chart_scores(values, season, sd):
    """`{name of a chart: scores[T, S]}`, larger where stranger."""
    seen = {"values": values / sd}
    if season.any():
        seen["residuals"] = (values - season) / sd
    found = {}
    for what, numbers in seen.items():
        found |= {f"EWMA {weight} of {what}": charts.ewma(numbers, weight) for weight in (0.03, 0.1, 0.2)}
        found[f"CUSUM of {what}"] = charts.cusum(numbers, 0.5)
        found[f"rolling z of {what}"] = charts.rolling_z(numbers, 100)
    steps = charts.movement(values, 20)
    return found | {"movement, high": steps, "movement, low": -steps}


def incidents_in(alarm):
    """How many incidents there are in alarms `[T, S]`; no two signals share one."""
    return sum(in_operation(np.zeros(alarm.shape[0]), column, gap=GAP).incidents for column in alarm.T)


def thresholds(base, rates, rng):
    """For each rate of incidents and each chart the threshold that has it on clean signals."""
    clean = base(rng, CHART_SIGNALS, CHART_LENGTH)
    found = [{} for _ in rates]
    for name, scores in chart_scores(clean.values, clean.season(), clean.sd).items():
        # One signal after the other, with a gap between that no incident spans.
        apart = np.full((CHART_LENGTH - CHART_SETTLES + GAP + 1, CHART_SIGNALS), np.nan)
        apart[: -GAP - 1] = scores[CHART_SETTLES:]
        observations = CHART_SIGNALS * (CHART_LENGTH - CHART_SETTLES)
        for rate, chosen in zip(rates, found, strict=True):
            allowed = round(rate * observations)
            chosen[name] = loosest_threshold(np.zeros(apart.size), apart.T.ravel(), allowed, gap=GAP)
    return found


class Watch:
    """A fleet that has seen some observations, from where it can go on more than once."""

    def __init__(self, fleet, values):
        self.fleet, self.verdicts = fleet, fleet.run_arrays(values)
        file = io.BytesIO()
        fleet.save(file)
        self.saved = file.getvalue()

    def go_on(self, values):
        """A watch of what follows."""
        return Watch(Fleet.load(io.BytesIO(self.saved)), values)

    def alarms(self, values):
        """Whether there is an alarm on each observation of what follows."""
        return self.go_on(values).verdicts.alarm


def found_in(alarm, length):
    """For each signal, whether there was an alarm in time, and after how many observations; a fault starts at 0."""
    during = alarm[: length + AFTER]
    return during.any(axis=0), np.where(during.any(axis=0), during.argmax(axis=0), np.nan)


@dataclass
class Cell:
    """What was found of one kind of fault in one kind of signal."""

    fault: str
    found: float
    delay: float
    chart: str
    chart_found: float
    chart_delay: float
    promised_found: float

    @property
    def difference(self):
        return self.found - self.chart_found


@dataclass
class Measured:
    """All that was measured on one kind of signal."""

    base: str
    warm: int = 0
    false_incidents: int = 0
    cells: list = field(default_factory=list)
    masking: list = field(default_factory=list)
    step_open: float = float("nan")
    closed_after: float = float("nan")
    normal_open: float = float("nan")
    repeat_found: float = float("nan")


def measure(kind, signals, before, seed):
    """Everything on one kind of signal."""
    base, rng = BASES[kind], np.random.default_rng([seed, list(BASES).index(kind)])
    clean = base(rng, signals, before + CLEAN)
    watch = Watch(Fleet([str(row) for row in range(signals)], alarm_rate=ALARM_RATE), clean.values[:before])
    parts = (watch.verdicts, watch.go_on(clean.values[before:]).verdicts)
    alarm, warm = (np.concatenate([getattr(part, name) for part in parts]) for name in ("alarm", "warm"))
    found = Measured(kind, int(warm.sum()), incidents_in(alarm & warm))
    rates = (found.false_incidents / found.warm, ALARM_RATE)
    limits = thresholds(base, rates, rng)
    for fault in FAULTS.values():
        if not fault.seasonal or base.period:
            found.cells.append(measure_fault(fault, clean, before, watch, limits))
    found.step_open, found.closed_after = measure_step(clean, before, watch)
    found.normal_open = measure_normal(clean.values[:, :OFTEN_SIGNALS])
    found.repeat_found = measure_repeated(clean, before, watch)
    found.masking = measure_masking(clean, before, watch)
    return found


def measure_fault(fault, clean, start, watch, limits):
    """One fault at the end of what was watched, by Tocsin and by every chart."""
    length = fault.lasts(clean.period)
    stop = start + length + AFTER
    values = fault(clean, start)[:stop]
    found, delay = found_in(watch.alarms(values[start:]), length)
    scores = chart_scores(values, clean.season()[:stop], clean.sd)
    same, promised = (
        {name: found_in(scores[name][start:] >= limit, length) for name, limit in of_charts.items()}
        for of_charts in limits
    )
    best = max(same, key=lambda name: (same[name][0].mean(), -middle(same[name][1])))
    return Cell(
        fault.name, found.mean(), middle(delay), best, same[best][0].mean(), middle(same[best][1]),
        max(hits.mean() for hits, _ in promised.values()),
    )  # fmt: skip


def middle(delay):
    """The median delay of what was found, infinite if nothing was."""
    return float(np.nanmedian(delay)) if np.isfinite(delay).any() else float("inf")


def measure_step(clean, start, watch):
    """The share of a long step that lies under an incident, and how long after its end that is over, usually."""
    stop = start + STEP.length
    is_open = watch.go_on(STEP(clean, start)[start : stop + LATEST]).verdicts.open
    after = is_open[STEP.length :]
    closed = np.where(after.all(axis=0), LATEST, after.argmin(axis=0))
    return float(is_open[: STEP.length].mean()), float(np.median(closed))


def measure_normal(values):
    """The share of normal time under an open incident."""
    verdicts = Fleet(values.shape[1], alarm_rate=OFTEN).run_arrays(values)
    return float(verdicts.open[verdicts.warm].mean())


def measure_repeated(clean, start, watch):
    """The share of signals in which the last of several equal faults is found."""
    several = repeated(REPEATED, TIMES, APART)
    stop = start + several.length + AFTER
    last = (TIMES - 1) * APART
    alarm = watch.alarms(several(clean, start)[start:stop])
    return float(found_in(alarm[last:], REPEATED.length)[0].mean())


def measure_masking(clean, start, watch):
    """`(fault, what came before, found without, found after)` of each."""
    at = start + MASK_LASTS + MASK_BEFORE
    found = {}
    for hiding in (None, OUTLIERS, NOISE):
        earlier = clean.values if hiding is None else hiding(clean, start)
        later = watch.go_on(earlier[start:at])
        for fault in MASKED:
            alarm = later.alarms(fault(clean, at)[at : at + fault.length + AFTER])
            found[fault, hiding] = found_in(alarm, fault.length)[0].mean()
    return [
        (fault.name, hiding.name, found[fault, None], found[fault, hiding])
        for fault in MASKED
        for hiding in (OUTLIERS, NOISE)
    ]


def show(measured, screen, about):
    """The tables."""
    rates = Table(box=SIMPLE_HEAD, title=f"false incidents in 1,000 clean observations ({about})")
    power = Table(box=SIMPLE_HEAD, title="faults found at Tocsin's number of false incidents")
    masking = Table(box=SIMPLE_HEAD, title=f"faults found {MASK_BEFORE} observations after something else")
    for table, words, numbers in (
        (rates, ("signal",),
         ("promised", "Tocsin", "ratio", "step open", "over after", "third found", "normal time open")),
        (power, ("signal", "fault", "best chart"),
         ("Tocsin", "delay", "chart", "delay", "difference", "chart at 1 in 1,000")),
        (masking, ("signal", "fault", "after"), ("without", "after", "difference")),
    ):  # fmt: skip
        for heading in words:
            table.add_column(heading)
        for heading in numbers:
            table.add_column(heading, justify="right")
    for found in measured:
        rate = found.false_incidents / found.warm
        rates.add_row(found.base, f"{1000 * ALARM_RATE:g}", f"{1000 * rate:.3f}", f"{rate / ALARM_RATE:.2f}",
                      f"{found.step_open:.2f}", f"{found.closed_after:.0f}", f"{found.repeat_found:.2f}",
                      f"{found.normal_open:.3f}")  # fmt: skip
        for cell in found.cells:
            power.add_row(found.base, cell.fault, cell.chart, f"{cell.found:.2f}", f"{cell.delay:.0f}",
                          f"{cell.chart_found:.2f}", f"{cell.chart_delay:.0f}", f"{cell.difference:+.2f}",
                          f"{cell.promised_found:.2f}")  # fmt: skip
        power.add_section()
        for fault, hiding, without, after in found.masking:
            masking.add_row(found.base, fault, hiding, f"{without:.2f}", f"{after:.2f}", f"{after - without:+.2f}")
        masking.add_section()
    for table in (rates, power, masking):
        screen.print(table)


def last_line(measured):
    """What machines read."""
    cells = [cell for found in measured for cell in found.cells]
    promised = ALARM_RATE * sum(found.warm for found in measured)
    numbers = {
        "worst_cell": min(cell.difference for cell in cells),
        "worst_masking": min(after - without for found in measured for *_, without, after in found.masking),
        "step_open": np.mean([found.step_open for found in measured]),
        "stuck_found": np.mean([cell.found for cell in cells if cell.fault == STUCK.name]),
        "drift_found": np.mean([cell.found for cell in cells if cell.fault == DRIFT.name]),
        "closed_after": np.median([found.closed_after for found in measured]),
        "normal_open": np.mean([found.normal_open for found in measured]),
        "repeat_found": np.mean([found.repeat_found for found in measured]),
        "false_ratio": sum(found.false_incidents for found in measured) / promised,
    }
    return " ".join(f"{name}={value:.3f}" for name, value in numbers.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=40, help="for each kind of signal and fault")
    parser.add_argument("--before", type=int, default=6000, help="clean observations before each fault")
    parser.add_argument("--base", action="append", choices=list(BASES), help="only this kind of signal; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    bases = given.base or list(BASES)
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        futures = [pool.submit(measure, name, given.signals, given.before, given.seed) for name in bases]
        measured = [future.result() for future in bar.track(futures, description="kinds of signals")]
    took = f"{given.signals} signals, {time.perf_counter() - started:.0f} s"
    show(measured, Console(width=130, highlight=False), took)
    print(last_line(measured))


if __name__ == "__main__":
    main()

"""Which faults are found, beside a portfolio of charts at the same number of false incidents.

    python benchmarks/faults.py

Signals of eight kinds are watched with an alarm rate of 0.001; then comes one fault. It is found if there is an alarm
from its first to its last observation, or in the 15 after, where the same signal without the fault is in no incident:
so nothing is found by chance. Alarms with at most 10 observations between them are one incident.

The rivals are some 30 or 40 charts together (`tocsin_bench.portfolio`), which are given the period. All have the
same share of observations of clean signals beyond their thresholds, such that on other clean signals they have together
as many false incidents as Tocsin had, which is the comparison, or one in 1,000 observations, which was promised.

Then: how much of a long step is under an open incident and how long after its end that is over, whether the third of
three equal faults is found, how much normal time is under an open incident at one false incident in 500 observations,
what faults hide that came before, whether lasting faults stay open and their repair is no news, and whether many faults
make deaf. What comes before is watched once.

Then faults where a signal is quiet (`tocsin_bench.quiet`): at night, in the trough of a season, in calm times. They are
small beside the noise at other times, and large beside that of the place.

Last, in white noise: how late a shift that lasts is found, and how many single spikes, beside the limits that no method
can pass at the same rate of false incidents: the two-sided CUSUM that knows the size of the shift, and the test of one
observation that knows its law.
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
from tocsin.evaluation.detectability import AFTER
from tocsin_bench.faults import (
    BASES,
    DRIFT,
    FAULTS,
    LASTING,
    LEAK,
    SLOW_DRIFT,
    STUCK,
    noise_times,
    repeated,
    shift,
)
from tocsin_bench.limits import least_delay, most_spikes
from tocsin_bench.metrics import in_operation
from tocsin_bench.portfolio import GAP, Portfolio
from tocsin_bench.quiet import LASTS, QUIET_BASES, QUIET_FAULTS

ALARM_RATE = 0.001
# Clean cycles before each fault, at least: profiles are learned from five.
CYCLES = 6
# Clean signals to learn the charts' thresholds from, and as many others to choose the common level with.
CHART_SIGNALS = 100
# Clean observations after those that come before the faults: as many as the longest fault lasts, and some.
CLEAN = 4200

STEP = shift(5, 500)
# So long after a step its incident has to be over.
LATEST = 300
# How much normal time is covered is told at this rate, on so many signals and observations.
OFTEN, OFTEN_SIGNALS, OFTEN_LENGTH = 1 / 500, 10, 8000
REPEATED, TIMES, APART = shift(3, 100), 3, 300
MASKED = (shift(6, 1), shift(3, 100))
# What may hide a later fault: it has this long to come and go, and the fault starts so long after.
OUTLIERS, NOISE = repeated(shift(6, 1), 5, 20), noise_times(3, 100)
MASK_LASTS, MASK_BEFORE = 100, 600
# After a repair, a new incident within so many observations is one too many.
REPAIR = 100
# These leave their level by themselves as far as a step, a drift or a lasting fault does: they are in the tables, but
# not in the numbers of the last line about those.
WANDERING = ("AR .99", "walk")
# Many large faults, and then a small one: sizes in sd, lengths and distances in observations, from and below.
DEAF_RATE, DEAF_TIMES, DEAF_BEFORE, DEAF_SIGNALS = 1 / 2016, 10, 6000, 24
DEAF_SIZE, DEAF_LENGTH, DEAF_APART, DEAF_LAST = (8, 20), (1, 11), (200, 351), (350, 701)
DEAF_TESTS = {"deaf_spike": shift(6, 1), "deaf_shift": shift(2, 60)}
# Shifts in sd, each for so long, and rates; and how often a spike comes, at the rate of all else.
DELAY_SHIFTS, DELAY_LENGTH, DELAY_RATES = (0.5, 1.0, 2.0, 3.0), 500, (1 / 300, 1 / 1000, 1 / 10_000)
SPIKE, SPIKE_TIMES = 4.0, 12


def new_fleet(signals, rate, period=None):
    """The detector that is judged: it is told nothing about the signals, and finds their `period` itself."""
    return Fleet([str(row) for row in range(signals)], alarm_rate=rate)


def incidents_in(alarm):
    """How many incidents there are in alarms `[T, S]`; no two signals share one."""
    return sum(in_operation(np.zeros(alarm.shape[0]), column, gap=GAP).incidents for column in alarm.T)


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
    charts_found: float
    charts_delay: float
    promised_found: float

    @property
    def difference(self):
        return self.found - self.charts_found


@dataclass
class Lasting:
    """What became of one lasting fault: `open_share` is from when it was found on until its end."""

    fault: str
    found_by_half: float
    open_share: float
    repair_new: float
    incidents: int
    returned: int


@dataclass
class Measured:
    """All that was measured on one kind of signal."""

    base: str
    warm: int = 0
    false_incidents: int = 0
    charts_level: float = float("nan")
    cells: list = field(default_factory=list)
    lasting: list = field(default_factory=list)
    masking: list = field(default_factory=list)
    step_open: float = float("nan")
    closed_after: float = float("nan")
    normal_open: float = float("nan")
    repeat_found: float = float("nan")


class Rivals:
    """The portfolio at two levels: at Tocsin's rate of false incidents and at the promised one."""

    def __init__(self, base, before, rates, rng):
        clean, other = (base(rng, CHART_SIGNALS, before + CLEAN) for _ in range(2))
        self.portfolio = Portfolio(clean, before)
        levels = self.portfolio.levels(other.values)
        self.limits = [self.portfolio.level_for(rate, levels) for rate in rates]

    def alarms(self, values):
        """At each level, whether any chart alarms on each observation after those before the fault."""
        levels = self.portfolio.levels(values)
        return [levels <= limit for limit in self.limits]


@dataclass
class Twins:
    """Signals without faults after `start`, and where they are in incidents: Tocsin's and those of its rivals."""

    clean: object
    start: int
    watch: Watch
    unfaulted: Watch
    rivals: Rivals

    def __post_init__(self):
        self.values = self.clean.values
        self.busy = self.unfaulted.verdicts.open
        self.rivals_busy = [in_incident(alarm) for alarm in self.rivals.alarms(self.values)]

    def judge(self, faulty, alarm, busy):
        """For each signal, whether the fault was found and after how many observations from its own first."""
        # A fault of a certain day begins at another time in each signal.
        changed = (faulty != self.values[: len(faulty)])[self.start :]
        first, last = changed.argmax(axis=0), len(changed) - 1 - changed[::-1].argmax(axis=0)
        at = np.arange(len(alarm))[:, np.newaxis]
        hit = alarm & ~busy[: len(alarm)] & (at >= first) & (at <= last + AFTER)
        return hit.any(axis=0), np.where(hit.any(axis=0), hit.argmax(axis=0) - first, np.nan)


def in_incident(alarm):
    """Where alarms `[T, S]` of charts are, and what is between or near them, which would be the same incident."""
    seen = np.cumsum(np.pad(alarm, ((GAP + 1, GAP), (0, 0))), axis=0)
    return seen[2 * GAP + 1 :] > seen[: -2 * GAP - 1]


def measure(kind, signals, before, seed):
    """Everything on one kind of signal."""
    base, rng = BASES[kind], np.random.default_rng([seed, list(BASES).index(kind)])
    before = max(before, CYCLES * (base.period or 0))
    clean = base(rng, signals, before + CLEAN)
    watch = Watch(new_fleet(signals, ALARM_RATE, base.period), clean.values[:before])
    later = watch.go_on(clean.values[before:])
    alarm, warm = (
        np.concatenate([getattr(part.verdicts, name) for part in (watch, later)]) for name in ("alarm", "warm")
    )
    found = Measured(kind, int(warm.sum()), incidents_in(alarm & warm))
    rivals = Rivals(base, before, (found.false_incidents / found.warm, ALARM_RATE), rng)
    found.charts_level = rivals.limits[0]
    twins = Twins(clean, before, watch, later, rivals)
    found.cells = [measure_fault(fault, twins) for fault in FAULTS.values() if fault.fits(base)]
    for fault in LASTING.values():
        cell, lasting = measure_lasting(fault, twins)
        found.cells.append(cell)
        found.lasting.append(lasting)
    found.step_open, found.closed_after = measure_step(clean, before, watch)
    found.normal_open = measure_normal(clean.values[:OFTEN_LENGTH, :OFTEN_SIGNALS], base.period)
    found.repeat_found = measure_repeated(clean, before, watch)
    found.masking = measure_masking(clean, before, watch)
    return found


def measure_fault(fault, twins):
    """One fault at the end of what was watched, by Tocsin and by the charts."""
    stop = twins.start + fault.lasts(twins.clean) + AFTER
    faulty = fault(twins.clean, twins.start)
    return compare(fault, twins, faulty[:stop], twins.watch.alarms(faulty[twins.start : stop]))


def compare(fault, twins, faulty, alarm):
    """What Tocsin found with these alarms, and what the charts find."""
    found, delay = twins.judge(faulty, alarm, twins.busy)
    same, promised = (
        twins.judge(faulty, of_charts, busy)
        for of_charts, busy in zip(twins.rivals.alarms(faulty), twins.rivals_busy, strict=True)
    )
    return Cell(fault.name, found.mean(), middle(delay), same[0].mean(), middle(same[1]), promised[0].mean())


def middle(delay):
    """The median delay of what was found, infinite if nothing was."""
    return float(np.nanmedian(delay)) if np.isfinite(delay).any() else float("inf")


def measure_lasting(fault, twins):
    """A fault that lasts, and its repair: what is found, whether it stays open, and whether its end is news."""
    start, length = twins.start, fault.lasts(twins.clean)
    stop = start + length
    faulty = fault(twins.clean, start)
    during = twins.watch.go_on(faulty[start:stop])
    after = during.go_on(faulty[stop : stop + REPAIR])
    verdicts = during.verdicts
    alarm = np.concatenate([verdicts.alarm, after.verdicts.alarm[:AFTER]])
    hit, delay = twins.judge(faulty[: stop + AFTER], alarm, twins.busy)
    found_at = np.where(hit, delay, length)
    since = np.arange(length)[:, np.newaxis] >= found_at
    # What was an incident without the fault, too, says nothing about it.
    caused = [
        one
        for one in during.fleet.incidents()
        if one.first >= start and not twins.busy[one.first - start, int(one.signal)]
    ]
    returned = [one for one in caused if one.ended == "returned"]  # the fault still lasts: they have not
    lasting = Lasting(
        fault.name,
        found_by_half=float(np.mean(found_at < length / 2)),
        open_share=float(verdicts.open[since].mean()) if since.any() else float("nan"),
        repair_new=float(after.verdicts.opened.any(axis=0).mean()),
        incidents=len(caused),
        returned=len(returned),
    )
    return compare(fault, twins, faulty[: stop + AFTER], alarm), lasting


def measure_step(clean, start, watch):
    """The share of a long step that lies under an incident, and how long after its end that is over, usually."""
    stop = start + STEP.length
    is_open = watch.go_on(STEP(clean, start)[start : stop + LATEST]).verdicts.open
    after = is_open[STEP.length :]
    closed = np.where(after.all(axis=0), LATEST, after.argmin(axis=0))
    return float(is_open[: STEP.length].mean()), float(np.median(closed))


def measure_normal(values, period):
    """The share of normal time under an open incident."""
    verdicts = new_fleet(values.shape[1], OFTEN, period).run_arrays(values)
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


def measure_deafness(signals, seed):
    """`{name: (found without, found after)}` of small faults after many large ones, in white noise."""
    signals, rng = max(signals, DEAF_SIGNALS), np.random.default_rng([seed, len(BASES)])
    at = DEAF_BEFORE + DEAF_TIMES * DEAF_APART[1] + DEAF_LAST[1]
    clean = BASES["white noise"](rng, signals, at + 100)
    struck = clean.values
    for row in range(signals):
        # From the last to the first, so that the test comes at the same time in all signals.
        ends = at - rng.integers(*DEAF_LAST) - np.append(0, np.cumsum(rng.integers(*DEAF_APART, DEAF_TIMES - 1)))
        for end in ends:
            start = end - rng.integers(*DEAF_LENGTH)
            struck[start:end, row] += rng.choice([-1, 1]) * rng.uniform(*DEAF_SIZE) * clean.sd
    watch = Watch(new_fleet(signals, DEAF_RATE), clean.values[:DEAF_BEFORE])
    found = {}
    for earlier in (clean.values, struck):
        later = watch.go_on(earlier[DEAF_BEFORE:at])
        for name, fault in DEAF_TESTS.items():
            alarm = later.alarms(fault(clean, at)[at : at + fault.length + AFTER])
            found.setdefault(name, []).append(float(found_in(alarm, fault.length)[0].mean()))
    return found


@dataclass
class Delay:
    """How late a shift is found at one rate, in the median, and the mean delay of the CUSUM that knows it."""

    rate: float
    shift: float
    delay: float
    limit: float


def measure_delays(signals, before, seed):
    """The delays of shifts in white noise, and the share of spikes found; an alarm at once has a delay of 1."""
    rng = np.random.default_rng([seed, len(BASES) + 1])
    noise = rng.normal(size=(before + DELAY_LENGTH, signals))
    delays, spikes = [], float("nan")
    for rate in DELAY_RATES:
        watch = Watch(new_fleet(signals, rate), noise[:before])
        calm = ~watch.verdicts.open[-1]
        for size in DELAY_SHIFTS:
            alarm = watch.alarms(noise[before:] + size)[:, calm]
            found = np.where(alarm.any(axis=0), alarm.argmax(axis=0) + 1.0, np.inf)
            delays.append(Delay(rate, size, float(np.median(found)), least_delay(size, rate)))
        if rate == ALARM_RATE:
            drawn = rng.normal(size=(SPIKE_TIMES, 1, signals))
            spikes = float(np.mean([watch.alarms(values + SPIKE)[0, calm] for values in drawn]))
    return delays, spikes


def show_delays(delays, spikes, screen):
    """The table of delays, and how many spikes are found."""
    table = make_table(
        "median delay of a shift in white noise, and the mean delay of the CUSUM that knows its size",
        ("false incidents",), [f"{size:g} sd" for size in DELAY_SHIFTS],
    )  # fmt: skip
    for rate in DELAY_RATES:
        cells = [f"{one.delay:.0f} ({one.limit:.1f})" for one in delays if one.rate == rate]
        table.add_row(f"1 in {1 / rate:,.0f}", *cells)
    screen.print(table)
    most = most_spikes(SPIKE, ALARM_RATE)
    screen.print(f"spikes of {SPIKE:g} sd found at 1 in {1 / ALARM_RATE:,.0f}: {spikes:.3f}, at most {most:.3f}")


def delay_line(delays, spikes):
    """What machines read: delays at the usual rate, and how many times the limit they are, in the geometric mean."""
    usual = {one.shift: one for one in delays if one.rate == ALARM_RATE and one.shift >= 1}
    ratio = np.exp(np.mean([np.log(one.delay / one.limit) for one in usual.values()]))
    named = " ".join(f"delay_{size:g}sd={one.delay:.1f}" for size, one in usual.items())
    return f"{named} limit_ratio={ratio:.2f} spike_found={spikes:.3f}"


@dataclass
class Quiet:
    """The share found of each fault where one kind of signal is quiet, and false incidents over the promise before."""

    night: bool
    found: list
    false_ratio: float


def measure_quiet(kind, signals, before, seed):
    """Faults where signals of one kind are quiet."""
    base, rng = QUIET_BASES[kind], np.random.default_rng([seed, len(BASES) + 2, list(QUIET_BASES).index(kind)])
    clean = base(rng, signals, before, LASTS + AFTER)
    watch = Watch(new_fleet(signals, ALARM_RATE), clean.values[:before])
    busy = watch.go_on(clean.values[before:]).verdicts.open
    found = []
    for fault in QUIET_FAULTS:
        alarm = watch.alarms(fault(clean, before)[before : before + fault.length + AFTER])
        found.append(float((alarm & ~busy[: len(alarm)]).any(axis=0).mean()))
    warm = watch.verdicts.warm
    return Quiet(base.night, found, float((watch.verdicts.opened & warm).sum() / (ALARM_RATE * warm.sum())))


def show_quiet(quiet, screen):
    """A row for each kind of signal."""
    table = make_table(
        "faults found where a signal is quiet, in standard deviations of the noise there", ("signal",),
        (*(fault.name for fault in QUIET_FAULTS), "false incidents over the promise"),
    )  # fmt: skip
    for name, one in quiet.items():
        table.add_row(name, *(f"{share:.2f}" for share in one.found), f"{one.false_ratio:.2f}")
    screen.print(table)


def quiet_line(quiet):
    """What machines read: the mean and the lowest cell at night, and the mean where it is quiet for other reasons."""
    nights = [share for one in quiet.values() if one.night for share in one.found]
    others = [share for one in quiet.values() if not one.night for share in one.found]
    return f"night_mean={np.mean(nights):.3f} night_worst={min(nights):.3f} quiet_mean={np.mean(others):.3f}"


def make_table(title, words, numbers):
    """An empty one."""
    table = Table(box=SIMPLE_HEAD, title=title)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def show(measured, deafness, screen, about):
    """The tables."""
    rates = make_table(
        f"false incidents in 1,000 clean observations ({about})", ("signal",),
        ("promised", "Tocsin", "ratio", "level of each chart", "step open", "over after", "third found",
         "normal time open"),
    )  # fmt: skip
    power = make_table(
        "faults found at Tocsin's number of false incidents", ("signal", "fault"),
        ("Tocsin", "delay", "charts", "delay", "difference", "charts at 1 in 1,000"),
    )  # fmt: skip
    lasting = make_table(
        "lasting faults", ("signal", "fault"),
        ("found by half", "open since found", "repair is news", "incidents", "returned while it lasts"),
    )  # fmt: skip
    masking = make_table(
        f"faults found {MASK_BEFORE} observations after something else", ("signal", "fault", "after"),
        ("without", "after", "difference"),
    )  # fmt: skip
    deaf = make_table(
        f"faults found after {DEAF_TIMES} of {DEAF_SIZE[0]} to {DEAF_SIZE[1]} sd", ("fault",), ("without", "after")
    )
    for found in measured:
        rate = found.false_incidents / found.warm
        rates.add_row(found.base, f"{1000 * ALARM_RATE:g}", f"{1000 * rate:.3f}", f"{rate / ALARM_RATE:.2f}",
                      f"{found.charts_level:.1e}", f"{found.step_open:.2f}", f"{found.closed_after:.0f}",
                      f"{found.repeat_found:.2f}", f"{found.normal_open:.3f}")  # fmt: skip
        for cell in found.cells:
            power.add_row(found.base, cell.fault, f"{cell.found:.2f}", f"{cell.delay:.0f}",
                          f"{cell.charts_found:.2f}", f"{cell.charts_delay:.0f}", f"{cell.difference:+.2f}",
                          f"{cell.promised_found:.2f}")  # fmt: skip
        power.add_section()
        for one in found.lasting:
            lasting.add_row(found.base, one.fault, f"{one.found_by_half:.2f}", f"{one.open_share:.2f}",
                            f"{one.repair_new:.2f}", str(one.incidents), str(one.returned))  # fmt: skip
        lasting.add_section()
        for fault, hiding, without, after in found.masking:
            masking.add_row(found.base, fault, hiding, f"{without:.2f}", f"{after:.2f}", f"{after - without:+.2f}")
        masking.add_section()
    for name, fault in DEAF_TESTS.items():
        deaf.add_row(fault.name, *(f"{share:.2f}" for share in deafness[name]))
    for table in (rates, power, lasting, masking, deaf):
        screen.print(table)


def last_line(measured, deafness):
    """What machines read."""
    cells = [cell for found in measured for cell in found.cells]
    seasons = [cell for found in measured if BASES[found.base].period for cell in found.cells]
    staying = [found for found in measured if found.base not in WANDERING]
    lasting = [one for found in staying for one in found.lasting]
    leaks, drifts = ([one for one in lasting if one.fault == fault.name] for fault in (LEAK, SLOW_DRIFT))
    promised = ALARM_RATE * sum(found.warm for found in measured)
    numbers = {
        "worst_cell": min(cell.difference for cell in cells),
        "worst_masking": min(after - without for found in measured for *_, without, after in found.masking),
        "step_open": mean_of(found.step_open for found in staying),
        "stuck_found": np.mean([cell.found for cell in cells if cell.fault == STUCK.name]),
        "drift_found": mean_of(cell.found for found in staying for cell in found.cells if cell.fault == DRIFT.name),
        "closed_after": np.median([found.closed_after for found in staying or measured]),
        "normal_open": np.mean([found.normal_open for found in measured]),
        "repeat_found": mean_of(found.repeat_found for found in staying),
        "false_ratio": sum(found.false_incidents for found in measured) / promised,
        "season_worst": min((cell.difference for cell in seasons), default=float("nan")),
        **{name: after / without if without else float("nan") for name, (without, after) in deafness.items()},
        "leak_found": mean_of(one.found_by_half for one in leaks),
        "leak_open": mean_of(one.open_share for one in leaks),
        "repair_new": mean_of(one.repair_new for one in leaks),
        "drift_open": mean_of(one.open_share for one in drifts),
        "returned_wrong": sum(one.returned for one in lasting) / max(sum(one.incidents for one in lasting), 1),
    }
    return " ".join(f"{name}={value:.3f}" for name, value in numbers.items())


def mean_of(numbers):
    """The mean of those that are numbers, NaN if none is."""
    known = [number for number in numbers if not np.isnan(number)]
    return float(np.mean(known)) if known else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=16, help="for each kind of signal and fault")
    parser.add_argument("--before", type=int, default=6000, help="clean observations before each fault, at least")
    parser.add_argument("--base", action="append", choices=list(BASES), help="only this kind of signal; repeatable")
    parser.add_argument("--only", choices=("quiet",), help="only the faults where signals are quiet")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    bases = [] if given.only else given.base or list(BASES)
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        # Those that take longest first.
        order = sorted(bases, key=lambda name: -(BASES[name].period or 0))
        futures = {name: pool.submit(measure, name, given.signals, given.before, given.seed) for name in order}
        deaf = None if given.only else pool.submit(measure_deafness, given.signals, given.seed)
        late = None if given.only else pool.submit(measure_delays, given.signals, given.before, given.seed)
        calm = {name: pool.submit(measure_quiet, name, given.signals, given.before, given.seed) for name in QUIET_BASES}
        waiting = [*futures.values(), *calm.values()]
        for future in bar.track(waiting, description="kinds of signals"):
            future.result()
        quiet = {name: future.result() for name, future in calm.items()}
        measured = [futures[name].result() for name in bases]
        deafness, delayed = (None if future is None else future.result() for future in (deaf, late))
    took = f"{given.signals} signals, {time.perf_counter() - started:.0f} s"
    screen = Console(width=130, highlight=False)
    lines = []
    if not given.only:
        show(measured, deafness, screen, took)
        show_delays(*delayed, screen)
        lines += [last_line(measured, deafness), delay_line(*delayed)]
    show_quiet(quiet, screen)
    print(*lines, quiet_line(quiet))


if __name__ == "__main__":
    main()

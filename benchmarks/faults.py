"""Faults of six kinds put into signals: how many are found, how soon, and at how many false alarms.

    python benchmarks/faults.py

Each signal is a wave with noise and slowly wandering level, watched with an alarm rate of 0.001; half-way through, one
fault. A fault is found if there is an alarm while it lasts, or in the 15 observations after (when it ends); what chance
would find is shown by the same count on the same signals without the fault. Delays are medians over the found ones.
What comes before the faults is the same for all of them, and is watched once.
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bands import margin
from tocsin.detection import Fleet
from tocsin.evaluation.faults import FAULTS

ALARM_RATE = 0.001
POLICIES = {
    "absorb": {"learn": "absorb"},
    "hold": {"learn": "hold"},
    "hold + context": {"learn": "hold", "hold_context": True},
}
AFTER = 15
PERIOD = 48


def clean_signals(signals, length, rng):
    """A wave of amplitude 3, noise of size 1 and a level that wanders."""
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / PERIOD + rng.random(signals))
    level = np.cumsum(0.02 * rng.standard_normal((length, signals)), axis=0)
    return 3 * np.sin(phase) + level + rng.standard_normal((length, signals))


class Watch:
    """A fleet that has seen some observations, from where it can go on more than once."""

    def __init__(self, values, policy):
        fleet = Fleet(values.shape[1], alarm_rate=ALARM_RATE, **policy)
        self.alarm = fleet.run(values).alarm
        file = io.BytesIO()
        fleet.save(file)
        self.saved = file.getvalue()

    def alarms(self, values):
        """Whether there was an alarm on each observation so far, and on each of these that follow."""
        fleet = Fleet.load(io.BytesIO(self.saved))
        return np.concatenate([self.alarm, fleet.run(values).alarm])


def measure(alarm, start, length):
    """For each signal: whether it alarmed from `start` on, after how many, alarms in the fault, false-alarm rate."""
    during = alarm[start : start + length + AFTER]
    quiet = np.concatenate([alarm[start - 1500 : start], alarm[start + length + AFTER :]])
    delay = np.where(during.any(axis=0), during.argmax(axis=0), np.nan)
    return during.any(axis=0), delay, alarm[start : start + length].mean(axis=0), quiet.mean(axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=40, help="for each kind of fault")
    parser.add_argument("--length", type=int, default=9000)
    parser.add_argument("--size", type=float, default=5.0, help="of the faults, in standard deviations of the noise")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    clean = clean_signals(given.signals, given.length, rng)
    start = given.length // 2
    title = f"{given.signals} faults of each kind, size {given.size:g}, alarm rate {ALARM_RATE:g}"
    table = Table(box=SIMPLE_HEAD, title=title)
    for heading in ("fault", "policy"):
        table.add_column(heading)
    for heading in ("found", "by chance", "delay", "alarms while it lasts", "false alarms / alarm rate"):
        table.add_column(heading, justify="right")
    summary = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("detecting", total=len(FAULTS) * len(POLICIES) + len(POLICIES))
        watches, undisturbed = {}, {}
        for name, policy in POLICIES.items():
            watches[name] = Watch(clean[:start], policy)
            undisturbed[name] = watches[name].alarms(clean[start:])
            bar.advance(task)
        for fault in FAULTS.values():
            table.add_section()
            columns = [fault(clean[:, k], start, given.size, 1.0, rng) for k in range(given.signals)]
            values = np.column_stack(columns)
            for name, watch in watches.items():
                found, delay, share, false = measure(watch.alarms(values[start:]), start, fault.length)
                chance = undisturbed[name][start : start + fault.length + AFTER].any(axis=0).mean()
                middle = f"{np.nanmedian(delay):.0f}" if found.any() else "-"
                band = f"{false.mean() / ALARM_RATE:.2f} ± {margin(false / ALARM_RATE, 0.05):.2f}"
                table.add_row(
                    fault.name, name, f"{found.mean():.2f}", f"{chance:.2f}", middle, f"{share.mean():.2f}", band
                )
                summary[fault.name, name] = found.mean()
                bar.advance(task)
    Console(width=130, highlight=False).print(table)
    means = {policy: np.mean([summary[fault, policy] for fault in FAULTS]) for policy in POLICIES}
    print(" ".join(f"{policy.replace(' + ', '_')}_found={mean:.3f}" for policy, mean in means.items()))


if __name__ == "__main__":
    main()

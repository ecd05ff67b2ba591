"""What 1,000 signals without faults are told under one budget, and what a share of false incidents gives with faults.

    python benchmarks/budget.py

The signals are hourly, of all families, and judged with the light preset. For each budget: how many messages there were
over how many it allows, in all and in each quarter of the time; incidents that begin at the same observation are one
event with one message. The same for smaller fleets. Then some signals have faults, steps of 6
standard deviations for a day, and a share of the incidents may be false: which share was, and how many faults were
found. The same for signals of white noise, where the signals' own rates are right.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tocsin.detection import Fleet
from tocsin_bench.families import FAMILIES

BUDGETS = (1, 5, 50)
# Smaller fleets, all with this budget.
SMALLER, THEIRS = (10, 135), 5
SHARES = (0.1, 0.3)
WEEK, DAY = 168, 24
FAULT_SIZE = 6.0


def make_signals(families, signals, length, seed):
    """Values `[T, S]` of families in turn."""
    rng = np.random.default_rng(seed)
    sizes = [len(part) for part in np.array_split(np.arange(signals), len(families))]
    parts = [FAMILIES[family](rng, size, length) for family, size in zip(families, sizes, strict=True) if size]
    return np.concatenate([np.asarray(part).reshape(length, -1) for part in parts], axis=1)


def opened(values, budget, threads):
    """Where incidents were told, `[T, S]`, and from when on each signal was watched."""
    fleet = Fleet(values.shape[1], budget=budget, interval="1h", preset="light", threads=threads)
    verdicts = fleet.run_arrays(values)
    return verdicts, int(np.argmax((~np.isnan(verdicts.rate)).mean(axis=1) > 0.5))


def with_faults(values, seed):
    """The values with a fault in every fifth signal, somewhere in the second half, and where the faults are."""
    rng = np.random.default_rng(seed)
    values, at = values.copy(), {}
    for signal in range(0, values.shape[1], 5):
        begin = at[signal] = int(rng.integers(len(values) // 2, len(values) - 2 * DAY))
        values[begin : begin + DAY, signal] += FAULT_SIZE * np.nanstd(values[:begin, signal])
    return values, at


def false_share(values, share, seed, threads):
    """Which share of the incidents was false, and which of the faults were found."""
    values, at = with_faults(values, seed)
    verdicts, _ = opened(values, share, threads)
    true = np.zeros(values.shape, dtype=bool)
    for signal, begin in at.items():
        true[begin : begin + 2 * DAY, signal] = True  # its end is part of it
    told = np.argwhere(verdicts.opened)
    right = np.array([true[step, signal] for step, signal in told], dtype=bool)
    found = {int(signal) for (_, signal), hit in zip(told, right, strict=True) if hit}
    return (float(np.mean(~right)) if right.size else 0.0), len(found) / len(at), len(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--weeks", type=int, default=26)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    screen, began = Console(width=110, highlight=False), time.perf_counter()
    length = WEEK * given.weeks
    values = make_signals(list(FAMILIES), given.signals, length, given.seed)
    table = Table(box=SIMPLE_HEAD, title="messages about signals without faults, over their budget")
    for heading in ("signals", "budget", "messages", "over the budget", "quarter by quarter"):
        table.add_column(heading, justify="right")
    over = {}
    for signals, budget in (*((given.signals, one) for one in BUDGETS), *((few, THEIRS) for few in SMALLER)):
        some = values if signals == given.signals else make_signals(list(FAMILIES), signals, length, given.seed + 1)
        verdicts, first = opened(some, f"{budget}/week", given.threads)
        steps = np.flatnonzero(verdicts.opened.any(axis=1))
        allowed = budget * (length - first) / WEEK
        over[signals, budget] = steps.size / allowed
        quarters = np.histogram(steps, np.linspace(first, length, 5))[0] / (allowed / 4)
        parts = " ".join(f"{part:.2f}" for part in quarters)
        table.add_row(str(signals), f"{budget}/week", str(steps.size), f"{over[signals, budget]:.2f}", parts)
    screen.print(table)
    table = Table(box=SIMPLE_HEAD, title="a share of incidents may be false, every fifth signal has a fault")
    for heading in ("signals", "may be false", "incidents", "were false", "faults found"):
        table.add_column(heading, justify="right")
    false = {}
    noise = next(iter(FAMILIES))
    few = given.signals // 4
    for name, some in (
        ("all families", values[: len(values) // 2, :: given.signals // few]),
        (noise, make_signals([noise], few, length // 2, given.seed)),
    ):
        for share in SHARES:
            false[name, share], found, told = false_share(some, share, given.seed, given.threads)
            table.add_row(name, f"{share:g}", str(told), f"{false[name, share]:.2f}", f"{found:.2f}")
    screen.print(table)
    screen.print(f"{given.weeks} weeks, {time.perf_counter() - began:.0f} s")
    pairs = [f"budget_{budget}={over[given.signals, budget]:.3f}" for budget in BUDGETS]
    pairs += [f"signals_{few}={over[few, THEIRS]:.3f}" for few in SMALLER]
    pairs += [f"false_{share:g}={false[noise, share]:.3f}" for share in SHARES]
    print(" ".join(pairs), f"worst_budget={max(abs(ratio - 1) for ratio in over.values()):.3f}")


if __name__ == "__main__":
    main()

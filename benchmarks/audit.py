"""How soon the audit objects to a promise that is broken, and how often to one that is kept.

    python benchmarks/audit.py

Signals of independent values keep the promise P(p < alpha) = alpha; on those whose volatility comes and goes p is too
small too often, in bursts. Detectors alarm by p (promise="observations"), since a closed loop would keep their number
down. Each audit is read after every 50 observations, and what counts is whether it ever objected. In the last line:
"too many" on volatile signals, and any objection to independent ones, by the worse of the detectors without views of
stretches: with such views alarms come in long clusters even if all is well.
"""

import argparse
import time
from fractions import Fraction

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin.detection import Fleet
from tocsin_bench.families import FAMILIES

ALPHA = 0.01
LOOK_EVERY = 50
DETECTORS = {
    "scores": {"forecaster": None},
    "error": {"forecaster": "last-value", "views": ["error"]},
    "all views": {"forecaster": "last-value"},
}
WITHOUT_STRETCHES = ("scores", "error")
VOLATILITY, INDEPENDENT = "stochastic-volatility", "independent"


def objections(family, detector, signals, length, seed):
    """After which observation each audit first said "too many", and "too few", NaN for never; and the last audits."""
    values = FAMILIES[family](np.random.default_rng(seed), signals, length)
    if detector == "scores":
        values = np.abs(values)
    fleet = Fleet(signals, alarm_rate=ALPHA, promise="observations", **DETECTORS[detector])
    first_said = np.full((2, signals), np.nan)
    for first in range(0, length, LOOK_EVERY):
        fleet.run_arrays(values[first : first + LOOK_EVERY])
        audits = [fleet.audit(signal) for signal in range(signals)]
        for said, words in zip(first_said, ("too many", "too few"), strict=True):
            said[np.isnan(said) & [audit.finding == words for audit in audits]] = first + LOOK_EVERY
    return first_said, audits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--volatile", type=int, default=20, help="signals whose volatility comes and goes")
    parser.add_argument("--independent", type=int, default=200, help="signals of independent values")
    parser.add_argument("--length", type=int, default=5000, help="observations of each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.perf_counter()
    table = Table(box=SIMPLE_HEAD, title="signals on which the audit said so, at any time")
    for heading in ("family", "detector"):
        table.add_column(heading)
    for heading in ("too many", "median after", "too few", "seen/promised", "dispersion"):
        table.add_column(heading, justify="right")
    shares = {VOLATILITY: [], INDEPENDENT: []}
    for family, signals in ((VOLATILITY, given.volatile), (INDEPENDENT, given.independent)):
        for detector in DETECTORS:
            said, audits = objections(family, detector, signals, given.length, given.seed)
            many, few = (~np.isnan(said)).sum(axis=1)
            after = f"{np.nanmedian(said[0]):.0f}" if many else ""
            ratio, spread = (np.mean([getattr(audit, name) for audit in audits]) for name in ("rate", "dispersion"))
            counts = (f"{many} of {signals}", after, f"{few} of {signals}")
            table.add_row(family, detector, *counts, f"{ratio / ALPHA:.2f}", f"{spread:.1f}")
            if detector in WITHOUT_STRETCHES:
                objected = int(many if family == VOLATILITY else (~np.isnan(said)).any(axis=0).sum())
                shares[family].append((Fraction(objected, signals), f"{objected}/{signals}"))
    screen = Console(width=110, highlight=False)
    screen.print(table)
    screen.print(f"{given.length} observations of each, {time.perf_counter() - started:.0f} s")
    print(f"objects_to_volatility={min(shares[VOLATILITY])[1]} objects_to_iid={max(shares[INDEPENDENT])[1]}")


if __name__ == "__main__":
    main()

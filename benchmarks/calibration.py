"""False incidents of the default detector on signals without anomalies, of many families.

    python benchmarks/calibration.py

Every family is watched at an alarm rate of 0.01 and of 0.001, which are rates of incidents. The numbers are incidents
that began after warm-up over the promised number, so that 1 is the promise; behind ±, the band that holds the mean over
such signals with 95% confidence, from the spread over the signals. Beside them, the share of observations with
p < alpha over alpha: p is calibrated observation by observation, whatever becomes an incident.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bands import margin
from tocsin.detection import Fleet
from tocsin.evaluation.families import FAMILIES

ALPHAS = (0.01, 0.001)


def measure(family, alpha, signals, length, seed):
    """For each signal, its incidents and its observations with p < alpha, both over the promised number."""
    values = FAMILIES[family](np.random.default_rng(seed), signals, length)
    verdicts = Fleet(signals, alarm_rate=alpha).run(values)
    judged = verdicts.warm & ~np.isnan(verdicts.p)
    promised = alpha * judged.sum(axis=0)
    if not promised.all():
        sys.exit(f"{length} observations are too few for an alarm rate of {alpha:g}: some signals never became warm")
    incidents = (judged & verdicts.opened).sum(axis=0)
    low = (judged & (verdicts.p < alpha)).sum(axis=0)
    return incidents / promised, low / promised


def run(given):
    """`{(family, alpha): what was measured}`, on several cores."""
    cells = [(family, alpha) for family in given.family or FAMILIES for alpha in ALPHAS]
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        futures = [pool.submit(measure, *cell, given.signals, given.length, given.seed) for cell in cells]
        done = bar.track(futures, description="families")
        return dict(zip(cells, (future.result() for future in done), strict=True))


def show(found, screen):
    """A row for each family."""
    table = Table(box=SIMPLE_HEAD, title="false incidents, and p-values under alpha, over the promise")
    table.add_column("family")
    for alpha in ALPHAS:
        for heading in (f"incidents at {alpha:g}", f"p < {alpha:g}"):
            table.add_column(heading, justify="right")
    for family in dict.fromkeys(family for family, _ in found):
        row = []
        for alpha in ALPHAS:
            incidents, low = found[family, alpha]
            row += [f"{incidents.mean():.3f} ± {margin(incidents, 0.05):.3f}", f"{low.mean():.3f}"]
        table.add_row(family, *row)
    screen.print(table)


def worst(found, alpha):
    """How far the family that is farthest from the promise is from it."""
    return max(abs(incidents.mean() - 1) for (_, at), (incidents, _) in found.items() if at == alpha)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=10, help="of each family")
    parser.add_argument("--length", type=int, default=10_000, help="observations of each")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only this one; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    found = run(given)
    screen = Console(width=130, highlight=False)
    show(found, screen)
    screen.print(f"{given.signals} signals of {given.length} observations, {time.perf_counter() - started:.0f} s")
    print(f"worst_01={worst(found, ALPHAS[0]):.3f} worst_001={worst(found, ALPHAS[1]):.3f}")


if __name__ == "__main__":
    main()

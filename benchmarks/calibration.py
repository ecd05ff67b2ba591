"""False alarms of the default detector on signals without anomalies, of many families.

    python benchmarks/calibration.py

Every family is watched at an alarm rate of 0.01 and of 0.001. The numbers are shares of observations with p < alpha
after warm-up, divided by alpha, so that 1 is the promise; behind ±, the band that holds the mean over such signals with
95% confidence, from the spread over the signals. Beside them, incidents (alarms with at most 10 observations between
them) over the promised number of alarms: one incident can hold several.
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
from tocsin.evaluation.metrics import in_operation

ALPHAS = (0.01, 0.001)
GAP = 10


def measure(family, alpha, signals, length, seed):
    """For each signal, its alarms and its incidents over the promised number of alarms."""
    values = FAMILIES[family](np.random.default_rng(seed), signals, length)
    verdicts = Fleet(signals, alarm_rate=alpha).run(values)
    judged = verdicts.warm & ~np.isnan(verdicts.p)
    promised = alpha * judged.sum(axis=0)
    if not promised.all():
        sys.exit(f"{length} observations are too few for an alarm rate of {alpha:g}: some signals never became warm")
    alarms = (judged & (verdicts.p < alpha)).sum(axis=0)
    incidents = [in_operation(np.zeros(length), column, gap=GAP).incidents for column in (verdicts.alarm & judged).T]
    return alarms / promised, incidents / promised


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
    table = Table(box=SIMPLE_HEAD, title="false alarms and incidents over the promise")
    table.add_column("family")
    for alpha in ALPHAS:
        for heading in (f"alarms at {alpha:g}", "incidents"):
            table.add_column(heading, justify="right")
    for family in dict.fromkeys(family for family, _ in found):
        row = []
        for alpha in ALPHAS:
            alarms, incidents = found[family, alpha]
            row += [f"{alarms.mean():.3f} ± {margin(alarms, 0.05):.3f}", f"{incidents.mean():.3f}"]
        table.add_row(family, *row)
    screen.print(table)


def worst(found, alpha):
    """How far the family that is farthest from the promise is from it."""
    return max(abs(alarms.mean() - 1) for (_, at), (alarms, _) in found.items() if at == alpha)


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

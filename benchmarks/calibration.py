"""False-alarm rates on signals without anomalies, for every merge, with and without recalibration.

    python benchmarks/calibration.py

Every horizon's scorer runs once for each family of signals and kind of detector, as a `Fleet` would run it (which is
checked first, bit for bit); the merges and the second scorer then run on its p-values. All numbers are shares of
observations with p < alpha after warm-up, divided by alpha, so that 1 is the promise; behind ±, the band that holds the
mean over such signals with 95% confidence, from the spread over the signals.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bands import margin
from tocsin import MERGES, W1ACAS, SlidingWindow
from tocsin.detection import Fleet
from tocsin.detection.alarm_rate import sizes
from tocsin.detection.alignment import Alignment
from tocsin.detection.settings import DEFAULT_FORECASTER
from tocsin.evaluation.families import FAMILIES
from tocsin.forecasting import make_forecaster

ALPHAS = (0.01, 0.001)
HORIZONS = 15
FEATURES = 3
LEARNING_RATE = 0.01
# So many observations are forecast at once: quantiles take nine times the memory of the medians that are needed here.
TOGETHER = 1000


def errors_of(forecaster, values, threads):
    """Absolute errors of every horizon, `(T, S, H)`; NaN until the forecaster has settled."""
    steps, signals = values.shape
    predicted = np.empty((steps, signals, HORIZONS))

    def follow(columns):
        rows = np.arange(columns.size)
        session, alignment = forecaster.open(columns.size, HORIZONS), Alignment(columns.size, HORIZONS, 1)
        for first in range(0, steps, TOGETHER):
            part = slice(first, first + TOGETHER)
            medians = session.run(values[part, columns]).median
            ages = np.zeros(medians.shape[:2], dtype=np.int64)
            predicted[part, columns] = alignment.push(medians, ages, rows)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(follow, np.array_split(np.arange(signals), min(threads, signals))))
    errors = np.abs(values[..., np.newaxis] - predicted)
    errors[: forecaster.settles] = np.nan
    return errors


def horizon_ranks(errors, size, threads):
    """p-values and ranks of every horizon, `(T, S, H)`."""
    steps, signals, horizons = errors.shape
    scorer = W1ACAS(
        signals * horizons, alpha_c=size.alpha_c, window=size.window, prior="extend", optimizer="sgd",
        learning_rate=LEARNING_RATE * size.window, threads=threads,
    )  # fmt: skip
    p, rank = scorer.run_ranked(errors.reshape(steps, -1))
    return p.reshape(errors.shape), rank.reshape(errors.shape)


def recalibrated(merged, size):
    """p-values of merged values `(T, S)` among their own past; NaN during warm-up."""
    there = np.cumsum(~np.isnan(merged), axis=0)
    scores = np.where(there > size.settled, -merged, np.nan)
    p = SlidingWindow(merged.shape[1], window=size.recalibration, dtype="float64").run(scores)
    return np.where(there > size.settled + size.believed, p, np.nan)


def rates(p, alpha):
    """For each signal, the share of p < alpha among those that are not NaN, divided by alpha."""
    return np.nanmean(np.where(np.isnan(p), np.nan, p < alpha), axis=0) / alpha


def check_against_fleet(forecaster, values):
    """The shortcut gives what the detector gives."""
    errors = errors_of(forecaster, values, 1)
    size = sizes(0.01, recalibrate=True, window=None)
    p = recalibrated(MERGES["cauchy"](horizon_ranks(errors, size, 1)[1]), size)
    verdicts = Fleet(values.shape[1], forecaster=forecaster, merge="cauchy").run(values)
    warm = ~np.isnan(p)
    if not (np.array_equal(warm, verdicts.warm & ~np.isnan(verdicts.p)) and np.array_equal(p[warm], verdicts.p[warm])):
        sys.exit("the shortcut of this benchmark does not give the numbers of the detector")


def measure(forecaster, family, signals, length, seed, threads):
    """`{(merge, alpha, recalibrate): ratios of the signals}`, those of merged features with "features: " before."""
    rng = np.random.default_rng(seed)
    found = {}
    # Independent signals of the same kind as the features of one: medians over the horizons, then the merge.
    medians = []
    for _ in range(FEATURES):
        errors = errors_of(forecaster, FAMILIES[family](rng, signals, length), threads)
        rank = horizon_ranks(errors, sizes(ALPHAS[0], recalibrate=True, window=None), threads)[1]
        medians.append(MERGES["median"](rank))
    features = np.stack(medians, axis=-1)
    for name, merge in MERGES.items():
        for alpha in ALPHAS:
            size = sizes(alpha, recalibrate=True, window=None)
            found[name, alpha, True] = rates(recalibrated(merge(rank), size), alpha)
            found[f"features: {name}", alpha, True] = rates(recalibrated(merge(features), size), alpha)
    for alpha in ALPHAS:
        size = sizes(alpha, recalibrate=False, window=None)
        p = horizon_ranks(errors, size, threads)[0]
        p[: size.window] = np.nan
        for name, merge in MERGES.items():
            found[name, alpha, False] = rates(merge(p), alpha)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forecaster", default=DEFAULT_FORECASTER, help="by its name")
    parser.add_argument("--signals", type=int, default=50, help="of each family")
    parser.add_argument("--length", type=int, default=20_000, help="observations of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    started = time.perf_counter()
    forecaster = make_forecaster(given.forecaster)
    check_against_fleet(forecaster, FAMILIES["autoregressive"](np.random.default_rng(given.seed), 2, 3000))
    found = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for family in bar.track(list(FAMILIES), description="families"):
            found[family] = measure(forecaster, family, given.signals, given.length, given.seed, given.threads)
    screen = Console(width=150, highlight=False)
    for recalibrate in (True, False):
        for alpha in ALPHAS:
            table = Table(box=SIMPLE_HEAD, title=f"alarm rate / alpha at alpha = {alpha:g}, "
                          f"{'with' if recalibrate else 'without'} recalibration")  # fmt: skip
            table.add_column("merge")
            for family in FAMILIES:
                table.add_column(family, justify="right")
            merges = [*MERGES, *(f"features: {name}" for name in MERGES if recalibrate)]
            for name in merges:
                cells = [found[family][name, alpha, recalibrate] for family in FAMILIES]
                table.add_row(name, *(f"{cell.mean():.3f} ± {margin(cell, 0.05):.3f}" for cell in cells))
            screen.print(table)
    with_recalibration = {
        (family, *key): abs(ratio.mean() - 1)
        for family, cells in found.items()
        for key, ratio in cells.items()
        if key[2]
    }
    worst = max(with_recalibration, key=with_recalibration.get)
    screen.print(
        f"{given.forecaster}, {given.signals} signals of each family, {given.length} observations, "
        f"{time.perf_counter() - started:.0f} s"
    )
    screen.print(f"worst with recalibration: {worst[0]}, {worst[1]}, alpha = {worst[2]:g}")
    print(f"worst_error={with_recalibration[worst]:.3f}")


if __name__ == "__main__":
    main()

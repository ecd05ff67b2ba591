"""What noise gets from each metric, and the speed of the metrics, beside TSB-AD's where that is installed:

    python benchmarks/metrics.py
    python benchmarks/metrics.py --tsb-ad /tmp/tsb-ad/bin/python

TSB-AD wants another numpy than Tocsin, so it runs in an environment of its own, of which the Python is given;
`tests/evaluation/metrics/record_tsb_ad.py` says how to make one. Both get the same labels and p-values of a signal with
ten events, on one core, in rounds that alternate. Times are the processor's own, so that others on the machine do not
lengthen the longer job, and the best of their rounds.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy comes in, here and in what is started from here

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin_bench.metrics import (
    ALARM_METRICS,
    MIN_MAX_THRESHOLDS,
    THRESHOLDS,
    affiliation,
    average_precision,
    evaluate,
    find_window,
    threshold_curve,
    volume_under_surface,
)

WINDOW, EVENTS = 125, 10

# Run by the other Python: the seconds of each job, and its result.
TSB_AD = """
import json, sys, time, warnings
import numpy as np
from TSB_AD.evaluation.basic_metrics import basic_metricor, generate_curve
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
labels, p, thresholds, window = data["labels"], data["p"], data["thresholds"], int(data["window"])
start = time.process_time()
vus = generate_curve(labels, 1 - p, window, "opt", 250)[-1]
vus_s = time.process_time() - start
start = time.process_time()
near = [basic_metricor().metric_Affiliation(labels, 1 - p, preds=(p <= level).astype(int)) for level in thresholds]
print(json.dumps({"vus_s": vus_s, "affiliation_s": time.process_time() - start, "vus": vus, "affiliation": near}))
"""

console = Console(width=120, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the metrics.")
    parser.add_argument("--tsb-ad", type=Path, metavar="PYTHON", help="the Python of an environment with TSB-AD")
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    console.print(of_noise())
    labels, p = a_case(options.points)
    console.print(own_times(labels, p))
    if options.tsb_ad is None:
        print("for the ratio to TSB-AD: --tsb-ad PYTHON, of an environment made as record_tsb_ad.py in tests/ says")
        return
    ratios = against_tsb_ad(labels, p, options.tsb_ad, options.rounds)
    print(f"vus_ratio={ratios['vus']:.0f} affiliation_ratio={ratios['affiliation']:.0f}")


def of_noise() -> Table:
    """The metrics of p-values that know nothing of the labels."""
    rng = np.random.default_rng(0)
    names = [f"{metric.replace('-', '_')}_f1" for metric in ALARM_METRICS] + ["auc_pr", "auc_roc", "vus_pr", "vus_roc"]
    table = Table(title="uniform p, 10000 observations, 5 events, means of 20 signals", box=SIMPLE_HEAD)
    for heading in ("length", *(name.removesuffix("_f1").replace("_", " ") for name in names)):
        table.add_column(heading, justify="right")
    for length in (1, 20, 100, 500):
        labels = (np.arange(10_000) - 1000) % 2000 < length
        rows = [evaluate(labels, rng.random(labels.size), window=WINDOW).row() for _ in range(20)]
        table.add_row(str(length), *(f"{np.mean([row[name] for row in rows]):.2f}" for name in names))
    return table


def a_case(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of some events, and p-values that are small now and then, more often in events."""
    rng = np.random.default_rng(0)
    labels = np.zeros(points, dtype=np.int64)
    for start in rng.integers(0, points - 100, size=EVENTS):
        labels[start : start + rng.integers(5, 100)] = 1
    p = np.ceil(2000 * rng.random(points) ** np.where(labels == 1, 3, 1)) / 2001
    return labels, p


def own_times(labels: np.ndarray, p: np.ndarray) -> Table:
    alarms, scores = p <= 0.01, 1 - p
    jobs: dict[str, Callable[[], Any]] = {
        "VUS-PR and VUS-ROC": lambda: volume_under_surface(labels, scores, WINDOW),
        "AUC-PR": lambda: average_precision(labels, scores),
        "Affiliation, one threshold": lambda: affiliation(labels, alarms),
        **{
            f"{metric}, {THRESHOLDS.size} thresholds": lambda metric=metric: threshold_curve(labels, p, metric)
            for metric in ALARM_METRICS
        },
        f"everything, {THRESHOLDS.size} thresholds": lambda: evaluate(labels, p, window=WINDOW),
        f"everything, {MIN_MAX_THRESHOLDS.size} thresholds": lambda: evaluate(
            labels, p, window=WINDOW, thresholds=MIN_MAX_THRESHOLDS
        ),
        "window": lambda: find_window(p),
    }
    table = Table(title=f"{labels.size} observations, {EVENTS} events, window {WINDOW}", box=SIMPLE_HEAD)
    table.add_column("what")
    table.add_column("ms", justify="right")
    for name, job in jobs.items():
        job()  # compiled, and in the caches
        table.add_row(name, f"{1000 * min(timed(job)[0] for _ in range(7)):.2f}")
    return table


def against_tsb_ad(labels: np.ndarray, p: np.ndarray, python: Path, rounds: int) -> dict[str, float]:
    """How many times longer TSB-AD takes, after a table of it."""
    jobs: dict[str, Callable[[], Any]] = {
        "vus": lambda: volume_under_surface(labels, 1 - p, WINDOW).pr,
        "affiliation": lambda: threshold_curve(labels, p, "affiliation").f1,
    }
    ours: dict[str, list[float]] = {name: [] for name in jobs}
    theirs: dict[str, list[float]] = {name: [] for name in jobs}
    difference = 0.0
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case.npz"
        np.savez(case, labels=labels, p=p, thresholds=THRESHOLDS, window=WINDOW)
        for _ in range(rounds):
            command = [str(python), "-c", TSB_AD, str(case)]
            answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for name, job in jobs.items():
                job()
                seconds, result = timed(job)
                ours[name].append(seconds)
                theirs[name].append(answer[f"{name}_s"])
                difference = max(difference, float(np.max(np.abs(result - np.nan_to_num(answer[name])))))
    ratios = {name: min(theirs[name]) / min(ours[name]) for name in jobs}
    table = Table(title=f"beside TSB-AD, {rounds} rounds, one core", box=SIMPLE_HEAD)
    for heading in ("what", "TSB-AD, ms", "Tocsin, ms", "ratio"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, title in {"vus": "VUS", "affiliation": f"Affiliation-F, {THRESHOLDS.size} thresholds"}.items():
        row = f"{1000 * min(theirs[name]):.0f}", f"{1000 * min(ours[name]):.2f}", f"{ratios[name]:.0f}"
        table.add_row(title, *row)
    console.print(table)
    console.print(f"largest difference of a result: {difference:.1e}")
    return ratios


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = job()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()

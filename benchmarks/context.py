"""Whether weights by context help: `ContextualScorer` beside the scorer alone, on labelled files.

    python benchmarks/context.py FOLDER...

The files are those of `tocsin bench run`, the smallest of each data set that have an anomaly. Errors of forecasts, five
steps ahead, are judged by W1-ACAS with a window of 2,000 and `prior="extend"`, and by the same with contexts that are
known before the value: its phase in the period of the calibration part (weights by lag alone if there is none), the
value before, the size of recent steps, or all three. Level and steps are in standard deviations of the calibration
part.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tocsin.conformal import MERGES, W1ACAS, ContextualScorer
from tocsin.forecasting import find_period
from tocsin_bench.files import dataset_of, find_files, read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material
from tocsin_bench.metrics import evaluate, find_window

HORIZONS, RECENT = 5, 52
BANDWIDTH = 0.5
METRICS = {"VUS-PR": "vus_pr", "PA-F1": "point_adjusted_f1", "Aff-F": "affiliation_f1", "CalErr": "calibration_error"}


def contexts_of(file):
    """What is known before each value, by name: one or more numbers for each observation."""
    values = np.nan_to_num(file.values[:, 0], nan=np.nanmean(file.values[:, 0]))
    before = np.concatenate([values[:1], values[:-1]])
    steps = np.abs(np.diff(before, prepend=before[:1]))
    recent = np.log1p(np.convolve(steps, np.ones(RECENT) / RECENT)[: values.size] / (steps.mean() or 1.0))
    period = find_period(values[: file.calibration])
    turns = 2 * np.pi * np.arange(values.size) / (period or np.inf)
    found = {"phase": np.column_stack([np.cos(turns), np.sin(turns)])}
    for name, column in (("level", before), ("steps", recent)):
        spread = column[: file.calibration].std() or 1.0
        found[name] = ((column - column[: file.calibration].mean()) / spread)[:, np.newaxis]
    return found | {"all three": np.column_stack(list(found.values()))}


def measure(path):
    """The metrics of each kind of context on one file."""
    file = read_file(path)
    errors = make_material(file, ForecasterChoice("embedded", {"context_length": 52}), HORIZONS).errors[:, 0]
    window, evaluated = find_window(file.values[:, 0]), slice(file.calibration, None)

    def scorer():
        return W1ACAS(HORIZONS, prior="extend", dtype="float64")

    judged = {"by lag alone": scorer().run(errors)}
    for name, contexts in contexts_of(file).items():
        bandwidth = np.full(contexts.shape[1], BANDWIDTH)
        judged[name] = ContextualScorer(scorer(), bandwidth).run(errors, contexts)
    rows = {}
    for name, p in judged.items():
        row = evaluate(file.labels[evaluated], MERGES["median"](p)[evaluated], window=window).row()
        rows[name] = [row[metric] for metric in METRICS.values()]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=3, help="files of each data set")
    given = parser.parse_args()
    by_set = defaultdict(list)
    for path in sorted(find_files(given.folders), key=lambda path: path.stat().st_size):
        if len(by_set[dataset_of(path.stem)]) < given.limit and not read_file(path).problem:
            by_set[dataset_of(path.stem)].append(path)
    chosen = dict(sorted(by_set.items()))
    found = defaultdict(dict)
    for name, path in track([(name, path) for name, paths in chosen.items() for path in paths], description="files"):
        for method, row in measure(path).items():
            found[method].setdefault(name, []).append(row)
    table = Table(box=SIMPLE_HEAD, title=f"{sum(map(len, chosen.values()))} files of {', '.join(chosen)}")
    for heading in ("weights", *METRICS, "better on", "worse on"):
        table.add_column(heading, justify="left" if heading == "weights" else "right")
    alone = np.concatenate([found["by lag alone"][name] for name in chosen])
    line = {}
    for method, rows in found.items():
        means = np.mean([np.nanmean(rows[name], axis=0) for name in chosen], axis=0)
        gains = np.concatenate([rows[name] for name in chosen])[:, 0] - alone[:, 0]
        table.add_row(
            method, *(f"{mean:.3f}" for mean in means), str((gains > 0.001).sum()), str((gains < -0.001).sum())
        )
        line[f"{method.replace(' ', '_')}_vus_pr"] = f"{means[0]:.3f}"
    Console(width=120, highlight=False).print(table)
    print(" ".join(f"{name}={value}" for name, value in line.items()))


if __name__ == "__main__":
    main()

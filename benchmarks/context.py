"""Whether weights by context help: `ContextualScorer` beside the scorer alone, on labelled files.

    python benchmarks/context.py FOLDER... [--out FOLDER]

The files are those of `tocsin bench run`, the smallest of each data set that have an anomaly. Errors of forecasts, one
step ahead, are judged by W1-ACAS with a window of 2,000 and `prior="extend"`, and by the same with contexts that are
known before the value: its phase in the period of the calibration part (weights by lag alone if there is none), the
value before, the size of recent steps, or all three. Level and steps are in standard deviations of the calibration
part. With --out, the table is also written there, as context.csv, and what was measured of each file is kept, so that
an interrupted run goes on from there.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tocsin.conformal import W1ACAS, ContextualScorer
from tocsin.forecasting import find_period
from tocsin_bench.files import dataset_of, find_files, read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material
from tocsin_bench.metrics import evaluate, find_window

RECENT = 52
BANDWIDTH = 0.5
METRICS = {"VUS-PR": "vus_pr", "PA-F1": "point_adjusted_f1", "Aff-F": "affiliation_f1", "CalErr": "calibration_error"}
EQUAL = 0.001  # files whose VUS-PR differs by less are neither better nor worse


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
    errors = make_material(file, ForecasterChoice("embedded", {"context_length": 52}), 1).errors[:, 0]
    window, evaluated = find_window(file.values[:, 0]), slice(file.calibration, None)

    def scorer():
        return W1ACAS(prior="extend", dtype="float64")

    judged = {"by lag alone": scorer().run(errors)}
    for name, contexts in contexts_of(file).items():
        bandwidth = np.full(contexts.shape[1], BANDWIDTH)
        judged[name] = ContextualScorer(scorer(), bandwidth).run(errors, contexts)
    rows = {}
    for name, p in judged.items():
        row = evaluate(file.labels[evaluated], p[evaluated, 0], window=window).row()
        rows[name] = [row[metric] for metric in METRICS.values()]
    return rows


def kept(path, out):
    """What `measure` returns, from the folder if it is there."""
    if out is None:
        return measure(path)
    note = out / f"{path.stem}.json"
    if not note.exists():
        note.write_text(json.dumps(measure(path)))
    return json.loads(note.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=3, help="files of each data set")
    parser.add_argument("--out", type=Path, help="a folder for the table and what it rests on")
    given = parser.parse_args()
    by_set = defaultdict(list)
    for path in sorted(find_files(given.folders), key=lambda path: path.stat().st_size):
        if len(by_set[dataset_of(path.stem)]) < given.limit and not read_file(path).problem:
            by_set[dataset_of(path.stem)].append(path)
    chosen = dict(sorted(by_set.items()))
    found = defaultdict(dict)
    for name, path in track([(name, path) for name, paths in chosen.items() for path in paths], description="files"):
        for method, row in kept(path, given.out).items():
            found[method].setdefault(name, []).append(row)
    alone = np.concatenate([found["by lag alone"][name] for name in chosen])[:, 0]
    rows = []
    for method, by_file in found.items():
        of_sets = np.array([np.nanmean(by_file[name], axis=0) for name in chosen])
        gains = np.concatenate([by_file[name] for name in chosen])[:, 0] - alone
        means = dict(zip(METRICS, of_sets.mean(axis=0), strict=True))
        counts = {"better on": int((gains > EQUAL).sum()), "worse on": int((gains < -EQUAL).sum())}
        rows.append({"weights": method} | means | counts | dict(zip(chosen, of_sets[:, 0], strict=True)))
    table = Table(box=SIMPLE_HEAD, title=f"{alone.size} files; VUS-PR also by data set")
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "weights" else "right")
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=132, highlight=False).print(table)
    if given.out is not None:
        with (given.out / "context.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    print(" ".join(f"{row['weights'].replace(' ', '_')}_vus_pr={row['VUS-PR']:.3f}" for row in rows))


if __name__ == "__main__":
    main()

"""Examples of detection: a few signals with their p-values and what was learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tocsin_bench.metrics import Marks
from tocsin_bench.report.measures import forecaster_order, label, method_order
from tocsin_bench.report.pictures import DOTS, literal
from tocsin_bench.results import BenchmarkResults, Floats, MethodRun

MOST_EXAMPLES = 8  # as many as the paper has
ALARM_RATE = 0.01


def examples_of(results: BenchmarkResults) -> list[tuple[MethodRun, Path, Path]]:
    """A few runs whose signal and trace were kept, of W1-ACAS if there is one, from as many data sets as there are."""
    by_file: dict[str, MethodRun] = {}
    # Methods without a forecaster give scores, not p-values.
    runs = (run for run in results.runs() if run.status == "ok" and run.forecaster)
    for run in sorted(runs, key=lambda run: (method_order(run.method), forecaster_order(run.forecaster))):
        kept = results.signal_of(run.file).is_file() and results.trace_of(*run.key).is_file()
        if kept and run.file not in by_file:
            by_file[run.file] = run
    seen: dict[str, int] = {}
    ranked = []
    # Files with something to find come first.
    for run in sorted(by_file.values(), key=lambda run: (bool(run.problem), run.file)):
        seen[run.dataset] = seen.get(run.dataset, 0) + 1
        ranked.append((seen[run.dataset], run.dataset, run))
    chosen = [run for *_, run in sorted(ranked, key=lambda item: item[:2])[:MOST_EXAMPLES]]
    return [(run, results.signal_of(run.file), results.trace_of(*run.key)) for run in chosen]


def draw_examples(examples: Sequence[tuple[MethodRun, Path, Path]], path: Path) -> None:
    """Values over p-values, with the weights beside them, one example under the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2 * len(examples)), layout="constrained")
    for part, (run, signal_path, trace_path) in zip(
        figure.subfigures(len(examples), squeeze=False)[:, 0], examples, strict=True
    ):
        with np.load(signal_path) as signal, np.load(trace_path) as trace:
            values, labels, first = signal["values"], Marks(signal["labels"] > 0), int(signal["first_evaluated"])
            p = np.asarray(trace["p"], dtype=np.float64)
            weights, errors = (
                np.asarray(trace[name], dtype=np.float64) if name in trace else np.empty(0)
                for name in ("weights", "errors")
            )
        grid = part.add_gridspec(2, 2, width_ratios=[3.2, 1], height_ratios=[1.3, 1])
        upper = part.add_subplot(grid[0, 0])
        lower = part.add_subplot(grid[1, 0], sharex=upper)
        part.suptitle(literal(f"{run.dataset}: {run.file}, {label(run.forecaster, run.method)}"), fontsize=10)
        _draw_values(upper, values.reshape(len(values), -1), p)
        _draw_p(lower, p)
        for axes in (upper, lower):
            for start, stop in zip(labels.starts, labels.stops, strict=True):
                axes.axvspan(start - 0.5, stop - 0.5, color="#c00000", alpha=0.18, linewidth=1)
            axes.axvspan(-0.5, first - 0.5, color="0.5", alpha=0.12, linewidth=0)
        upper.set_title("grey: calibration, red: labelled, dots: alarms at .01", fontsize=8, loc="right", color="0.4")
        upper.set_xlim(-0.5, len(values) - 0.5)
        upper.tick_params(labelbottom=False)
        if weights.size:
            _draw_weights(part.add_subplot(grid[:, 1]), weights.reshape(-1, weights.shape[-1]).mean(axis=0), errors)
    figure.savefig(path, dpi=DOTS)


def _draw_values(axes: Any, values: Floats, p: Floats) -> None:
    if values.shape[1] > 1:
        # Features of all sizes in one panel: each in units of its own spread.
        spread = np.nanstd(values, axis=0)
        values = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0)
    several = values.shape[1] > 1
    axes.plot(values, linewidth=0.5 if several else 0.8, **({"alpha": 0.7} if several else {"color": "#1f4e79"}))
    alarms = np.flatnonzero(p <= ALARM_RATE)
    if not several:
        axes.plot(alarms, values[alarms, 0], "o", color="#c00000", markersize=3)
    axes.set_ylabel("values, scaled" if several else "value")
    axes.grid(alpha=0.2)


def _draw_p(axes: Any, p: Floats) -> None:
    alarms = np.flatnonzero(p <= ALARM_RATE)
    axes.plot(p, ".", color="0.45", markersize=1.5)
    axes.plot(alarms, p[alarms], "o", color="#c00000", markersize=3)
    axes.axhline(ALARM_RATE, color="#c00000", linewidth=0.8)
    axes.set_yscale("log", nonpositive="clip")
    axes.set(ylabel="p", xlabel="observation")
    axes.grid(alpha=0.2)


def _draw_weights(axes: Any, weights: Floats, errors: Floats) -> None:
    lags = np.arange(1, weights.size + 1)
    if errors.size:
        behind = axes.twinx()
        behind.plot(lags[: errors.size], errors[: weights.size], color="#1f4e79", linewidth=0.5, alpha=0.6)
        behind.set_ylabel("error, mean over horizons", fontsize=8, color="#1f4e79")
    axes.fill_between(lags, weights, step="mid", color="#4f8a4f", linewidth=0)
    axes.set(xlabel="lag in observations", xlim=(1, max(weights.size, 2)), ylim=(0, 1.05))
    axes.set_title("learned weights over past errors", fontsize=10)

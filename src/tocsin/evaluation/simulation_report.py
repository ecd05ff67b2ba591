"""The simulation's results as readable tables, as CSV and as a picture."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.evaluation.simulation import ALPHA_C, CURVE, METHODS, RATES, WINDOW, Floats, MethodOutcome, ScenarioResult

DECILES = [f"{low / 10:.1f}-{(low + 1) / 10:.1f}" for low in range(10)]


def summary_table(results: Iterable[ScenarioResult]) -> Table:
    """Calibration gap, error and alarm rates of every method, scenario by scenario."""
    table = _table(
        "Calibration: means over the realisations (gap: ± standard deviation)",
        ["gap", "error", *(f"P(p<={alpha:g})" for alpha in RATES)],
    )
    table.caption = "gap: W1 distance from uniform. error: mean |p - true p|. A rate should be its alpha."
    for result in results:
        _add_scenario(table, result)
        for outcome in result.outcomes:
            rates = [f"{np.mean(outcome.rates[alpha]):.4f}" for alpha in RATES]
            table.add_row(f"  {outcome.method.name}", _spread(outcome.gap), f"{np.mean(outcome.error):.4f}", *rates)
    return table


def decile_table(results: Iterable[ScenarioResult]) -> Table:
    """Mean |p - true p| by tenth of the true p."""
    table = _table("Error: mean |p - true p| by tenth of the true p", [f"<{(k + 1) / 10:.1f}" for k in range(10)])
    for result in results:
        _add_scenario(table, result)
        for outcome in result.outcomes:
            table.add_row(f"  {outcome.method.name}", *(f"{error:.3f}" for error in outcome.decile_errors))
    return table


def _table(title: str, headings: list[str]) -> Table:
    """A table that fits a terminal of 80 columns: no frame, and scenarios as lines of their own."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("scenario\n  method", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _add_scenario(table: Table, result: ScenarioResult) -> None:
    table.add_section()
    table.add_row(result.scenario.name, style="bold")


def _spread(values: Floats) -> str:
    return f"{np.mean(values):.4f} ± {_deviation(values):.4f}"


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def write_csv(results: Iterable[ScenarioResult], path: Path, *, seed: int) -> None:
    """One row for each scenario and method, with the seed and the settings that W1-ACAS was given on the scenario."""
    rows = [_row(outcome, seed) for result in results for outcome in result.outcomes]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _row(outcome: MethodOutcome, seed: int) -> dict[str, str | int | float]:
    row: dict[str, str | int | float] = {
        "scenario": outcome.scenario.name,
        "method": outcome.method.name,
        "seed": seed,
        "realisations": outcome.gap.size,
        "length": outcome.length,
        "alpha_c": ALPHA_C,
        "window": WINDOW,
        "batch": outcome.scenario.batch,
        "learning_rate": outcome.scenario.learning_rate,
        "gap": float(np.mean(outcome.gap)),
        "gap_sd": _deviation(outcome.gap),
        "error": float(np.mean(outcome.error)),
        "error_sd": _deviation(outcome.error),
    }
    for alpha, rates in outcome.rates.items():
        row[f"rate_{alpha:g}"] = float(np.mean(rates))
        row[f"rate_{alpha:g}_sd"] = _deviation(rates)
    row.update({f"error_{decile}": float(error) for decile, error in zip(DECILES, outcome.decile_errors, strict=True)})
    return row


def draw_figure(results: list[ScenarioResult], path: Path) -> None:
    """The paper's three panels, a row for each scenario: signal, calibration curve, error by tenth of the true p."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 3.6 * len(results)), layout="constrained")
    for result, (signal, curve, error) in zip(results, figure.subplots(len(results), 3, squeeze=False), strict=True):
        _draw_signal(signal, result)
        curve.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="ideal")
        for outcome in result.outcomes:
            look = _look(outcome)
            curve.plot(CURVE, outcome.curve, label=outcome.method.name, **look)
            error.plot(np.arange(10) / 10 + 0.05, outcome.decile_errors, marker="o", markersize=3, **look)
        curve.set(title="calibration", xlabel="alpha", ylabel="P(p <= alpha)", xlim=(0, 1), ylim=(0, 1))
        curve.legend(loc="lower right", fontsize="small")
        error.set(title="error by tenth of the true p", xlabel="true p", ylabel="mean |p - true p|", xlim=(0, 1))
        error.set_ylim(bottom=0)
    figure.savefig(path, dpi=110)


def _draw_signal(axes: Any, result: ScenarioResult) -> None:
    shown = slice(0, result.scenario.shown)
    errors, mean, scale = (
        values[shown, 0] for values in (result.simulated.errors, result.simulated.mean, result.simulated.scale)
    )
    time = np.arange(errors.size)
    axes.plot(time, errors, ".", markersize=1.5, color="0.6", label="observed")
    axes.fill_between(time, mean - 2 * scale, mean + 2 * scale, alpha=0.3, linewidth=0, label="mean ± 2 scale")
    axes.axhline(0, color="black", linewidth=0.8, linestyle="--", label="forecast")
    low, high = np.percentile(errors, [0.2, 99.8])
    margin = 0.2 * (high - low)
    axes.set_title(f"{result.scenario.name}: {result.scenario.description}", fontsize="medium")
    axes.set(xlabel="time", ylabel="error")
    axes.set_ylim(low - margin, high + margin)
    axes.legend(loc="upper left", fontsize="small")


def _look(outcome: MethodOutcome) -> dict[str, Any]:
    """W1-ACAS bold, the others dashed on top of it, so that coinciding curves stay visible."""
    place = list(METHODS).index(outcome.method.name)
    ours = outcome.method.name.startswith("w1-acas")
    return {
        "color": f"C{place}",
        "linewidth": 2.2 if ours else 1.3,
        "linestyle": "-" if ours else (2 * place, (4, 3)),
        "zorder": 3 if ours else 4,
    }

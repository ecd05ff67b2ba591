"""What each setting of W1-ACAS contributes: one at a time is changed, the others keep the paper's values."""

from collections.abc import Sequence
from pathlib import Path

from tocsin_bench.forecast_errors import ForecasterChoice
from tocsin_bench.methods import METHODS, Method
from tocsin_bench.report.measures import MAIN
from tocsin_bench.report.summaries import MethodGroup, Spread, groups_of
from tocsin_bench.results import MethodRun
from tocsin_bench.runner import RunPlan

UNCHANGED = METHODS["w1-acas-paper"]
SETTINGS: dict[str, tuple[float, ...]] = {
    "horizons": (1, 2, 5, 10, 15),
    "learning_rate": (0.0001, 0.0003, 0.001, 0.003, 0.01),
    "batch": (2, 5, 10, 20, 50),
    "alpha_c": (0.002, 0.005, 0.01, 0.02, 0.05),
}
"""The settings that are changed, and the values that they are given."""

HORIZONS = int(max(SETTINGS["horizons"]))
_COLUMNS = ("setting", "value", "dataset", "metric", "mean", "sd", "n")


def ablation_plan(forecasters: Sequence[ForecasterChoice], settings: Sequence[str]) -> RunPlan:
    """The paper's settings, every change of one of them, and weights that never change."""
    changed = [_changed(setting, value) for setting in settings for value in SETTINGS[setting]]
    methods = {method.name: method for method in (UNCHANGED, METHODS["fixed-window"], *changed)}
    return RunPlan(tuple(forecasters), tuple(methods.values()), HORIZONS)


def _changed(setting: str, value: float) -> Method:
    whole = setting in ("horizons", "batch")
    return UNCHANGED.with_settings(**{setting: int(value) if whole else value})


def ablation_rows(runs: Sequence[MethodRun], settings: Sequence[str]) -> list[list[str]]:
    """A header, and the mean of each metric for each value of each setting, on each data set and over all of them."""
    rows = [list(_COLUMNS)]
    for setting in settings:
        for value in SETTINGS[setting]:
            spreads = ablation_spreads(runs, _changed(setting, value).name)
            for dataset, by_metric in spreads.items():
                for metric, spread in by_metric.items():
                    rows.append([setting, f"{value:g}", dataset, metric, *(f"{number:.6g}" for number in spread)])
    return rows


def ablation_spreads(runs: Sequence[MethodRun], method: str) -> dict[str, dict[str, Spread]]:
    """The means of the main metrics of one method, by data set; those over all data sets under "all"."""
    groups: list[MethodGroup] = [
        group for group in groups_of(runs) if group.method == method and not group.several_features
    ]
    found = {group.dataset: {measure.key: group.spread(measure.key) for measure in MAIN} for group in groups}
    return {
        **found,
        "all": {
            measure.key: Spread.over_datasets(by_metric[measure.key] for by_metric in found.values())
            for measure in MAIN
        },
    }


def draw_ablation(runs: Sequence[MethodRun], settings: Sequence[str], path: Path) -> None:
    """A row of panels for each metric, a column for each setting; a line for each data set, bold over all of them."""
    from matplotlib.figure import Figure

    shown = [measure for measure in MAIN if measure.key != "point_adjusted_false_positive_rate"]
    figure = Figure(figsize=(4 * len(settings), 2.4 * len(shown)), layout="constrained")
    panels = figure.subplots(len(shown), len(settings), squeeze=False, sharey="row")
    still = ablation_spreads(runs, "fixed-window")["all"]
    for column, setting in enumerate(settings):
        values = SETTINGS[setting]
        by_value = [ablation_spreads(runs, _changed(setting, value).name) for value in values]
        for row, measure in enumerate(shown):
            axes = panels[row, column]
            for dataset in by_value[0]:
                means = [spreads[dataset][measure.key].mean for spreads in by_value]
                bold = {"color": "black", "linewidth": 2.2} if dataset == "all" else {"linewidth": 1.1}
                axes.plot(values, means, marker="o", markersize=3, label=dataset, **bold)
            axes.axhline(still[measure.key].mean, color="0.6", linestyle="--", linewidth=1, label="equal weights")
            axes.set_xscale("log")
            axes.set_xticks(values, [f"{value:g}" for value in values])  # also where there is nothing to draw
            axes.minorticks_off()
            if row == 0:
                axes.set_title(setting)
            if column == 0:
                axes.set_ylabel(measure.heading)
    panels[0, -1].legend(fontsize="small")
    figure.savefig(path, dpi=110)

"""What each setting of W1-ACAS contributes: one at a time is changed, the others keep the paper's values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tocsin_bench.forecast_errors import ForecasterChoice
from tocsin_bench.methods import METHODS, Method
from tocsin_bench.report.measures import MAIN
from tocsin_bench.report.sheet import Column, Number, Row, Sheet, count
from tocsin_bench.report.summaries import MethodGroup, Spread, groups_of
from tocsin_bench.results import MethodRun
from tocsin_bench.runner import RunPlan

UNCHANGED = METHODS["w1-acas"]
SETTINGS: dict[str, tuple[Any, ...]] = {
    "horizons": (1, 2, 5, 10, 15),
    "learning_rate": (0.0001, 0.0003, 0.001, 0.003, 0.005, 0.01),
    "batch": (2, 5, 10, 20, 50),
    "alpha_c": (0.002, 0.005, 0.01, 0.02, 0.05),
    "prior": ("extend", "recent"),
    "stride": (1, 2, 5, 10),
}
"""The settings that are changed, and the values that they are given."""

REFERENCES = {
    "equal weights": METHODS["fixed-window"].with_settings(window=UNCHANGED.settings["window"]),
    "fast learning": UNCHANGED.with_settings(stride=1, learning_rate=0.005),
}
"""What learning is compared with: weights that never change, and weights that change about fifty times as fast."""

HORIZONS = int(max(SETTINGS["horizons"]))
_COLUMNS = ("setting", "value", "dataset", "metric", "mean", "sd", "n")


def ablation_plan(forecasters: Sequence[ForecasterChoice], settings: Sequence[str]) -> RunPlan:
    """The paper's settings, every change of one of them, and the references."""
    changed = [_changed(setting, value) for setting in settings for value in SETTINGS[setting]]
    methods = {method.name: method for method in (UNCHANGED, *REFERENCES.values(), *changed)}
    return RunPlan(tuple(forecasters), tuple(methods.values()), HORIZONS)


def _changed(setting: str, value: Any) -> Method:
    """The method with this value: the unchanged one where it is the paper's, which need not run twice."""
    unchanged = {**UNCHANGED.settings, "stride": UNCHANGED.settings["batch"]}
    return UNCHANGED if unchanged[setting] == value else UNCHANGED.with_settings(**{setting: value})


def _tried(settings: Sequence[str]) -> list[tuple[str, str, Method]]:
    tried = [(setting, str(value), _changed(setting, value)) for setting in settings for value in SETTINGS[setting]]
    return tried + [("reference", label, method) for label, method in REFERENCES.items()]


def ablation_sheet(runs: Sequence[MethodRun], settings: Sequence[str]) -> Sheet:
    """The means over data sets: a row for each value of each setting."""
    blocks: dict[str, list[Row]] = {}
    for setting, value, method in _tried(settings):
        spreads = ablation_spreads(runs, method.name)["all"]
        means = (Number(spreads[measure.key].mean, decimals=measure.decimals) for measure in MAIN)
        row: Row = (setting, value, *means, count(spreads[MAIN[-1].key].n))
        blocks.setdefault(setting, []).append(row)
    headings = (
        *(Column(name, numeric=False) for name in ("setting", "value")),
        *(Column(measure.heading, short=measure.short) for measure in MAIN),
        Column("files"),
    )
    note = "Means over the files of a data set, then over data sets. Settings that are not changed are the paper's."
    return Sheet("ablation-means", "What each setting contributes", headings, tuple(map(tuple, blocks.values())), note)


def ablation_rows(runs: Sequence[MethodRun], settings: Sequence[str]) -> list[list[str]]:
    """A header, and the mean of each metric for each value of each setting, on each data set and over all of them."""
    rows = [list(_COLUMNS)]
    for setting, value, method in _tried(settings):
        for dataset, by_metric in ablation_spreads(runs, method.name).items():
            for metric, spread in by_metric.items():
                rows.append([setting, value, dataset, metric, *(f"{number:.6g}" for number in spread)])
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
    lines = {label: ablation_spreads(runs, method.name)["all"] for label, method in REFERENCES.items()}
    for column, setting in enumerate(settings):
        values = SETTINGS[setting]
        places = values if setting != "prior" else range(1, len(values) + 1)
        by_value = [ablation_spreads(runs, _changed(setting, value).name) for value in values]
        for row, measure in enumerate(shown):
            axes = panels[row, column]
            for dataset in by_value[0]:
                means = [spreads[dataset][measure.key].mean for spreads in by_value]
                bold = {"color": "black", "linewidth": 2.2} if dataset == "all" else {"linewidth": 1.1}
                axes.plot(places, means, marker="o", markersize=3, label=dataset, **bold)
            for (label, spreads), style in zip(lines.items(), ("--", ":"), strict=True):
                axes.axhline(spreads[measure.key].mean, color="0.6", linestyle=style, linewidth=1, label=label)
            axes.set_xscale("log")
            axes.set_xticks(places, list(map(str, values)))  # also where there is nothing to draw
            axes.minorticks_off()
            if row == 0:
                axes.set_title(setting)
            if column == 0:
                axes.set_ylabel(measure.heading)
    panels[0, -1].legend(fontsize="small")
    figure.savefig(path, dpi=110)

"""The figures of a benchmark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tocsin_bench.report.curves import draw_curves
from tocsin_bench.report.examples import draw_examples, examples_of
from tocsin_bench.report.measures import MAIN, Measure, label
from tocsin_bench.report.pictures import DOTS, Picture, colours_of, file_name, literal
from tocsin_bench.report.summaries import MethodGroup, Summary, grouped, groups_of, summaries_of
from tocsin_bench.results import BenchmarkResults

# The two axes of a trade-off: a cost and a gain.
_COSTS = ((MAIN[3], MAIN[0]), (MAIN[2], MAIN[5]))
_OPERATING_POINTS = ((MAIN[2], MAIN[0]), (Measure("affiliation_false_positive_rate", "FPR", -1), MAIN[1]))
# Costs differ by orders of magnitude; those below this are drawn at it.
_LEAST_COST = 1e-3
# How much red, green and blue add to the brightness of a colour.
_BRIGHTNESS = (0.299, 0.587, 0.114)
_MARKERS = "osD^vPX*<>"


def draw_figures(results: BenchmarkResults, folder: Path) -> list[Picture]:
    """Draw every figure that has data."""
    folder.mkdir(parents=True, exist_ok=True)
    groups = groups_of(results.runs())
    single = [group for group in groups if not group.several_features]
    several = [group for group in groups if group.several_features]
    pictures = []
    for members, name in ((single, "univariate"), (several, "multivariate")):
        known = [group for group in members if any(group.spread(measure.key).n for measure in MAIN)]
        if known:
            pictures.append(_heatmaps(known, name, folder))
            pictures.append(_trade_offs(summaries_of(known), name, folder))
            pictures.append(_operating_points(known, name, folder))
    for forecaster, members in sorted(grouped(groups, lambda group: group.forecaster).items(), reverse=True):
        path = folder / f"false-positives-{file_name(forecaster) or 'without-forecaster'}.png"
        if draw_curves(members, path):
            title = f"False positive rate by threshold: {forecaster or 'methods without a forecaster'}"
            note = "Mean over files, and the band from the first to the third quartile. On the diagonal, a threshold"
            note += " is the false positive rate; scores that are no p-values have no reason to be near it."
            pictures.append(Picture(title, note, path))
    examples = examples_of(results)
    if examples:
        path = folder / "examples.png"
        draw_examples(examples, path)
        note = "Values with labelled anomalies in red, p with alarms at .01, and the learned weights over past errors."
        pictures.append(Picture("Detection examples", note, path))
    return pictures


def _heatmaps(groups: Sequence[MethodGroup], name: str, folder: Path) -> Picture:
    """Each metric by data set and method: the brighter, the better."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(group.dataset for group in groups))
    methods = [(summary.forecaster, summary.method) for summary in summaries_of(groups)]
    columns = 3
    width = 0.62 * len(datasets) + 1.2  # with its colour bar
    figure = Figure(figsize=(max(columns * width + 2.6, 8), 2 * (0.3 * len(methods) + 1.4) + 0.3), layout="constrained")
    panels = figure.subplots(2, columns, sharex=True, sharey=True, gridspec_kw={"wspace": 0.04})
    for axes, measure in zip(panels.flat, MAIN, strict=True):
        means = np.full((len(methods), len(datasets)), np.nan)
        for group in groups:
            place = methods.index((group.forecaster, group.method)), datasets.index(group.dataset)
            means[place] = group.spread(measure.key).mean
        _heatmap(axes, means, measure)
        across, down = [literal(dataset) for dataset in datasets], [literal(label(*method)) for method in methods]
        axes.set_xticks(range(len(across)), across, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
        axes.set_yticks(range(len(down)), down, fontsize=8)
    path = folder / f"heatmaps-{name}.png"
    figure.savefig(path, dpi=DOTS)
    note = "Means over the files of a data set. The brighter, the better, within a panel: each has a scale of its own."
    return Picture(f"Metrics by data set and method: {name}", note, path)


def _heatmap(axes: Any, means: Any, measure: Measure) -> None:
    from matplotlib import colormaps

    gain = measure.better > 0
    shades = colormaps["viridis" if gain else "viridis_r"].with_extremes(bad="0.92")
    image = axes.imshow(np.ma.masked_invalid(means), cmap=shades, aspect="auto")
    if np.isfinite(means).any():
        scale = axes.figure.colorbar(image, ax=axes, aspect=30, pad=0.02)
        scale.set_label(f"{measure.heading} ({'more' if gain else 'less'} is better)", fontsize=7)
        scale.ax.tick_params(labelsize=7)
    for (row, column), mean in np.ndenumerate(means):
        if np.isfinite(mean):
            bright = np.dot(image.to_rgba(mean)[:3], _BRIGHTNESS) > 0.5
            # Costs are small, and their third digit matters.
            shown = f"{mean:.2f}" if gain else f"{mean:.3f}"
            axes.text(column, row, shown, ha="center", va="center", fontsize=7, color="black" if bright else "white")
    axes.set_title(f"{measure.heading} {'↑' if gain else '↓'}", fontsize=10)
    axes.tick_params(length=0)


def _trade_offs(summaries: Sequence[Summary], name: str, folder: Path) -> Picture:
    """What accuracy costs: calibration and false positives."""
    path = folder / f"trade-offs-{name}.png"
    _draw_trade_offs({"": summaries}, _COSTS, path)
    note = "Means over data sets, of those that a method was run on. The best place is the upper left corner."
    return Picture(f"What accuracy costs: {name}", note, path)


def _operating_points(groups: Sequence[MethodGroup], name: str, folder: Path) -> Picture:
    """The best F1 of each method on each data set, and its false positives there."""
    path = folder / f"operating-points-{name}.png"
    by_dataset = grouped(groups, lambda group: group.dataset)
    _draw_trade_offs(by_dataset, _OPERATING_POINTS, path)
    note = "Each at the threshold with the best F1, in hindsight. The best place is the upper left corner."
    return Picture(f"False positives at the best F1, by data set: {name}", note, path)


def _draw_trade_offs(
    rows: Mapping[str, Sequence[Summary | MethodGroup]], trade_offs: Sequence[tuple[Measure, Measure]], path: Path
) -> None:
    """A row of panels for each title; a colour for each method and a marker for each forecaster."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    everything = [about for members in rows.values() for about in members]
    forecasters = list(dict.fromkeys(about.forecaster for about in everything))
    colours = colours_of(about.method for about in everything)
    height = max(4.6, 0.22 * (len(forecasters) + len(colours)) + 1) if len(rows) == 1 else 3.6 * len(rows)
    figure = Figure(figsize=(12, height), layout="constrained")
    panels = figure.subplots(len(rows), len(trade_offs), squeeze=False, sharex="col")
    for (title, members), line in zip(rows.items(), panels, strict=True):
        for axes, (cost, gain) in zip(line, trade_offs, strict=True):
            for about in reversed(members):  # ours on top
                marker = _MARKERS[forecasters.index(about.forecaster) % len(_MARKERS)]
                x, y = max(about.spread(cost.key).mean, _LEAST_COST), about.spread(gain.key).mean
                axes.plot(x, y, marker, color=colours[about.method], markersize=9, markeredgecolor="white")
            axes.set(xscale="log", xlabel=f"{cost.heading} (less is better)", ylabel=f"{gain.heading} (more is better)")
            axes.set_title(literal(title), fontsize=10)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(alpha=0.2)
    for forecaster in forecasters:
        marker = _MARKERS[forecasters.index(forecaster) % len(_MARKERS)]
        panels[0, 0].plot([], [], marker, color="0.4", label=literal(forecaster or "without forecaster"))
    for method, colour in colours.items():
        panels[0, 0].plot([], [], "-", color=colour, linewidth=6, label=literal(method))
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    figure.savefig(path, dpi=DOTS)

"""The false positive rate at each threshold: the figure that shows calibration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tocsin_bench.metrics import THRESHOLDS
from tocsin_bench.report.pictures import DOTS, colours_of, literal
from tocsin_bench.report.summaries import MethodGroup, grouped
from tocsin_bench.results import Floats

# A file without false positives has rate 0, which a log scale cannot show.
LEAST_RATE = 1e-4
_COLUMNS = 4


def draw_curves(groups: Sequence[MethodGroup], path: Path) -> bool:
    """The univariate files in one panel and each data set in its own; whether there was anything to draw."""
    from matplotlib.figure import Figure

    colours = colours_of(group.method for group in groups)
    datasets = grouped(groups, lambda group: group.dataset)
    # Methods are named differently where there are several features.
    single = [group for group in groups if not group.several_features]
    together = {"all with one feature": single} if len({group.dataset for group in single}) > 1 else {}
    panels = {
        title: members
        for title, members in (together | datasets).items()
        if any(_rates(group).size for group in members)
    }
    if not panels:
        return False
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.3 * columns + 1.9, 3.2 * rows + 0.3), layout="constrained")
    drawn = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, (title, members) in zip(drawn, panels.items(), strict=False):
        axes.plot([LEAST_RATE, 1], [LEAST_RATE, 1], color="0.5", linewidth=1, linestyle="--")
        for method, of_method in grouped(members, lambda group: group.method).items():
            _draw_curve(axes, np.concatenate([_rates(group) for group in of_method]), method, colours[method])
        axes.set_title(literal(title), fontsize=10)
        axes.set(xscale="log", yscale="log", xlim=(THRESHOLDS[0], 1), ylim=(LEAST_RATE, 1))
        axes.minorticks_off()
        axes.grid(alpha=0.2)
    for place in range(len(panels), drawn.size):
        drawn[place].remove()
        drawn[place - columns].tick_params(labelbottom=True)
    figure.supxlabel("threshold", fontsize=10)
    figure.supylabel(f"false positive rate, drawn no lower than {LEAST_RATE:g}", fontsize=10)
    shown = sorted({group.method for group in groups if _rates(group).size}, key=list(colours).index)
    handles = [drawn[0].plot([], [], color=colours[method], linewidth=3, label=literal(method))[0] for method in shown]
    figure.legend(
        handles=handles, loc="outside right upper", fontsize=8, frameon=False,
        title="mean and quartiles\nover files", title_fontsize=8,
    )  # fmt: skip
    figure.savefig(path, dpi=DOTS)
    return True


def _rates(group: MethodGroup) -> Floats:
    """The false positive rates of all files that have some, a row for each."""
    rates = [
        run.false_positive_rates
        for run in group.runs
        if run.status == "ok" and len(run.false_positive_rates) == THRESHOLDS.size
    ]
    found = np.array(rates, dtype=np.float64).reshape(-1, THRESHOLDS.size)
    return found[np.isfinite(found).all(axis=1)]


def _draw_curve(axes: Any, rates: Floats, method: str, colour: str) -> None:
    if not rates.size:
        return
    low, mean, high = np.maximum([*np.percentile(rates, [25, 75], axis=0), rates.mean(axis=0)], LEAST_RATE)[[0, 2, 1]]
    ours = method.startswith(("tocsin", "w1-acas"))
    axes.fill_between(THRESHOLDS, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(THRESHOLDS, mean, color=colour, linewidth=2.2 if ours else 1.3, zorder=4 if ours else 3)

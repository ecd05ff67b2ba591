"""Draw the pictures of `concepts.md`: `python docs/site/pictures.py docs/images`."""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from tocsin import Detector
from tocsin.conformal import W1ACAS

BLUE, RED, GREY, AMBER = "#1f4e79", "#c00000", "#8a8a8a", "#d98e04"
VIEW_COLOURS = {"error": RED, "shape": "#8e6bbf", "movement": "#3aa6a6"}


def from_error_to_p(folder: Path) -> None:
    """One error beside those of the past, as a bar chart and as a share."""
    rng = np.random.default_rng(3)
    hours = np.arange(240)
    forecast = 50 + 8 * np.sin(2 * np.pi * hours / 24)
    values = forecast + rng.normal(size=hours.size)
    values[-1] = forecast[-1] + 2.6
    errors = np.abs(values - forecast)
    past, newest = errors[:-1], errors[-1]
    larger = int(np.sum(past >= newest))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=(3, 2), layout="constrained")
    left.plot(hours[-72:], values[-72:], color=BLUE, linewidth=1, label="value")
    left.plot(hours[-72:], forecast[-72:], color=AMBER, linewidth=1, label="forecast")
    left.plot([hours[-1]] * 2, [forecast[-1], values[-1]], color=RED, linewidth=3, label=f"newest error, {newest:.1f}")
    left.set(xlabel="hour", title="1. How far is the newest value from its forecast?")
    left.legend(loc="upper right", fontsize=8)
    counts = right.hist(past, bins=24, color=GREY)[0]
    right.axvspan(newest, right.get_xlim()[1], color=RED, alpha=0.15)
    right.axvline(newest, color=RED)
    right.annotate(
        f"{larger} of {past.size} past errors\nare as large:\np = (1 + {larger}) / (1 + {past.size}) = "
        f"{(1 + larger) / (1 + past.size):.3f}",
        (newest, 0.6 * counts.max()), xytext=(-8, 20), textcoords="offset points", ha="right", fontsize=9,
    )  # fmt: skip
    right.set(xlabel="past errors", title="2. How many past errors are as large?")
    figure.savefig(folder / "concepts-p.png", dpi=110)


def weights_of_the_past(folder: Path) -> None:
    """Errors that are larger in the afternoon, and the weights that W1-ACAS has learned from them."""
    rng = np.random.default_rng(0)
    hours = np.arange(6000)
    errors = np.abs(rng.normal(size=hours.size)) * np.exp(np.sin(2 * np.pi * hours / 24))
    scorer = W1ACAS(window=240, learning_rate=0.01)
    scorer.run(errors[:, np.newaxis])
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 2.8), layout="constrained")
    left.plot(hours[:120], errors[:120], color=BLUE, linewidth=1)
    left.set(xlabel="hour", title="Errors that are larger at some hours than at others")
    right.bar(np.arange(1, 97), scorer.weights[0][:96], color=BLUE, width=1)
    right.set(
        xlabel="hours ago",
        xticks=(1, 24, 48, 72, 96),
        ylim=(0, 1.05),
        ylabel="weight",
        title="What the past is worth, as learned",
    )
    figure.savefig(folder / "concepts-weights.png", dpi=110)


def each_view(folder: Path) -> None:
    """Four faults, and how severe each of the views finds them."""
    rng = np.random.default_rng(5)
    hours = np.arange(2600)
    values = 50 + 6 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=hours.size)
    faults = {
        "a spike": (2000, 2001),
        "a shift": (2110, 2170),
        "a changed pattern": (2290, 2350),
        "a stuck sensor": (2470, 2530),
    }
    values[2000] += 9
    values[2110:2170] += 3
    values[2290:2350] = 50 + 6 * np.sin(2 * np.pi * hours[2290:2350] / 12) + rng.normal(size=60)
    values[2470:2530] = values[2470]
    detector = Detector(alarm_rate=0.002)
    severity: dict[str, list[float]] = {view: [] for view in VIEW_COLOURS}
    for value in values:
        verdict = detector.update(value)
        for view, line in severity.items():
            line.append(verdict.views.get(view, np.nan))
    shown = slice(1940, 2600)
    figure, axes = plt.subplots(4, 1, figsize=(10, 5.4), sharex=True, layout="constrained", height_ratios=(2, 1, 1, 1))
    axes[0].plot(hours[shown], values[shown], color=BLUE, linewidth=0.8)
    axes[0].set_title("A signal with four faults, and how strange each view finds it")
    for name, (start, end) in faults.items():
        axes[0].annotate(
            name, ((start + end) / 2, 1.0), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=8
        )
        for axis in axes:
            axis.axvspan(start, end, color=GREY, alpha=0.25)
    for axis, (view, colour) in zip(axes[1:], VIEW_COLOURS.items(), strict=True):
        _severity(axis, hours[shown], np.array(severity[view])[shown], view, colour)
    axes[-1].set_xlabel("hour")
    figure.savefig(folder / "concepts-views.png", dpi=110)


def _severity(axis: Axes, hours: np.ndarray, severity: np.ndarray, view: str, colour: str) -> None:
    axis.fill_between(hours, np.nan_to_num(severity), color=colour, linewidth=0)
    axis.set_ylabel(view)
    axis.set_ylim(0, 4.2)


def how_rare(folder: Path) -> None:
    """After how many observations evidence like this comes again, and what an alarm needs."""
    rng = np.random.default_rng(11)
    values = 20 + rng.normal(size=3000)
    values[2700:2712] += 6
    tolerated = 300
    verdicts = Detector(alarm_rate=1 / tolerated).run(values)
    period, alarm = verdicts.return_period, verdicts.alarm
    figure, (above, below) = plt.subplots(2, 1, figsize=(10, 4), sharex=True, layout="constrained")
    place = np.arange(period.size)
    above.plot(place, values, color=BLUE, linewidth=0.6)
    above.set(title="A signal with a fault of 12 observations")
    below.semilogy(place, period, color=BLUE, linewidth=0.6)
    below.axhline(tolerated, color=AMBER)
    below.annotate(f"one incident in {tolerated} observations is tolerated", (620, tolerated * 1.3), color=AMBER)
    below.plot(place[alarm], period[alarm], ".", color=RED)
    below.set(xlabel="observation", xlim=(600, 3000), title="Comes again after so many observations; alarms in red")
    figure.savefig(folder / "concepts-incidents.png", dpi=110)


if __name__ == "__main__":
    mpl.use("agg")
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "font.size": 9})
    to = Path(sys.argv[1])
    for draw in (from_error_to_p, weights_of_the_past, each_view, how_rare):
        draw(to)

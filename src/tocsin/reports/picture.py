"""A detector's findings as a picture."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.incidents.incident import Incident, onset_text
from tocsin.detection.incidents.verdict import known_interval
from tocsin.detection.views import available_views, make_view
from tocsin.reports.tables import Chart, blamed_feature, drawn_places, is_blamed, limits, worst_severity

if TYPE_CHECKING:
    from tocsin.detection.results import Result

# The most signals in a picture, the most features of one, and the most close-ups of incidents.
MOST_SIGNALS = 6
MOST_FEATURES = 4
MOST_CLOSE_UPS = 3
# A close-up shows this many observations before and after an incident; for a long one, this many around its peak.
AROUND = 60
LONGEST_CLOSE_UP = 400

VALUE, FORECAST, ALARM, NEAREST, FAULT, USUAL = "#1f4e79", "#d98c00", "#c00000", "#7b2d8b", "#333333", "#2e8b57"
COLOURS = {"error": "#d62728", "shape": "#9467bd", "movement": "#1f9eb5", "level": "#8c564b", "relation": "#2ca02c"}
OTHER_VIEW = "#7f7f7f"
# What each view detects, for readers who do not know the views.
SEEN = {
    "error": "off its forecast", "shape": "unknown shape", "movement": "unusual movement", "level": "unusual level",
    "relation": "apart from the others",
}  # fmt: skip

Fault = tuple[Any, Any, str, str]
"""A known fault: its start, end, feature and name."""

# How far back to search: as far as the shape view.
LAGS = 2000
# The most points of a curve.
MOST_POINTS = 6000


def draw_detection(results: Sequence["Result"], path: Path, *, faults: Sequence[Fault] = ()) -> None:
    """Write `detection_figure` to a file."""
    detection_figure(results, faults=faults).savefig(path, dpi=110)


def detection_figure(results: Sequence["Result"], *, faults: Sequence[Fault] = ()) -> Any:
    """One signal: values, forecast, band, incidents, severity, and the worst incidents close up. Several: the worst.

    Known `faults` are labelled: they should be found.
    """
    from matplotlib.figure import Figure

    shown = [Chart.of(result) for result in results if result.verdicts is not None]
    if len(shown) == 1:
        return _draw_one(shown[0], faults)
    shown = sorted(shown, key=lambda chart: worst_severity(chart.incidents), reverse=True)[:MOST_SIGNALS]
    figure = Figure(figsize=(12, 2.4 * len(shown)), layout="constrained")
    for axes, chart in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
        feature = chart.features[0]
        _draw_values(axes, chart, feature)
        _shade(axes, chart, feature)
        axes.set_title(chart.signal if feature is None else f"{chart.signal}: {feature}", loc="left", fontsize=10)
    return figure


def _draw_one(chart: Chart, faults: Sequence[Fault]) -> Any:
    from matplotlib.figure import Figure

    features = chart.features[:MOST_FEATURES]
    close = sorted(chart.incidents, key=lambda incident: -incident.severity)[:MOST_CLOSE_UPS]
    heights = [*([2.6] * len(features)), 1.8, *([3.0] if close else [])]
    figure = Figure(figsize=(12, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), max(len(close), 1), height_ratios=heights)
    first = None
    for row, feature in enumerate(features):
        axes = figure.add_subplot(grid[row, :], sharex=first)
        first = axes if first is None else first
        _draw_values(axes, chart, feature)
        _shade(axes, chart, feature)
        _name_faults(axes, [fault for fault in faults if feature is None or fault[2] == feature])
        axes.set_title(feature or chart.signal, loc="left", fontsize=10)
        if row == 0:
            _explain_colours(axes, chart, named=bool(faults))
    _draw_severity(figure.add_subplot(grid[len(features), :], sharex=first), chart)
    for column, incident in enumerate(sorted(close, key=lambda incident: incident.first)):
        during = [name for start, end, _, name in faults if start <= incident.end and end >= incident.start]
        _draw_close_up(figure.add_subplot(grid[-1, column]), chart, incident, ", ".join(during))
    return figure


def _draw_values(axes: Any, chart: Chart, feature: str | None, part: slice = slice(None)) -> None:
    time, alarm = chart.columns["time"][part], chart.alarms(feature)[part]
    value, forecast = (chart.of_feature(name, feature)[part] for name in ("value", "forecast"))
    bottom, top = limits(value, 0.08, 0.16)  # above, there is room for names
    for (low, high), colour, label in (
        (chart.expected_range(feature, bottom, top), FORECAST, "expected range"),
        (chart.usual_range(feature), USUAL, "usual range"),
    ):
        known = (np.isfinite(low) | np.isfinite(high))[part]
        if known.any():
            at, band = averaged(time, [low[part], high[part]], known)
            axes.fill_between(at, *band, color=colour, alpha=0.2, linewidth=0, label=label)
    if np.isfinite(forecast).any():
        axes.plot(*thinned(time, forecast), color=FORECAST, linewidth=0.6, alpha=0.8, label="forecast")
    axes.plot(*thinned(time, value), color=VALUE, linewidth=0.8, label="value")
    axes.plot(time[alarm], value[alarm], "o", color=ALARM, markersize=2.5, linewidth=0, label="alarm")
    axes.set_ylim(bottom, top)
    if time.size:
        axes.set_xlim(time[0], time[-1] if time.size > 1 else time[0] + 1)
    axes.grid(alpha=0.2)


def _shade(axes: Any, chart: Chart, feature: str | None) -> None:
    """Incidents from start to end, in the colour of the view that saw them; strongly where this feature is blamed."""
    blamed = [incident for incident in chart.incidents if is_blamed(incident, feature)]
    for incident in chart.incidents:
        strong = incident in blamed
        if strong and onset_text(incident):
            axes.axvspan(incident.began_earliest, incident.start, facecolor=_colour(incident), alpha=0.1, zorder=0.4)
        # The edge keeps an incident of a single observation visible.
        axes.axvspan(
            incident.start, incident.end, facecolor=_colour(incident), edgecolor=_colour(incident),
            alpha=0.3 if strong else 0.08, linewidth=1.2 if strong else 0.5, zorder=0.5,
        )  # fmt: skip
    _label(axes, chart, blamed)


def _label(axes: Any, chart: Chart, incidents: Sequence[Incident]) -> None:
    """Write over each incident what was seen: over the most severe first, and nothing over anything else."""
    count = max(len(chart.columns["time"]), 1)
    taken: list[tuple[float, float]] = []
    for incident in sorted(incidents, key=lambda incident: -incident.severity):
        name = _seen(incident)
        centre, half = (incident.first + incident.last) / 2 / count, 0.0032 * len(name) + 0.003
        centre = min(max(centre, half), 1 - half)
        if all(centre + half < left or centre - half > right for left, right in taken):
            taken.append((centre - half, centre + half))
            axes.text(
                centre, 0.97, name, transform=axes.transAxes, ha="center", va="top", fontsize=7,
                color=_colour(incident), fontweight="bold",
            )  # fmt: skip


def _name_faults(axes: Any, faults: Sequence[Fault]) -> None:
    """A bar along the bottom for each fault, with its name."""
    across = axes.get_xaxis_transform()
    middle = np.mean(axes.get_xlim())
    for start, end, _, name in faults:
        # Marks at both ends keep a fault of a single observation visible.
        axes.plot([start, end], [0.02, 0.02], "s-", transform=across, color=FAULT, linewidth=5, markersize=5)
        left = axes.convert_xunits(start) > middle
        at = axes.convert_xunits(end if left else start)
        axes.annotate(
            f"fault: {name}", (at, 0.02), xycoords=across, xytext=(0, 5),
            textcoords="offset points", ha="right" if left else "left", fontsize=8, color=FAULT,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
        )  # fmt: skip


def _explain_colours(axes: Any, chart: Chart, *, named: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, labels = axes.get_legend_handles_labels()
    views = {_seen(incident): _colour(incident) for incident in chart.incidents}
    for view in sorted(views):
        handles.append(Patch(facecolor=views[view], alpha=0.35))
        labels.append(f"incident: {view}")
    if named:
        handles.append(Line2D([], [], color=FAULT, linewidth=5))
        labels.append("fault put in")
    axes.legend(
        handles, labels, loc="lower right", bbox_to_anchor=(1, 1), fontsize=7, ncols=min(len(labels), 6), frameon=False,
        borderaxespad=0.1, columnspacing=1.0, handlelength=1.2,
    )  # fmt: skip


def _draw_severity(axes: Any, chart: Chart) -> None:
    columns = chart.columns
    time, severity, alarm = columns["time"], columns["severity"], columns["alarm"]
    axes.plot(*thinned(time, severity), color="#555555", linewidth=0.6)
    axes.plot(time[alarm], severity[alarm], "o", color=ALARM, markersize=2.5)
    for incident in chart.incidents:
        axes.axvspan(incident.start, incident.end, color=_colour(incident), alpha=0.25, linewidth=1, zorder=0.5)
    _shade_early(axes, columns)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.2)
    axes.set_title("severity: how anomalous it is over all views (usual: below 1)", loc="left", fontsize=10)


def _shade_early(axes: Any, columns: Mapping[str, NDArray[Any]]) -> None:
    """The warm-up, and lighter what was judged by an estimate."""
    time, warm = columns["time"], columns["warm"]
    judged, own = (
        int(np.argmax(there)) if there.any() else time.size - 1 for there in (warm, warm & ~columns["estimated"])
    )
    for name, colour, first, last in (("warm-up", "0.88", 0, judged), ("estimated", "0.95", judged, own)):
        if first < last and warm.any():
            axes.axvspan(time[first], time[last], color=colour, linewidth=0, zorder=0.4)
            if last - first < 0.06 * time.size:
                continue  # its name would lie over the next one
            axes.annotate(
                name, (axes.convert_xunits(time[first]), 0.93), xycoords=axes.get_xaxis_transform(), xytext=(3, 0),
                textcoords="offset points", va="top", fontsize=8, color="0.4",
            )  # fmt: skip


def _draw_close_up(axes: Any, chart: Chart, incident: Incident, fault: str) -> None:
    """An incident with what came before it; for an anomalous shape the stretch of the past that resembles it most.

    `fault` is what was wrong at that time, where it is known.
    """
    columns = chart.columns
    time = columns["time"]
    peak = int(np.flatnonzero(time == incident.peak)[0])
    first, last = incident.first, incident.last
    if last - first > LONGEST_CLOSE_UP:
        first, last = max(first, peak - LONGEST_CLOSE_UP // 2), min(last, peak + LONGEST_CLOSE_UP // 2)
    part = slice(max(first - AROUND, 0), min(last + AROUND, time.size - 1) + 1)
    features = [*incident.contributions]
    feature = None if len(features) < 2 else blamed_feature(incident)
    _draw_values(axes, chart, feature, part)
    axes.axvspan(incident.start, incident.end, color=_colour(incident), alpha=0.2, linewidth=1, zorder=0.5)
    length = _stretch(incident, chart.interval)
    if length:
        names = [None] if feature is None else features
        values = np.column_stack([chart.of_feature("value", name) for name in names])
        lag = nearest_lag(values[: peak + 1], length)
        if lag:
            here = slice(peak - length + 1, peak + 1)
            past = slice(here.start - lag, here.stop - lag)
            axes.plot(
                time[here], chart.of_feature("value", feature)[past], color=NEAREST, linewidth=1.6,
                label=f"most similar earlier stretch, {lag} before",
            )  # fmt: skip
            axes.legend(handles=[axes.get_lines()[-1]], loc="best", fontsize=7, framealpha=0.7)
    if time.dtype.kind == "M":
        _plain_times(axes)
    if feature is not None:
        axes.set_ylabel(feature, fontsize=8)
    title = "\n".join(textwrap.wrap(incident.explanation or _seen(incident), 58))
    title = f"fault: {fault}\n{title}" if fault else title
    axes.set_title(title, loc="left", fontsize=8, color=_colour(incident))


def _plain_times(axes: Any) -> None:
    """Few dates, so that none runs into the next."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=2, maxticks=5)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _view(incident: Incident) -> str:
    """The view that saw an incident, by a name that fits in a picture."""
    return (incident.view or "").removesuffix("-light") or "incident"


def _seen(incident: Incident) -> str:
    return SEEN.get(_view(incident), _view(incident))


def _colour(incident: Incident) -> str:
    return COLOURS.get(_view(incident), OTHER_VIEW)


def _stretch(incident: Incident, interval: float | None) -> int:
    """The number of observations in an anomalous shape; 0 if it is not one."""
    if _view(incident) != "shape" or incident.view not in available_views():
        return 0
    view, explanation = make_view(incident.view), incident.explanation or ""
    interval = known_interval(interval, incident.peak)
    lengths = [stream.length for stream in view.streams]
    named = [length for number, length in enumerate(lengths) if view.words(number, 0.0, "", interval) in explanation]
    return (named or lengths)[0]


def nearest_lag(values: NDArray[Any], length: int) -> int:
    """How long before the newest `length` of values[T, F] the stretch lies that resembles them most; 0 for none.

    Features count in units of their own spread, and missing values do not.
    """
    lags = min(LAGS, len(values) - length)
    if lags < length:
        return 0
    recent = values[-(length + lags) :]
    with np.errstate(invalid="ignore"):
        spread = np.array(
            [np.std(column[np.isfinite(column)]) if np.isfinite(column).any() else 0 for column in recent.T]
        )
    scaled = recent / np.where(spread > 0, spread, 1.0)
    stretches = np.lib.stride_tricks.sliding_window_view(scaled, length, axis=0)  # (lags + 1, F, length)
    squares = np.square(stretches[:-length] - stretches[-1])
    known = np.isfinite(squares)
    counts = known.sum(axis=(1, 2))
    if not counts.any():
        return 0
    means = np.where(counts > 0, np.where(known, squares, 0.0).sum(axis=(1, 2)) / np.maximum(counts, 1), np.inf)
    return lags - int(np.argmin(means))


def thinned(time: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """A curve of few points that looks the same."""
    at = drawn_places(values, MOST_POINTS)
    return time[at], values[at]


def averaged(
    time: NDArray[Any], curves: Sequence[NDArray[Any]], known: NDArray[np.bool_]
) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Curves of few points, the mean of each piece, for what has no spikes to lose; NaN where nothing is known."""
    size = max(1, -(-time.size // MOST_POINTS))
    whole = time.size // size * size
    counts = known[:whole].reshape(-1, size).sum(axis=1)
    thin = []
    for curve in curves:
        sums = np.where(known, curve, 0.0)[:whole].reshape(-1, size).sum(axis=1)
        thin.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return time[:whole:size], thin

"""What a detector found, as a table for people, as columns and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.data import format_times
from tocsin.detection import Incident, SignalResult

# A picture has room for so many signals, and for so many features of one.
MOST_SIGNALS = 6
MOST_FEATURES = 4
# Longer curves are drawn as the range over pieces, so that no spike is lost and the picture stays light.
MOST_POINTS = 6000


def incident_table(incidents: Sequence[Incident], *, top: int, many: bool) -> Table:
    """The most severe incidents, the most severe first."""
    ranked = sorted(incidents, key=lambda incident: (incident.p, incident.merged))[:top]
    title = f"{len(incidents)} incidents" if len(incidents) != 1 else "1 incident"
    if len(incidents) > top:
        title += f", the {top} most severe"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    several = any(len(incident.contributions) > 1 for incident in incidents)
    for heading in (*(["signal"] if many else []), "start", "end"):
        table.add_column(heading, overflow="fold")
    for heading in ("alarms", "p", "severity"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("off by", justify="right", no_wrap=True)
    if several:
        table.add_column("features", overflow="fold")
    for incident in ranked:
        start, end = time_text(incident.start), time_text(incident.end)
        row = [incident.signal] if many else []
        row += [start, "still open" if incident.open else end, str(incident.alarms)]
        row += [f"{incident.p:.2g}", f"{incident.severity:.1f}"]
        row.append("" if np.isnan(incident.deviation) else f"{incident.deviation:+.3g}")
        if several:
            row.append(", ".join(incident.features[:2]))
        table.add_row(*row)
    return table


def incident_columns(incidents: Sequence[Incident]) -> dict[str, NDArray[Any]]:
    """The incidents as columns of a table, in their order."""
    return {
        "signal": np.array([incident.signal for incident in incidents], dtype=object),
        "start": _times([incident.start for incident in incidents]),
        "end": _times([incident.end for incident in incidents]),
        "peak": _times([incident.peak for incident in incidents]),
        "duration": np.array([incident.duration for incident in incidents], dtype=np.int64),
        "alarms": np.array([incident.alarms for incident in incidents], dtype=np.int64),
        "p": np.array([incident.p for incident in incidents], dtype=np.float64),
        "merged": np.array([incident.merged for incident in incidents], dtype=np.float64),
        "severity": np.array([incident.severity for incident in incidents], dtype=np.float64),
        "direction": np.array([incident.direction or "" for incident in incidents], dtype=object),
        "deviation": np.array([incident.deviation for incident in incidents], dtype=np.float64),
        "features": np.array([", ".join(incident.features) for incident in incidents], dtype=object),
        "open": np.array([incident.open for incident in incidents], dtype=np.bool_),
    }


def _times(times: list[Any]) -> NDArray[Any]:
    if times and isinstance(times[0], np.datetime64):
        return np.array(times, dtype="datetime64[ns]")
    return np.array(times, dtype=np.float64 if any(isinstance(time, float) for time in times) else np.int64)


def time_text(time: Any) -> str:
    """A time as people write it."""
    if isinstance(time, np.datetime64):
        return str(format_times(np.array([time]))[0]).replace("T", " ")
    return f"{time:g}" if isinstance(time, float) else str(time)


def draw_detection(results: Sequence[SignalResult], path: Path, *, faults: Sequence[tuple[Any, Any, str]] = ()) -> None:
    """One signal: values, forecast, band, alarms, p on a log scale, learned weights. Several: the strangest of them.

    `faults`, where they are known, are shaded: their start, end and feature.
    """
    from matplotlib.figure import Figure

    shown = [result for result in results if result.columns is not None]
    if len(shown) == 1:
        figure = _draw_one(shown[0], faults)
    else:
        shown = sorted(shown, key=lambda result: min((incident.p for incident in result.incidents), default=2.0))
        shown = shown[:MOST_SIGNALS]
        figure = Figure(figsize=(12, 2.2 * len(shown)), layout="constrained")
        for axes, result in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
            feature = _features(result)[0]
            _draw_values(axes, result, feature)
            axes.set_title(result.signal if feature is None else f"{result.signal}: {feature}", loc="left", fontsize=10)
    figure.savefig(path, dpi=110)


def _draw_one(result: SignalResult, faults: Sequence[tuple[Any, Any, str]]) -> Any:
    from matplotlib.figure import Figure

    features = _features(result)[:MOST_FEATURES]
    rows = len(features) + 1
    figure = Figure(figsize=(12, 2.6 * rows + 2), layout="constrained")
    grid = figure.add_gridspec(rows + 1, 1, height_ratios=[*([1.2] * len(features)), 1, 0.7])
    first = None
    for row, feature in enumerate(features):
        first = figure.add_subplot(grid[row], sharex=first)
        _draw_values(first, result, feature)
        first.set_title(feature or result.signal, loc="left", fontsize=10)
        for start, end, about in faults:
            if feature is None or about == feature:
                first.axvspan(start, end, color="#7f7f7f", alpha=0.25, linewidth=2)
        if row == 0:
            first.legend(loc="upper left", fontsize=8, ncols=4)
    _draw_p(figure.add_subplot(grid[rows - 1], sharex=first), result)
    _draw_weights(figure.add_subplot(grid[rows]), result)
    return figure


def _features(result: SignalResult) -> list[str | None]:
    """The features, those first that the worst incident is about; None for a single one."""
    columns = _columns(result)
    names = [name.removeprefix("value ") for name in columns if name.startswith("value ")]
    if not names:
        return [None]
    if result.incidents:
        worst = min(result.incidents, key=lambda incident: (incident.p, incident.merged))
        return [*worst.features]
    return [*names]


def _columns(result: SignalResult) -> dict[str, NDArray[Any]]:
    if result.columns is None:
        raise ValueError(f"the verdicts on {result.signal!r} were not kept")
    return result.columns


def _draw_values(axes: Any, result: SignalResult, feature: str | None) -> None:
    columns = _columns(result)

    def column(name: str) -> NDArray[Any]:
        return columns[name if feature is None else f"{name} {feature}"]

    time, value, alarm = columns["time"], column("value"), columns["alarm"]
    low, high = column("low"), column("high")
    at, drawn = _thinned(time, value)
    axes.plot(at, drawn, color="#1f4e79", linewidth=0.8, label="value")
    axes.set_ylim(*_limits(value))
    if np.isfinite(column("forecast")).any():
        axes.plot(*_thinned(time, column("forecast")), color="#d98c00", linewidth=0.6, alpha=0.8, label="forecast")
    at, bottom = _thinned(time, np.where(np.isfinite(low), low, axes.get_ylim()[0]))
    _, top = _thinned(time, np.where(np.isfinite(high), high, axes.get_ylim()[1]))
    _, bounded = _thinned(time, np.where(np.isfinite(low) | np.isfinite(high), 1.0, 0.0))
    if bounded.any():
        limits = axes.get_ylim()
        axes.fill_between(
            at, bottom, top, where=bounded == 1, color="#d98c00", alpha=0.2, linewidth=0, label="no alarm"
        )
        axes.set_ylim(*limits)
    axes.plot(time[alarm], value[alarm], "o", color="#c00000", markersize=4, label="alarm")
    axes.set_xlim(time[0], time[-1])
    axes.grid(alpha=0.2)


def _limits(values: NDArray[Any]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    room = 0.08 * (high - low) or 0.5
    return low - room, high + room


def _draw_p(axes: Any, result: SignalResult) -> None:
    columns = _columns(result)
    time, p, alarm = columns["time"], columns["p"], columns["alarm"]
    if time.size > MOST_POINTS:
        axes.plot(*_thinned(time, p), color="#555555", linewidth=0.4)
    else:
        axes.plot(time, p, ".", color="#555555", markersize=2)
    axes.plot(time[alarm], p[alarm], "o", color="#c00000", markersize=4)
    if result.alarm_rate is not None:
        axes.axhline(result.alarm_rate, color="#c00000", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylabel("p")
    axes.grid(alpha=0.2)
    axes.set_title("p (log scale), and the alarm rate", loc="left", fontsize=10)


def _draw_weights(axes: Any, result: SignalResult) -> None:
    weights = result.weights
    if weights is None:
        raise ValueError(f"the weights of {result.signal!r} were not kept")
    axes.fill_between(np.arange(1, weights.size + 1), weights, step="mid", color="#4f8a4f", linewidth=0)
    axes.set_xlim(1, weights.size)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("lag in observations")
    axes.set_title("learned weight of past errors by lag, mean over horizons", loc="left", fontsize=10)


def _thinned(time: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """A curve of few points that looks the same: the smallest and the largest value of each piece, in turn."""
    if time.size <= MOST_POINTS:
        return time, values
    size = -(-time.size // (MOST_POINTS // 2))
    whole = time.size // size * size
    pieces = values[:whole].reshape(-1, size)
    gone = np.isnan(pieces).all(axis=1)
    filled = np.where(gone[:, np.newaxis], 0.0, pieces)
    ends = np.column_stack([np.nanmin(filled, axis=1), np.nanmax(filled, axis=1)])
    ends[gone] = np.nan
    return np.repeat(time[:whole:size], 2), ends.reshape(-1)


def summary(results: Sequence[SignalResult]) -> str:
    """In one line: how much was watched, and whether the alarm rate was kept."""
    observations = sum(result.observations for result in results)
    audits = [result.audit for result in results if result.audit is not None]
    watched = sum(audit.observations for audit in audits)
    alarms = sum(audit.alarms for audit in audits)
    signals = f" of {len(results)} signals" if len(results) > 1 else ""
    line = f"{observations} observations{signals}"
    if not watched:
        return f"{line}, all of them warm-up"
    promised = sum(audit.promised * audit.observations for audit in audits) / watched
    line += f"; after warm-up {alarms} of {watched} were under the alarm rate: {alarms / watched:.4f}"
    line += f", tolerated {promised:.4f} (true faults included)"
    if len(audits) == 1:
        audit = audits[0]
        line += f"; band {audit.low:.4f} to {audit.high:.4f}: {audit.finding}"
    return line

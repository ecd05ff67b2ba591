"""Draws one incident: JSON on standard input, PNG on standard output.

It runs as a program of its own, which can be ended: a picture must never hold up a message, let alone the engine. It
imports nothing but matplotlib, so that it starts quickly.
"""

import json
import sys
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

VALUE, FORECAST, ALARM = "#1f4e79", "#d98c00", "#c00000"


def draw(incident: dict[str, Any], target: Any) -> None:
    """Write the picture of an incident: values, forecast, band, alarms, and from when to when it lasted."""
    # The library's types know neither times on an axis nor its own locators.
    dates: Any = import_module("matplotlib.dates")
    figures: Any = import_module("matplotlib.figure")

    def moment(seconds: float) -> datetime:
        return datetime.fromtimestamp(seconds, UTC)

    times = [moment(seconds) for seconds in incident["time"]]
    curves = {
        name: [float("nan") if value is None else value for value in incident[name]]
        for name in ("value", "forecast", "low", "high")
    }
    known = [value for value in incident["value"] if value is not None]
    bottom, top = (min(known), max(known)) if known else (0.0, 1.0)
    room = 0.12 * (top - bottom) or 0.5
    bottom, top = bottom - room, top + room
    figure = figures.Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.add_subplot()
    # A bound that is not there, or far away, is the edge of the picture.
    low = [bottom if value is None else max(value, bottom) for value in incident["low"]]
    high = [top if value is None else min(value, top) for value in incident["high"]]
    judged = [value is not None for value in incident["forecast"]]
    axes.fill_between(times, low, high, where=judged, color=FORECAST, alpha=0.18, linewidth=0, label="expected range")
    axes.plot(times, curves["forecast"], color=FORECAST, linewidth=1, linestyle="--", label="forecast")
    axes.plot(times, curves["value"], color=VALUE, linewidth=1.2, label="value")
    alarms = [place for place, alarm in enumerate(incident["alarm"]) if alarm]
    axes.plot(
        [times[place] for place in alarms], [curves["value"][place] for place in alarms], "o", color=ALARM,
        markersize=4, label="alarm",
    )  # fmt: skip
    axes.axvspan(moment(incident["start"]), moment(incident["end"]), color=ALARM, alpha=0.1)
    axes.set_ylim(bottom, top)
    axes.set_ylabel(incident["unit"] or "")
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set_title("UTC", loc="right", fontsize=8)
    axes.grid(alpha=0.2)
    # Names may hold what is mathematics for matplotlib.
    axes.set_title(incident["title"], loc="left", fontsize=10, parse_math=False)
    axes.legend(loc="best", fontsize=7, framealpha=0.7)
    figure.savefig(target, format="png", dpi=110)


if __name__ == "__main__":
    draw(json.load(sys.stdin), sys.stdout.buffer)

"""`tocsin causes`: which signal of a file moved first in an event."""

import os
from typing import Annotated, Any

import numpy as np
import typer

from tocsin.cli.application import Exit, app, console, progress, say
from tocsin.cli.detect import WORTH_A_PROCESS, check_time, label_of, time_option
from tocsin.cli.options import (
    check_settings,
    in_options,
    number_or_text,
    takes_detector_settings,
    takes_reading_options,
)
from tocsin.data import DataError, Signals, parse_duration, read_signals
from tocsin.detection import EventSignal, Incident, detect_signals, moving_order
from tocsin.reports.tables import mover_table

# Incidents of different signals belong to one event if they start at most this many observations apart.
NEAR = 30

Found = list[tuple[Incident, EventSignal, float]]


@app.command()
@takes_detector_settings
@takes_reading_options()
def causes(
    file: Annotated[str, typer.Argument(metavar="FILE", help="As for `detect`; each value column is a signal.")],
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="The event with an incident at this time. Default: the one of most signals."
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="DURATION",
            help=f"Incidents that start so close to it belong to the event. Default: {NEAR} observations.",
        ),
    ] = None,
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Show which signal of a file moved first in an event, and whether that can be told."""
    check_settings(settings, interval_known=False)
    moment, near = time_option("--at", at), _duration(within)
    reading |= {"every": number_or_text(reading.get("every")), "interval": settings["interval"]}
    reading |= {"zone": settings["zone"], "separate": "id" not in reading}
    try:
        with read_signals(file, **reading) as signals:
            found = _found(signals, settings)
            watched = len(signals)
    except (DataError, OSError, ImportError, MemoryError, TypeError, ValueError) as error:
        say(f"{label_of(file)}: {in_options(error)}")
        raise typer.Exit(Exit.FAILED) from error
    event = _event(found, moment, near)
    if not event:
        console().print("no incidents" if moment is None else f"no incidents at {at}", markup=False)
        return
    order = moving_order(event)
    console().print(f"{len(event)} of {watched} signals moved; {order}", markup=False, soft_wrap=True)
    if len(event) > 1:
        console().print(mover_table(order, {one.name: one.start for one in event}))


def _found(signals: Signals, settings: dict[str, Any]) -> Found:
    """The incidents of all signals, each with what was observed, and the interval between two observations."""
    found: Found = []
    jobs = min(os.cpu_count() or 1, len(signals)) if signals.rows > WORTH_A_PROCESS else 1
    with progress() as bar:
        task = bar.add_task("judging", total=signals.rows)
        passing = (signals[number] for number in range(len(signals)))
        for result in detect_signals(
            passing, settings, keep=True, jobs=jobs, progress=lambda done: bar.update(task, advance=done)
        ):
            if result.error is not None:
                say(f"{result.signal}: {in_options(result.error)}")
                continue
            step = result.interval or 1.0
            found += [(incident, EventSignal.of(result, incident), step) for incident in result.incident_list]
    return found


def _event(found: Found, moment: Any, near: float | None) -> list[EventSignal]:
    """The signals whose incidents start near one (at a moment, if given): most signals, then the most severe."""
    for incident, *_ in found[:1]:
        check_time("--at", moment, incident)
    found = sorted(found, key=lambda one: one[0].start)
    starts = np.array([incident.start for incident, *_ in found])

    def members(chosen: Incident, step: float) -> dict[str, EventSignal]:
        reach: Any = NEAR * step if near is None else near
        if isinstance(chosen.start, np.datetime64):
            reach = np.timedelta64(round(1e9 * reach), "ns")
        close = np.flatnonzero(np.abs(starts - chosen.start) <= reach)
        return {found[one][1].name: found[one][1] for one in close[::-1]}  # of each signal, the first

    events = [
        (members(incident, step), incident.severity)
        for incident, _, step in found
        if moment is None or incident.start <= moment <= incident.end
    ]
    event, _ = max(events, key=lambda one: (len(one[0]), one[1]), default=({}, 0.0))
    return list(event.values())


def _duration(text: str | None) -> float | None:
    """A duration in seconds, or in units of the times if those are numbers."""
    try:
        given = number_or_text(text)
        return parse_duration(given) / np.timedelta64(1, "s") if isinstance(given, str) else given
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--within") from error

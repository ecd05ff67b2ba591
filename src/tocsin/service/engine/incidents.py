"""From what the detectors say about incidents to what is stored and sent."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tocsin.detection import Incident
from tocsin.service.engine.events import Events, Sender
from tocsin.service.engine.signals import NOTHING, MonitoredSignal
from tocsin.service.store import Ended, IncidentFacts, IncidentRow, StoreWriter


def nanoseconds(moment: np.datetime64) -> int:
    """A moment as it is stored."""
    return int(moment.astype("datetime64[ns]").astype(np.int64))


def alarm_facts(signal: MonitoredSignal, incident: Incident, now: int) -> IncidentFacts:
    """What is stored of an incident that a detector found."""
    return IncidentFacts(
        signal=signal.row.id,
        kind="alarm",
        start=nanoseconds(incident.start),
        end=nanoseconds(incident.end),
        peak=nanoseconds(incident.peak),
        alarms=incident.alarms,
        duration=incident.duration,
        p=incident.p,
        severity=incident.severity,
        return_period=incident.return_period or NOTHING,
        view=incident.view,
        explanation=incident.explanation,
        direction=incident.direction,
        deviation=incident.deviation,
        contributions=dict(incident.contributions),
        open=incident.open,
        opened=now,
        closed=None if incident.open else now,
        ended=incident.ended,
    )


def silence_facts(signal: MonitoredSignal, start: int, now: int) -> IncidentFacts:
    """What is stored of a silence since `start` that is noticed now."""
    return IncidentFacts(
        signal=signal.row.id,
        kind="silence",
        start=start,
        end=now,
        peak=start,
        alarms=0,
        duration=0,
        p=NOTHING,
        severity=NOTHING,
        return_period=NOTHING,
        view=None,
        explanation=None,
        direction=None,
        deviation=NOTHING,
        contributions={},
        open=True,
        opened=now,
        closed=None,
        ended=None,
    )


def put_incident(
    writer: StoreWriter, events: Events, signal: Sender, facts: IncidentFacts, now: int,
    withholds: Callable[[int], bool] = lambda number: False,
) -> int:  # fmt: skip
    """Store an incident as it now is, in its event, and what the sinks are to be told of it; returns its number.

    `withholds` says of an incident's number whether nobody is to be told: it belongs to no event then.
    """
    number = writer.put_incident(facts)
    withheld = withholds(number)
    writer.change_incident(number, withheld=withheld)
    if not withheld:
        events.note(writer, signal, number, facts, now)
    return number


def close_incident(
    writer: StoreWriter, events: Events, signal: Sender, row: IncidentRow, ended: Ended, now: int
) -> None:
    """An incident that its detector does not end is over: a silence, or what a detector that is gone had found."""
    end = now if row.kind == "silence" else row.end
    writer.change_incident(row.id, open=False, closed=now, end=end, ended=ended)
    if row.event is not None:
        events.note(writer, signal, row.id, replace(row, open=False), now)

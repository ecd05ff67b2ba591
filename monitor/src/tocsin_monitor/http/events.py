"""Events: incidents that belong together, and what people do about all of them at once."""

import time
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Response

from tocsin_monitor.as_json import event_json, incident_json, time_text
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import OPERATOR, READER
from tocsin_monitor.http.causes import causes_of
from tocsin_monitor.http.errors import UNKNOWN, HttpError
from tocsin_monitor.http.incidents import LARGEST_ID, check_end, number_of, seen_signals
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import CausesOut, EventDetails, EventOut, EventsReply
from tocsin_monitor.http.requests import Acknowledgement, EventLabel, Given, Snooze
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.observations import LONGEST_NAME
from tocsin_monitor.store import EventRow, Kind, StoreReader

MOST_EVENTS = 200
MOST_MEMBERS = 1000
router = ApiRouter(prefix="/events", tags=["events"])

Id = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The event's number.")]


@router.get("", summary="Events", response_model=EventsReply, responses=UNKNOWN)
async def list_events(
    monitor: Monitor,
    caller: READER,
    signal: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Only those with an incident of this signal.")
    ] = None,
    open: Annotated[bool | None, Query(description="Only open ones, or only closed ones.")] = None,  # noqa: A002
    kind: Annotated[Kind | None, Query(description="Only those of this kind.")] = None,
    since: Annotated[Given | None, Query(description="Only those that did not end before this time.")] = None,
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Only those with a lower number.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS, description="The most events.")] = 50,
) -> Response:
    """The newest first. To page, pass the number of the last one as `before`."""

    def read(reader: StoreReader) -> list[dict[str, Any]]:
        names, chosen = seen_signals(reader, caller)
        if signal is not None:
            chosen = [number_of(reader, signal, names)]
        found = reader.events(
            signal_ids=chosen, open=open, kind=kind, since=since, before_id=before, limit=limit,
        )  # fmt: skip
        return [event_json(whole) for whole in reader.summaries(found, names)]

    return reply({"events": await from_store(monitor, read)})


@router.get("/{number}", summary="One event", response_model=EventDetails)
async def one_event(
    number: Id,
    monitor: Monitor,
    caller: READER,
    offset: Annotated[int, Query(ge=0, le=LARGEST_ID, description="How many members to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_MEMBERS, description="The most members.")] = 100,
) -> Response:
    """An event with its members in the order of their start, and its suspects: which moved first, and which of the
    others moved near them before. To page through the members, raise `offset`."""
    window = round(monitor.settings.events.window * 1e9)

    def read(reader: StoreReader) -> dict[str, Any]:
        names, limited = seen_signals(reader, caller)
        event = _event(reader, number, limited)
        (whole,) = reader.summaries([event], names)
        rows = reader.members(number, signal_ids=limited, offset=offset, limit=limit)
        return {
            **event_json(whole),
            "members": [incident_json(row, names[row.signal]) for row in rows],
            "suspects": suspects_of(reader, event, names, limited, window),
        }

    return reply(await from_store(monitor, read))


@router.get("/{number}/causes", summary="Which moved first", response_model=CausesOut)
async def causes(number: Id, monitor: Monitor, caller: READER) -> Response:
    """The signals of an event in the order in which they began to move, and a test of whether the first one really was
    the first. If that cannot be told, what others depend on comes first, as `depends` of the settings says. Order does
    not show a cause. Of the first 10 signals that were noticed; only for alarms."""

    def read(reader: StoreReader) -> dict[str, Any]:
        names, limited = seen_signals(reader, caller)
        return causes_of(reader, _event(reader, number, limited), names, limited, monitor.settings.depends)

    return reply(await from_store(monitor, read))


def _event(reader: StoreReader, number: int, limited: list[int] | None) -> EventRow:
    """An event with an incident of these signals."""
    event = reader.event(number)
    if event is None or not reader.members(number, signal_ids=limited, limit=1):
        raise UnknownError(f"there is no event {number}")
    return event


async def _own_number(number: Id, monitor: Monitor, caller: OPERATOR) -> int:
    """The number in an address; 403 if the event has incidents that do not concern the caller."""

    def read(reader: StoreReader) -> None:
        names, limited = seen_signals(reader, caller)
        event = _event(reader, number, limited)
        (seen,) = reader.summaries([event], names)
        (whole,) = reader.summaries([event], reader.signal_names())
        if seen.count < whole.count:
            raise HttpError(403, f"event {number} has signals that this token is not for: change its incidents instead")

    if caller.patterns:
        await from_store(monitor, read)
    return number


Own = Annotated[int, Depends(_own_number)]


@router.post("/{number}/acknowledge", summary="Acknowledge an event", response_model=EventOut)
async def acknowledge(
    number: Own, monitor: Monitor, caller: OPERATOR, given: Acknowledgement | None = None
) -> Response:
    """Record that the caller has seen it: all its incidents, and those that join later.

    After what a limited token did, only signals that it is for join."""
    note = None if given is None else given.note
    return reply(await done(monitor.engine.events.acknowledge(number, caller.name, note, caller.patterns)))


@router.delete("/{number}/acknowledge", summary="Take back an event's acknowledgement", response_model=EventOut)
async def forget(number: Own, monitor: Monitor, caller: OPERATOR) -> Response:
    """Removes the acknowledgement from the event and all its incidents."""
    return reply(await done(monitor.engine.events.acknowledge(number, None, None, caller.patterns)))


@router.post("/{number}/snooze", summary="Snooze an event", response_model=EventOut)
async def snooze(number: Own, given: Snooze, monitor: Monitor, caller: OPERATOR) -> Response:
    """Send no alerts about it for a while, at most 30 days."""
    until = check_end(given.end(time.time_ns()), "until")
    return reply(await done(monitor.engine.events.snooze(number, until, caller.patterns)))


@router.delete("/{number}/snooze", summary="Wake an event", response_model=EventOut)
async def wake(number: Own, monitor: Monitor, caller: OPERATOR) -> Response:
    """Resume alerts about it."""
    return reply(await done(monitor.engine.events.snooze(number, None, caller.patterns)))


@router.post("/{number}/label", summary="Label an event", response_model=EventOut)
async def label(number: Own, given: EventLabel, monitor: Monitor, caller: OPERATOR) -> Response:
    """A fault, a false alarm, expected, or not interesting: all its incidents get the label, and those that join later.

    A false alarm ends the open incidents of alarms: their values are accepted as normal and learned."""
    return reply(await done(monitor.engine.events.label(number, given.label, given.note, caller.patterns)))


# All of it is a handful of short queries, however large the event and the past are.
FIRST, OTHERS, PAST, TOGETHER = 5, 50, 100, 3


def suspects_of(
    reader: StoreReader, event: EventRow, names: Mapping[int, str], limited: Collection[int] | None, window: int
) -> list[dict[str, Any]]:
    """The signals that moved first, each with the members that had incidents near its own before this event."""
    members = reader.members(event.id, signal_ids=limited, limit=OTHERS)
    starts: dict[int, int] = {}
    for row in members:
        starts.setdefault(row.signal, row.start)
    found = []
    for signal in list(starts)[:FIRST]:
        total, together = reader.counted_together(signal, list(starts), event.first, window, PAST)
        usual = sorted(together.items(), key=lambda item: (-item[1], names[item[0]]))[:TOGETHER]
        found.append(
            {
                "signal": names[signal],
                "start": time_text(starts[signal]),
                "seconds_after_first": (starts[signal] - members[0].start) / 1e9,
                "past_incidents": total,
                "together": [{"signal": names[other], "times": times} for other, times in usual],
            }
        )
    return found

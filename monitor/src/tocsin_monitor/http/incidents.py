"""Incidents, and what people do about them."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Response

from tocsin_monitor.as_json import incident_json, time_text
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.http.auth import OPERATOR, READER, Caller
from tocsin_monitor.http.errors import UNKNOWN
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import Annotations, IncidentCount, IncidentOut, Incidents
from tocsin_monitor.http.requests import Acknowledgement, Given, Label, Snooze
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.http.signals import pace_of
from tocsin_monitor.levels import level_of
from tocsin_monitor.observations import LONGEST_NAME
from tocsin_monitor.sinks.alerts import summary_of
from tocsin_monitor.store import IncidentRow, Kind, SignalRow, StoreReader, Which
from tocsin_monitor.tokens import fits_any

MOST_INCIDENTS = 1000
LARGEST_ID = 2**63 - 1
DAY = 86400 * 10**9
#: How far ahead the end of a snooze, or of maintenance, may be.
LONGEST_AHEAD = 30 * DAY
router = ApiRouter(prefix="/incidents", tags=["incidents"])

Id = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The incident's number.")]


@dataclass(frozen=True)
class Filters:
    """Which incidents a caller asks for."""

    signal: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only those of this signal.")] = None
    open: Annotated[bool | None, Query(description="Only open ones, or only closed ones.")] = None
    kind: Annotated[Kind | None, Query(description="Only those of this kind.")] = None
    since: Annotated[Given | None, Query(description="Only those that did not end before this time.")] = None
    until: Annotated[Given | None, Query(description="Only those that did not start after this time.")] = None
    like: Annotated[
        int | None, Query(ge=1, le=LARGEST_ID, description="Only those like the incident with this number, and itself.")
    ] = None
    suppressed: Annotated[
        bool | None, Query(description="Only those about which a label suppressed alerts, or only the others.")
    ] = None
    withheld: Annotated[
        bool | None, Query(description="Only those that a budget withheld from sinks, or only the others.")
    ] = None
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Only those with a lower number.")] = None

    def which(self, reader: StoreReader, caller: Caller, names: Collection[int], seen: list[int] | None) -> Which:
        """The same as the store takes it, among the signals that the caller may see."""
        which = Which(
            signal_ids=seen, open=self.open, kind=self.kind, since=self.since, until=self.until,
            suppressed=self.suppressed, withheld=self.withheld, before_id=self.before,
        )  # fmt: skip
        if self.signal is not None:
            which["signal_ids"] = [number_of(reader, self.signal, names)]
        if self.like is not None:
            row = _visible(reader, self.like, caller)
            if row.alike is None:
                which["number"] = row.id
            else:
                which |= {"signal_ids": [row.signal], "alike": row.alike}
        return which


Filtered = Annotated[Filters, Depends()]


@router.get("", summary="Incidents", response_model=Incidents, responses=UNKNOWN)
async def list_incidents(
    monitor: Monitor,
    caller: READER,
    filters: Filtered,
    order: Annotated[
        Literal["newest", "rarest"],
        Query(description="By when they opened, the newest first; or by how rare they are, the rarest first."),
    ] = "newest",
    limit: Annotated[int, Query(ge=1, le=MOST_INCIDENTS, description="The most incidents.")] = 100,
) -> Response:
    """To page through them in the order in which they opened, pass the number of the last one as `before`."""

    def read(reader: StoreReader) -> list[dict[str, Any]]:
        names, seen = seen_signals(reader, caller)
        which = filters.which(reader, caller, names, seen)
        if order == "newest":
            found = reader.incidents(limit=limit, **which)
        else:
            paces = {one.id: pace_of(one.recent) for one in monitor.engine.overview()}
            seconds = {number: pace for number, pace in paces.items() if pace is not None}
            found = reader.rarest_incidents(seconds, limit=limit, **which)
        return [incident_json(row, names[row.signal]) for row in found]

    return reply({"incidents": await from_store(monitor, read)})


@router.get("/count", summary="How many incidents there are", response_model=IncidentCount, responses=UNKNOWN)
async def count_incidents(monitor: Monitor, caller: READER, filters: Filtered) -> Response:
    """How many the list has, without its limit."""

    def read(reader: StoreReader) -> int:
        return reader.count_incidents(**filters.which(reader, caller, *seen_signals(reader, caller)))

    return reply({"count": await from_store(monitor, read)})


def seen_signals(reader: StoreReader, caller: Caller) -> tuple[dict[int, str], list[int] | None]:
    """The names of the signals that the caller may see; and their numbers, None if the token is not limited."""
    names = {number: name for number, name in reader.signal_names().items() if caller.may_see(name)}
    return names, list(names) if caller.patterns else None


def number_of(reader: StoreReader, signal: str, seen: Collection[int]) -> int:
    """The number of the signal with this name, which must be among those that the caller may see."""
    row = reader.signal(signal)
    if row is None or row.id not in seen:
        raise UnknownError(f"there is no signal {signal!r}")
    return row.id


@router.get("/{number}", summary="One incident", response_model=IncidentOut)
async def one_incident(number: Id, monitor: Monitor, caller: READER) -> Response:
    """An incident by its number."""
    return reply(await from_store(monitor, lambda reader: _incident(reader, number, caller)))


def _incident(reader: StoreReader, number: int, caller: Caller) -> dict[str, Any]:
    row = _visible(reader, number, caller)
    return incident_json(row, reader.signal_names()[row.signal])


def _visible(reader: StoreReader, number: int, caller: Caller) -> IncidentRow:
    """An incident of a signal that the caller may see."""
    row = reader.incident(number)
    if row is None or not caller.may_see(reader.signal_names()[row.signal]):
        raise UnknownError(f"there is no incident {number}")
    return row


async def _own_number(number: Id, monitor: Monitor, caller: OPERATOR) -> int:
    """The number in an address; 404 if it is that of an incident of a signal that the caller may not see."""
    if caller.patterns:
        await from_store(monitor, lambda reader: _visible(reader, number, caller))
    return number


Own = Annotated[int, Depends(_own_number)]


def check_end(end: int, what: str) -> int:
    """Check the end of a snooze or a maintenance window: what is hidden for longer is forgotten."""
    if end > time.time_ns() + LONGEST_AHEAD:
        raise RefusedError(f"{what} must be at most {LONGEST_AHEAD // DAY} days ahead, got {time_text(end)}")
    return end


@router.post("/{number}/acknowledge", summary="Acknowledge an incident", response_model=IncidentOut)
async def acknowledge(
    number: Own, monitor: Monitor, caller: OPERATOR, given: Acknowledgement | None = None
) -> Response:
    """Record that the caller has seen it."""
    note = None if given is None else given.note
    return reply(await done(monitor.engine.incidents.acknowledge(number, caller.name, note)))


@router.delete("/{number}/acknowledge", summary="Take back an acknowledgement", response_model=IncidentOut)
async def forget(number: Own, monitor: Monitor, caller: OPERATOR) -> Response:
    """Removes the acknowledgement."""
    return reply(await done(monitor.engine.incidents.acknowledge(number, None, None)))


@router.post("/{number}/snooze", summary="Snooze an incident", response_model=IncidentOut)
async def snooze(number: Own, given: Snooze, monitor: Monitor, caller: OPERATOR) -> Response:
    """Send no alerts about it for a while, at most 30 days."""
    until = check_end(given.end(time.time_ns()), "until")
    return reply(await done(monitor.engine.incidents.snooze(number, until)))


@router.delete("/{number}/snooze", summary="Wake an incident", response_model=IncidentOut)
async def wake(number: Own, monitor: Monitor, caller: OPERATOR) -> Response:
    """Resume alerts about it."""
    return reply(await done(monitor.engine.incidents.snooze(number, None)))


@router.post("/{number}/label", summary="Label an incident", response_model=IncidentOut)
async def label(number: Own, given: Label, monitor: Monitor, caller: OPERATOR) -> Response:
    """A fault, a false alarm, expected, or not interesting; its observations may be excluded from the calibration set.

    A false alarm ends an open incident of alarms: its values are accepted as normal and learned. Any other label holds
    for the next incidents like it, up to twice as severe, until it is removed from one of them. After "expected" and
    "not interesting", no alerts are sent about those."""
    return reply(await done(monitor.engine.incidents.label(number, given.label, given.exclude, given.note, given.hold)))


MOST_ANNOTATIONS = 1000
annotations_router = ApiRouter(tags=["incidents"])


@annotations_router.get("/annotations", summary="Incidents as annotations", response_model=Annotations)
async def annotations(
    monitor: Monitor,
    caller: READER,
    start: Annotated[Given | None, Query(alias="from", description="Only those that did not end before.")] = None,
    end: Annotated[Given | None, Query(alias="to", description="Only those that did not start later.")] = None,
    match: Annotated[str, Query(max_length=LONGEST_NAME, description="A name pattern with * and ?.")] = "*",
    limit: Annotated[int, Query(ge=1, le=MOST_ANNOTATIONS, description="The most annotations.")] = 200,
) -> Response:
    """The newest first, with times in milliseconds since 1970, as Grafana reads them."""

    def read(reader: StoreReader) -> list[dict[str, Any]]:
        signals = {one.id: one for one in reader.signals() if caller.may_see(one.name) and fits_any(one.name, [match])}
        rows = reader.incidents(signal_ids=list(signals), since=start, until=end, limit=limit)
        return [_annotation(row, signals[row.signal]) for row in rows]

    return reply({"annotations": await from_store(monitor, read)})


def _annotation(incident: IncidentRow, signal: SignalRow) -> dict[str, Any]:
    return {
        "id": incident.id,
        "time": incident.start // 10**6,
        "timeEnd": incident.end // 10**6,
        "title": signal.name,
        "text": summary_of(incident, signal, "firing"),
        "tags": ["tocsin", incident.kind, level_of(incident), "open" if incident.open else incident.ended or "closed"],
    }

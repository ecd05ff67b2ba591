"""The same for many at once: each item succeeds or fails by itself, and is in the access log by itself."""

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from glob import escape
from typing import Any, ClassVar, Literal

from fastapi import Response
from pydantic import BaseModel, Field, model_validator

from tocsin_monitor.access_log import LONGEST_DETAILS, AccessEntry, recording
from tocsin_monitor.as_json import time_or_none
from tocsin_monitor.errors import MonitorError, RefusedError
from tocsin_monitor.http.auth import ADMIN, OPERATOR, WRITER, Caller
from tocsin_monitor.http.errors import UNKNOWN, HttpError
from tocsin_monitor.http.incidents import check_end
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess, check_ready, done, from_store, reply
from tocsin_monitor.http.replies import Moment, list_of
from tocsin_monitor.http.requests import Acknowledgement, Given, Groups, Label, Model, ShortText, SignalIn, Snooze, Text
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.store import StoreReader

MOST_ITEMS = 1000
# A detector that learns anew takes up to some seconds, and all signals wait meanwhile.
MOST_LEARNING = 200
# How many items the engine gets at once. Those that learn go one by one, so that observations pass in between.
_AT_ONCE = 20
# In seconds: what has not begun by then is reported as not done. Clients and proxies wait for a minute.
_PATIENCE = 45.0
router = ApiRouter(prefix="/bulk", tags=["bulk"], responses=UNKNOWN)


class Chosen(Model):
    """Which signals: give their names, or a pattern."""

    one_of: ClassVar[Groups] = (("signals", "pattern"),)
    signals: list[ShortText] | None = Field(None, min_length=1, max_length=MOST_ITEMS, description="Their names.")
    pattern: ShortText | None = Field(None, description="A name pattern with * and ?.", examples=["plant/line 2/*"])


class BulkIncidents(Chosen):
    """What to do with the open incidents of these signals: give one of acknowledge, snooze and label."""

    one_of: ClassVar[Groups] = (*Chosen.one_of, ("acknowledge", "snooze", "label"))
    acknowledge: Acknowledgement | None = None
    snooze: Snooze | None = None
    label: Label | None = None


class BulkSignals(Chosen):
    """What to do with these signals: give one of reset, settings and template."""

    one_of: ClassVar[Groups] = (*Chosen.one_of, ("reset", "settings", "template"))
    reset: Literal[True] | None = None
    settings: SignalIn | None = Field(None, description="What to change; all other settings stay as they are.")
    template: Literal[True] | None = Field(
        None, description="Give each the settings that a new signal of its name gets. Features and `every` stay."
    )


class BulkRemoval(Chosen):
    """Signals to remove."""

    count: int = Field(
        ge=1, description="How many the preview named. If there are more or fewer by now, none is removed."
    )


class BulkMaintenance(Model):
    """A maintenance window for each of these signals."""

    signals: list[ShortText] = Field(min_length=1, max_length=MOST_ITEMS, description="Their names.")
    start: Given
    end: Given
    reason: Text = ""

    @model_validator(mode="after")
    def _order(self) -> "BulkMaintenance":
        if self.start >= self.end:
            raise ValueError("end must be after start")
        return self


class RemovedSignal(BaseModel):
    """A signal that would be removed."""

    signal: str
    observations: int = Field(description="How many observations it has learned from.")
    last_time: Moment | None
    incident: int | None = Field(description="Its open incident.")


RemovalPreview = list_of("RemovalPreview", "The signals that would be removed.", "signals", RemovedSignal)


class ItemOut(BaseModel):
    """What became of one item."""

    signal: str
    incident: int | None = None
    error: str | None = Field(None, description="Why it failed; null if it was done.")


class BulkReply(BaseModel):
    """What became of each item, in order."""

    done: int
    failed: int
    items: list[ItemOut]


@dataclass(frozen=True, slots=True)
class _Item:
    """One thing to do: the request that would do it alone, and how to have the engine do it."""

    signal: str
    method: str
    target: str
    call: Callable[[], Future[Any]]
    incident: int | None = None


@router.post("/incidents", summary="Handle the open incidents of many signals", response_model=BulkReply)
async def incidents(given: BulkIncidents, monitor: Monitor, caller: OPERATOR) -> Response:
    """Acknowledges, snoozes or labels each open incident. A signal without one is left out."""
    names = set(chosen_names(given, monitor, caller))

    def read(reader: StoreReader) -> list[tuple[int, str]]:
        known = reader.signal_names()
        return [(row.id, known[row.signal]) for row in reader.open_incidents() if known.get(row.signal) in names]

    found = await from_store(monitor, read)
    _check_count(len(found), MOST_ITEMS, "incidents")
    engine = monitor.engine.incidents

    def item(number: int, name: str) -> _Item:
        path = f"/incidents/{number}"
        if given.snooze is not None:
            until = check_end(given.snooze.end(time.time_ns()), "until")
            return _Item(name, "POST", f"{path}/snooze", partial(engine.snooze, number, until), number)
        if given.label is not None:
            said = given.label
            label = partial(engine.label, number, said.label, said.exclude, said.note, said.hold)
            return _Item(name, "POST", f"{path}/label", label, number)
        note = None if given.acknowledge is None else given.acknowledge.note
        return _Item(
            name, "POST", f"{path}/acknowledge", partial(engine.acknowledge, number, caller.name, note), number
        )

    items = [item(number, name) for number, name in found]
    learns = given.label is not None
    return await _do(items, given, monitor, caller, 1 if learns else _AT_ONCE)


@router.post("/signals", summary="Reset or configure many signals", response_model=BulkReply)
async def signals(given: BulkSignals, monitor: Monitor, caller: WRITER) -> Response:
    """Resets each detector, changes only the settings given, or applies templates; up to 200 signals."""
    names = chosen_names(given, monitor, caller)
    _check_count(len(names), MOST_LEARNING, "signals")
    engine, settings = monitor.engine.signals, given.settings

    def item(name: str) -> _Item:
        if given.template is not None:
            return _Item(name, "PUT", f"/signals/{name}", lambda: engine.follow_template(name))
        if settings is None:
            return _Item(name, "POST", f"/signals/{name}/-/reset", lambda: engine.reset(name))
        wanted = settings.wanted()
        return _Item(name, "PUT", f"/signals/{name}", lambda: engine.configure(name, **wanted, keep=True))

    return await _do(map(item, names), given, monitor, caller, 1)


@router.post("/maintenance", summary="Add a maintenance window for each of many signals", response_model=BulkReply)
async def maintenance(given: BulkMaintenance, monitor: Monitor, caller: OPERATOR) -> Response:
    """For names that no pattern describes; for a pattern, add one window to `/maintenance`."""
    check_end(given.end, "end")
    engine = monitor.engine.maintenance

    def item(name: str) -> _Item:
        add = partial(engine.add, escape(name), given.start, given.end, given.reason, caller.name)
        return _Item(name, "POST", "/maintenance", add)

    names = chosen_names(Chosen(signals=given.signals, pattern=None), monitor, caller)
    return await _do(map(item, names), given, monitor, caller, _AT_ONCE)


@router.post("/removal/preview", summary="Preview the removal of many signals", response_model=RemovalPreview)
async def preview_removal(given: Chosen, monitor: Monitor, caller: ADMIN) -> Response:
    """Which signals there are, and what would be lost; nothing is removed."""
    names = set(chosen_names(given, monitor, caller))
    found = sorted((one for one in monitor.engine.overview() if one.name in names), key=lambda one: one.name)
    return reply(
        {
            "signals": [
                {
                    "signal": one.name,
                    "observations": one.observations,
                    "last_time": time_or_none(one.last_time),
                    "incident": one.incident,
                }
                for one in found
            ]
        }
    )


@router.post("/removal", summary="Remove many signals", response_model=BulkReply)
async def remove(given: BulkRemoval, monitor: Monitor, caller: ADMIN) -> Response:
    """Removes each with its observations and incidents, as the preview named them."""
    names = chosen_names(given, monitor, caller)
    _check_count(len(names), MOST_ITEMS, "signals")
    if len(names) != given.count:
        raise RefusedError(f"count must be that of the preview: there are {len(names)} signals now, got {given.count}")
    engine = monitor.engine.signals

    def item(name: str) -> _Item:
        return _Item(name, "DELETE", f"/signals/{name}", lambda: engine.remove(name))

    return await _do(map(item, names), given, monitor, caller, _AT_ONCE)


def chosen_names(given: Chosen, monitor: MonitorAccess, caller: Caller) -> list[str]:
    """The chosen signals that exist and concern the caller."""
    check_ready(monitor)
    there = sorted(one.name for one in monitor.engine.overview() if caller.may_see(one.name))
    if given.pattern is not None:
        pattern = given.pattern
        return [name for name in there if fnmatchcase(name, pattern)]
    known = set(there)
    return [name for name in dict.fromkeys(given.signals or ()) if name in known]


def _missing(names: Iterable[str], monitor: MonitorAccess, caller: Caller) -> list[ItemOut]:
    """Those of these signals that are not there, or do not concern the caller."""
    known = {one.name for one in monitor.engine.overview()}
    found = []
    for name in dict.fromkeys(names):
        try:
            caller.check_signal(name)
        except HttpError as error:
            found.append(ItemOut(signal=name, error=error.detail))
            continue
        if name not in known:
            found.append(ItemOut(signal=name, error=f"there is no signal {name!r}"))
    return found


def _check_count(found: int, most: int, what: str) -> None:
    if found > most:
        raise RefusedError(f"at most {most} {what} can be changed at once, got {found}: choose fewer")


async def _do(
    items: Iterable[_Item], given: Chosen | BulkMaintenance, monitor: MonitorAccess, caller: Caller, at_once: int
) -> Response:
    """Do everything that is asked for, some at a time; what fails does not keep the others from being done."""
    until, left = time.monotonic() + _PATIENCE, list(items)
    told = _missing(given.signals or (), monitor, caller)
    # What the access log says of each item.
    details = given.model_dump_json(exclude={"signals", "pattern", "count"}, exclude_none=True)[:LONGEST_DETAILS]
    for first in range(0, len(left), at_once):
        some = left[first : first + at_once]
        if time.monotonic() > until:
            late = f"not begun within {_PATIENCE:.0f} s: send it again"
            told += [ItemOut(signal=one.signal, incident=one.incident, error=late) for one in left[first:]]
            break
        asked = []
        for one in some:
            with recording(AccessEntry(caller.name, one.method, one.target, details)):
                asked.append(_settled(one))
        told += await asyncio.gather(*asked)
    failed = sum(one.error is not None for one in told)
    return reply({"done": len(told) - failed, "failed": failed, "items": told})


def _settled(item: _Item) -> "asyncio.Task[ItemOut]":
    """Have the engine do it now, in the name of who asks, and say later what became of it."""
    try:
        future = item.call()
    except MonitorError as problem:  # the engine accepts nothing now
        future = Future()
        future.set_exception(problem)

    async def wait() -> ItemOut:
        error = None
        try:
            await done(future)
        except MonitorError as problem:
            error = str(problem)
        return ItemOut(signal=item.signal, incident=item.incident, error=error)

    return asyncio.create_task(wait())

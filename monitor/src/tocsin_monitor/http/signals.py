"""Signals: their state, history and configuration."""

import math
import statistics
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from types import GenericAlias
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field, create_model
from starlette.concurrency import run_in_threadpool

from tocsin_monitor.as_json import json_of, time_text
from tocsin_monitor.engine import Point as RecentPoint
from tocsin_monitor.engine import SignalStatus
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import ADMIN, READER, WRITER, Caller
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess, check_ready, done, from_store, reply
from tocsin_monitor.http.replies import History, Number, Point, SignalOut, SignalsReply, model_of
from tocsin_monitor.http.requests import Given, SignalIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.observations import LONGEST_NAME, check_name
from tocsin_monitor.store import ObservationRow, ReferenceRow, StoreReader
from tocsin_monitor.store.thinning import LEAST_POINTS, thinned_history

MOST_HISTORY = 10_000
router = ApiRouter(tags=["signals"])


async def signal_name(
    request: Request,
    name: Annotated[
        str,
        Path(
            description="The signal's name, percent-encoded; it may contain slashes, encoded or not.",
            min_length=1,
            max_length=LONGEST_NAME,
            examples=["plant/pump 3/pressure"],
        ),
    ],
) -> str:
    """The name in an address; 404 if it is not a valid name, 403 if the caller may not see the signal."""
    try:
        check_name(name)
    except ValueError:
        raise UnknownError(f"there is no signal {name!r:.100}") from None
    caller: Caller | None = request.scope["caller"]
    return name if caller is None else caller.check_signal(name)


Name = Annotated[str, Depends(signal_name)]


@router.get("/signals", summary="All signals", response_model=SignalsReply)
async def list_signals(
    monitor: Monitor,
    caller: READER,
    search: Annotated[
        str, Query(max_length=LONGEST_NAME, description="Text contained in the name, ignoring case.")
    ] = "",
    silent: Annotated[bool | None, Query(description="Only silent ones, or only those that are not.")] = None,
    open: Annotated[bool | None, Query(description="Only those with an open incident, or without.")] = None,  # noqa: A002
    recent: Annotated[int, Query(ge=0, le=60, description="How many of the newest observations to return.")] = 60,
    order: Annotated[
        Literal["name", "unusual"],
        Query(
            description="By name; or by how unusual they are now: open incidents, then silent signals, then the rest, "
            "each by the p of the newest observation."
        ),
    ] = "name",
    limit: Annotated[int | None, Query(ge=1, description="The most signals; by default all.")] = None,
) -> Response:
    """The state of each signal."""
    wanted = search.casefold()
    found = [
        status
        for status in overview_of(monitor)
        if caller.may_see(status.name)
        and wanted in status.name.casefold()
        and silent in (None, status.silent)
        and open in (None, status.incident is not None)
    ]
    found.sort(key=_unusual_first if order == "unusual" else lambda status: status.name)
    return reply({"signals": [status_json(status, recent) for status in found[:limit]]})


def _unusual_first(status: SignalStatus) -> tuple[Any, ...]:
    # Hundreds may fall silent at once: they come after other incidents.
    rank = 2 if status.incident is None else int(status.silent)
    p, severity = (unknown if math.isnan(one) else one for one, unknown in ((status.p, 2.0), (status.severity, -1.0)))
    return status.quarantined is None, rank, p, -severity, status.name


@router.get("/signals/{name:path}/-/history", summary="A signal's observations", response_model=History)
async def history(
    name: Name,
    monitor: Monitor,
    caller: READER,
    start: Annotated[Given | None, Query(alias="from", description="The first time.")] = None,
    end: Annotated[Given | None, Query(alias="to", description="The last time.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_HISTORY, description="The most observations.")] = 1000,
    points: Annotated[
        int | None,
        Query(
            ge=LEAST_POINTS,
            le=MOST_HISTORY,
            description="For a chart of the whole range: at most this many observations, chosen so that extremes, "
            "alarms and missing values stay. Replaces `limit`.",
        ),
    ] = None,
) -> Response:
    """Observations with their verdicts, by time: the first ones since `from`, or the newest ones without it."""

    def read(reader: StoreReader) -> Response:
        row = reader.signal(name)
        if row is None:
            raise UnknownError(f"there is no signal {name!r}")
        if points is not None:
            chosen = thinned_history(reader, row, start, end, points)
            return reply(_history_json(chosen.rows, len(row.features), thinned=chosen.thinned))
        # `start` is included, but the store returns observations after a time.
        after = None if start is None else start - 1
        found = reader.observations(row.id, after=after, until=end, limit=limit, newest=start is None)
        return reply(_history_json(found, len(row.features)))

    return await from_store(monitor, read)


@router.get("/signals/{name:path}", summary="One signal", response_model=SignalOut)
async def one_signal(name: Name, monitor: Monitor, caller: READER) -> Response:
    """The state of a signal."""
    check_ready(monitor)
    return reply(status_json(monitor.engine.status(name)))


@router.put(
    "/signals/{name:path}",
    summary="Create or configure a signal",
    response_model=SignalOut,
    responses={201: {"model": SignalOut, "description": "It was created."}},
)
async def put_signal(name: Name, given: SignalIn, monitor: Monitor, caller: WRITER) -> Response:
    """An existing signal keeps settings that are not given. If they change, its detector relearns from the store.

    null removes a valid range or a minimum; these change without relearning.
    """
    check_ready(monitor)
    wanted, engine = given.wanted(), monitor.engine
    try:
        engine.status(name)
        change, code = engine.signals.configure(name, **wanted), 200
    except UnknownError:
        change, code = engine.signals.create(name, **wanted), 201
    await done(change)
    return reply(status_json(monitor.engine.status(name)), code)


@router.delete("/signals/{name:path}", summary="Remove a signal", status_code=204)
async def remove(name: Name, monitor: Monitor, caller: ADMIN) -> Response:
    """Removes its observations and incidents too."""
    await done(monitor.engine.signals.remove(name))
    return Response(status_code=204)


def overview_of(monitor: MonitorAccess) -> list[SignalStatus]:
    """How all signals are doing; NotReadyError while none of them is there yet."""
    signals = monitor.engine.overview()
    if not signals:
        check_ready(monitor)  # during a start, show the signals that are already rebuilt
    return signals


def status_json(status: SignalStatus, recent: int = 60) -> dict[str, Any]:
    """The status of a signal as JSON."""
    reference = None if status.reference is None else json_of(ReferenceRow, status.reference, ("signal",))
    shape = json_of(SignalStatus, status, ("id", "recent", "reference"))
    return {**shape, "recent": recent_json(status, recent), "reference": reference}


def recent_json(status: SignalStatus, count: int = 60) -> list[tuple[str, float, float, bool]]:
    """The newest observations, as they are told."""
    points = status.recent[-count:] if count else ()
    return [(time_text(point.time), point.value, point.p, point.alarm) for point in points]


def _history_json(rows: list[ObservationRow], count: int, *, thinned: bool = False) -> dict[str, Any]:
    judged = [row.judged for row in rows]
    return {
        "times": [time_text(row.time) for row in rows],
        "value": _columns([one.value for one in judged], count),
        "forecast": _columns([one.forecast for one in judged], count),
        "low": _columns([one.low for one in judged], count),
        "high": _columns([one.high for one in judged], count),
        "p": [one.p for one in judged],
        "alarm": [one.alarm for one in judged],
        "warm": [one.warm for one in judged],
        "status": [row.status.name.lower() for row in rows],
        "thinned": thinned,
    }


def _columns(rows: list[tuple[float, ...]], count: int) -> list[list[float]]:
    """One column for each feature, from one row for each observation."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(count)]


# As many rows as are in sight at once; with the longest names, they still fit into an address.
MOST_RECENT = 60


#: What of a signal's status the overview leaves out.
_NOT_SHOWN = ("id", "last_arrival", "alarm", "incident", "recent", "reference", "warning")
_ONE = model_of(
    "OneOfOverview", "", SignalStatus, leave_out=(*_NOT_SHOWN, "features"),
    features=Annotated[list[str] | None, Field(description="Feature names; null for a single one called value.")],
    pace=Annotated[Number, Field(description="The usual time between observations, in seconds.")],
)  # fmt: skip
_COLUMNS: dict[str, Any] = {
    name: (GenericAlias(list, (one.annotation,)), Field(description=one.description))
    for name, one in _ONE.model_fields.items()
}
Overview = create_model("Overview", __doc__="All signals as columns of one length.", **_COLUMNS)


class RecentReply(BaseModel):
    """The newest observations of some signals."""

    recent: dict[str, list[Point]]


def pace_of(points: Sequence[RecentPoint]) -> float | None:
    """The usual seconds between two of these observations; None if there are not two."""
    gaps = [(after.time - before.time) / 1e9 for before, after in pairwise(points[-16:])]
    return statistics.median(gaps) if gaps else None


def _column_entries(status: SignalStatus) -> dict[str, Any]:
    features = None if status.features == ("value",) else status.features
    return {**json_of(SignalStatus, status, _NOT_SHOWN), "features": features, "pace": pace_of(status.recent)}


@router.get("/overview", summary="All signals as columns", response_model=Overview)
async def overview(monitor: Monitor, caller: READER) -> Response:
    """The state of each signal, for a list of thousands; `/recent` has the newest observations of some of them."""

    def make() -> Response:
        seen = [_column_entries(one) for one in overview_of(monitor) if caller.may_see(one.name)]
        return reply({name: [one[name] for one in seen] for name in _COLUMNS})

    return await run_in_threadpool(make)  # thousands take a while, and others wait


@router.get("/recent", summary="The newest observations of some signals", response_model=RecentReply)
async def recent(
    monitor: Monitor,
    caller: READER,
    signals: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_NAME)]],
        Query(min_length=1, max_length=MOST_RECENT, description="Their names."),
    ],
) -> Response:
    """Up to 60 observations each, oldest first; signals that do not exist are left out."""
    check_ready(monitor)
    found = {}
    for name in filter(caller.may_see, signals):
        with suppress(UnknownError):
            found[name] = recent_json(monitor.engine.status(name))
    return reply({"recent": found})

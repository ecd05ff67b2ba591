"""Maintenance windows."""

import time
from itertools import islice
from typing import Annotated, Any

from fastapi import Path, Response

from tocsin_monitor.as_json import json_of, time_text
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import OPERATOR, READER
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.incidents import LARGEST_ID, check_end
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import MaintenanceOut, MaintenanceWindows
from tocsin_monitor.http.requests import MaintenanceIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.store import FOREVER, MaintenanceRow

MOST_SHOWN = 5
router = ApiRouter(prefix="/maintenance", tags=["maintenance"])


@router.get("", summary="All maintenance windows", response_model=MaintenanceWindows)
async def list_windows(monitor: Monitor, caller: READER) -> Response:
    """Including past ones."""
    rows = await from_store(monitor, lambda reader: reader.maintenance())
    return reply({"maintenance": [_json(row) for row in rows if caller.may_plan(row.pattern)]})


@router.post("", summary="Add a maintenance window", status_code=201, response_model=MaintenanceOut)
async def add(given: MaintenanceIn, monitor: Monitor, caller: OPERATOR) -> Response:
    """Observations from `start` up to but not including `end` are stored but not judged.

    It must end within 30 days, unless it recurs: then it lasts `duration` seconds from each time of `schedule`.
    """
    if not caller.may_plan(given.pattern):
        raise HttpError(403, f"this token is for {', '.join(caller.patterns)} only, got {given.pattern!r}", "pattern")
    row = _row(given)
    if row.recurs is None:
        check_end(row.end, "end")
    adding = monitor.engine.maintenance.add(row.pattern, row.start, row.end, row.reason, caller.name, row.recurs)
    return reply(_json(await done(adding)), 201)


@router.post("/preview", summary="Preview a maintenance window", response_model=MaintenanceOut)
async def preview(given: MaintenanceIn, monitor: Monitor, caller: READER) -> Response:
    """The window as it would be, with its next occurrences; nothing is added."""
    return reply(_json(_row(given)))


def _row(given: MaintenanceIn) -> MaintenanceRow:
    start = time.time_ns() if given.start is None else given.start
    end = FOREVER if given.end is None else given.end
    recurs = (None, None, None) if given.schedule is None else (given.schedule, given.duration, given.time_zone)
    return MaintenanceRow(0, given.pattern, start, end, given.reason, "", *recurs)


def _json(row: MaintenanceRow) -> dict[str, Any]:
    """A window with the occurrences that are not over, the next few of them."""
    now, recurs = time.time_ns(), row.recurs
    first = max(now, row.start)
    coming = () if recurs is None else islice(recurs.occurrences(first), MOST_SHOWN)
    told = [(max(start, row.start), min(end, row.end)) for start, end in coming if start < row.end]
    return {
        **json_of(MaintenanceRow, row),
        "end": None if row.end == FOREVER else time_text(row.end),
        "occurrences": [{"start": time_text(start), "end": time_text(end)} for start, end in told],
    }


@router.delete("/{number}", summary="Remove a maintenance window", status_code=204)
async def remove(
    number: Annotated[int, Path(ge=1, le=LARGEST_ID, description="The window's number.")],
    monitor: Monitor,
    caller: OPERATOR,
) -> Response:
    """End or cancel it. Observations not judged in it stay unjudged."""
    if caller.patterns:
        windows = await from_store(monitor, lambda reader: reader.maintenance())
        if not any(row.id == number and caller.may_plan(row.pattern) for row in windows):
            raise UnknownError(f"there is no maintenance window {number}")
    await done(monitor.engine.maintenance.remove(number))
    return Response(status_code=204)

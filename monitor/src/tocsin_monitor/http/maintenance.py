"""Maintenance windows."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from tocsin_monitor.as_json import json_of
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import OPERATOR, READER
from tocsin_monitor.http.bodies import TAKES_JSON
from tocsin_monitor.http.errors import COMMON, UNKNOWN, WITH_BODY, HttpError
from tocsin_monitor.http.incidents import LARGEST_ID, check_end
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import MaintenanceOut, MaintenanceWindows
from tocsin_monitor.http.requests import MaintenanceIn
from tocsin_monitor.store import MaintenanceRow

router = APIRouter(prefix="/maintenance", tags=["maintenance"])


@router.get("", summary="All maintenance windows", response_model=MaintenanceWindows, responses=COMMON)
async def list_windows(monitor: Monitor, caller: READER) -> Response:
    """Including past ones."""
    rows = await from_store(monitor, lambda reader: reader.maintenance())
    return reply({"maintenance": [json_of(MaintenanceRow, row) for row in rows if caller.may_plan(row.pattern)]})


@router.post(
    "", summary="Add a maintenance window", status_code=201, response_model=MaintenanceOut, responses=WITH_BODY,
    dependencies=[TAKES_JSON],
)  # fmt: skip
async def add(given: MaintenanceIn, monitor: Monitor, caller: OPERATOR) -> Response:
    """Observations from `start` up to but not including `end` are stored but not judged. It must end within 30 days."""
    check_end(given.end, "end")
    if not caller.may_plan(given.pattern):
        raise HttpError(403, f"this token is for {', '.join(caller.patterns)} only, got {given.pattern!r}", "pattern")
    row = await done(monitor.engine.maintenance.add(given.pattern, given.start, given.end, given.reason, caller.name))
    return reply(json_of(MaintenanceRow, row), 201)


@router.delete(
    "/{number}", summary="Remove a maintenance window", status_code=204, response_class=Response,
    responses=COMMON | UNKNOWN,
)  # fmt: skip
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

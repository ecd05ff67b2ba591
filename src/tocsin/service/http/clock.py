"""Clocks that were ahead, and observations that were refused."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Response

from tocsin.service.as_json import time_text
from tocsin.service.http.auth import READER, WRITER
from tocsin.service.http.content_type import TAKES_JSON
from tocsin.service.http.error_replies import COMMON, UNKNOWN, WITH_BODY
from tocsin.service.http.monitor_access import Monitor, done, from_store, reply
from tocsin.service.http.replies import RefusedObservations, SignalOut
from tocsin.service.http.requests import ClockIn
from tocsin.service.http.signals import Name, status_json

router = APIRouter(tags=["observations"])


@router.post(
    "/signals/{name:path}/-/clock", summary="Correct a signal's clock", response_model=SignalOut,
    responses=WITH_BODY | UNKNOWN, dependencies=[TAKES_JSON],
)  # fmt: skip
async def set_clock(name: Name, given: ClockIn, monitor: Monitor, caller: WRITER) -> Response:
    """Observations after that time are listed as refused, and the detector relearns from those before."""
    to = time.time_ns() if given.to is None else given.to
    await done(monitor.engine.signals.set_clock(name, to))
    return reply(status_json(monitor.engine.status(name)))


@router.get("/refused", summary="Refused observations", response_model=RefusedObservations, responses=COMMON)
async def refused(
    monitor: Monitor,
    caller: READER,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only those with a smaller id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The most observations.")] = 100,
) -> Response:
    """Observations that were not added to their signal, and why, the newest first."""
    rows = await from_store(monitor, lambda reader: reader.refused(limit=limit, before_id=before))
    return reply(
        {
            "refused": [
                {
                    "id": row.id,
                    "signal": row.signal,
                    "time": time_text(row.time),
                    "value": row.value,
                    "source": row.source,
                    "reason": row.reason,
                    "noted": time_text(row.noted),
                }
                for row in rows
                if caller.may_see(row.signal)
            ]
        }
    )

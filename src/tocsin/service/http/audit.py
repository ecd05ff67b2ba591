"""The audit trail."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tocsin.service.as_json import time_text
from tocsin.service.http.auth import ADMIN
from tocsin.service.http.error_replies import COMMON
from tocsin.service.http.incidents import LARGEST_ID
from tocsin.service.http.monitor_access import Monitor, from_store, reply
from tocsin.service.http.replies import AuditTrailReply

MOST_DEEDS = 1000
router = APIRouter(tags=["system"])


@router.get("/audit", summary="The audit trail", response_model=AuditTrailReply, responses=COMMON)
async def audit(
    monitor: Monitor,
    caller: ADMIN,
    who: Annotated[str | None, Query(max_length=200, description="Only actions of this caller.")] = None,
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Only those with a lower number.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_DEEDS, description="The most entries.")] = 100,
) -> Response:
    """Every change that a user made, the newest first. To page, pass the number of the last one as `before`."""
    rows = await from_store(monitor, lambda reader: reader.access_log(before_id=before, who=who, limit=limit))
    shapes = [
        {
            "id": row.id,
            "time": time_text(row.time),
            "who": row.who,
            "action": row.action,
            "target": row.target,
            "details": row.details,
        }
        for row in rows
    ]
    return reply({"audit": shapes})

"""Incidents as annotations of charts, for Grafana."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from tocsin.service.http.auth import READER, Caller
from tocsin.service.http.error_replies import COMMON
from tocsin.service.http.monitor_access import Monitor, from_store, reply
from tocsin.service.http.replies import Annotations
from tocsin.service.http.requests import Given
from tocsin.service.observations import LONGEST_NAME
from tocsin.service.sinks.alerts import level_of, summary_of
from tocsin.service.store import IncidentRow, SignalRow, StoreReader
from tocsin.service.tokens import fits_any

MOST_ANNOTATIONS = 1000
router = APIRouter(tags=["incidents"])


@router.get("/annotations", summary="Incidents as annotations", response_model=Annotations, responses=COMMON)
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
        return _found(reader, caller, match, start, end, limit)

    return reply({"annotations": await from_store(monitor, read)})


def _found(
    reader: StoreReader, caller: Caller, match: str, start: int | None, end: int | None, limit: int
) -> list[dict[str, Any]]:
    signals = {one.id: one for one in reader.signals() if caller.may_see(one.name) and fits_any(one.name, [match])}
    rows = reader.incidents(signal_ids=list(signals), since=start, until=end, limit=limit)
    return [_annotation(row, signals[row.signal]) for row in rows]


def _annotation(incident: IncidentRow, signal: SignalRow) -> dict[str, Any]:
    return {
        "id": incident.id,
        "time": incident.start // 10**6,
        "timeEnd": incident.end // 10**6,
        "title": signal.name,
        "text": summary_of(incident, signal, "firing"),
        "tags": ["tocsin", incident.kind, level_of(incident), "open" if incident.open else incident.ended or "closed"],
    }

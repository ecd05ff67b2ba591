"""Signals as metrics, for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from tocsin.service.http.auth import READER
from tocsin.service.http.error_replies import COMMON
from tocsin.service.http.monitor_access import Monitor, check_ready, from_store
from tocsin.service.observations import LONGEST_NAME
from tocsin.service.signal_metrics import SignalMetrics
from tocsin.service.tokens import fits_any

MOST_SIGNALS = 2000
MOST_PATTERNS = 20
router = APIRouter(tags=["system"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@router.get(
    "/metrics/signals", summary="Signals as metrics", response_class=Response,
    responses={200: {"content": _TEXT, "description": "Metrics as Prometheus reads them."}, **COMMON},
)  # fmt: skip
async def signal_metrics(
    monitor: Monitor,
    caller: READER,
    match: Annotated[
        list[Annotated[str, Query(max_length=LONGEST_NAME)]],
        Query(max_length=MOST_PATTERNS, description="Name patterns with * and ?; repeatable."),
    ] = ["*"],  # noqa: B006 the framework copies it
    limit: Annotated[int, Query(ge=1, le=MOST_SIGNALS, description="The most signals, by name.")] = 500,
) -> Response:
    """The newest verdict on each signal whose name matches."""
    check_ready(monitor)
    found = sorted(
        (one for one in monitor.engine.overview() if caller.may_see(one.name) and fits_any(one.name, match)),
        key=lambda one: one.name,
    )
    shown = found[:limit]
    wanted = [(one.id, one.last_time) for one in shown if one.last_time is not None]
    newest = await from_store(monitor, lambda reader: reader.observations_at(wanted))
    text = SignalMetrics(shown, newest, len(found) - len(shown)).text()
    return Response(text, media_type=CONTENT_TYPE_LATEST)

"""The status of the monitor: probes and metrics."""

import time
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from tocsin import __version__
from tocsin.service.as_json import time_or_none, time_text
from tocsin.service.errors import NotReadyError
from tocsin.service.http.auth import READER
from tocsin.service.http.error_replies import COMMON, errors
from tocsin.service.http.monitor_access import Monitor, SourceOrSink, reply
from tocsin.service.http.push import Pushed
from tocsin.service.http.replies import Health, StatusOut

router = APIRouter(tags=["system"])
probes = APIRouter(tags=["system"])

_TEXT = {"text/plain": {"schema": {"type": "string"}}}


async def healthz() -> Response:
    """Whether the process is alive. No token is needed."""
    return reply({"status": "alive"})


async def readyz(monitor: Monitor) -> Response:
    """Whether observations are accepted. No token is needed."""
    engine = monitor.engine
    if not engine.ready or engine.stalled:
        raise NotReadyError(f"the monitor accepts no observations now: {engine.progress}")
    return reply({"status": "ready"})


for path, probe in (("/healthz", healthz), ("/readyz", readyz)):
    replies = errors(403, 429, 500, 503)
    probes.add_api_route(path, probe, summary=path.strip("/"), response_model=Health, responses=replies)
    probes.add_api_route(path, probe, methods=["HEAD"], include_in_schema=False)


@probes.get(
    "/metrics", summary="Metrics", response_class=Response,
    responses={200: {"content": _TEXT, "description": "Metrics as Prometheus reads them."}, **COMMON},
)  # fmt: skip
async def metrics(monitor: Monitor, caller: READER) -> Response:
    """The monitor's own metrics."""
    numbers = await monitor.figures.newest()
    for sink in monitor.sinks:  # without sinks that were removed from the settings
        monitor.metrics.outbox_waiting.labels(sink.name).set(numbers.outbox.get(sink.name, 0))
    monitor.metrics.store_bytes.set(numbers.store_bytes)
    monitor.metrics.event_subscribers.set(monitor.hub.subscribers)
    return Response(monitor.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/status", summary="How the monitor is doing", response_model=StatusOut, responses=COMMON)
async def status(monitor: Monitor, caller: READER, receivers: Pushed) -> Response:
    """Whether it is ready, its sizes, and the state of its sources and sinks."""
    engine = monitor.engine
    signals = [signal for signal in engine.overview() if caller.may_see(signal.name)]
    now, jumped = time.time_ns(), engine.clock.jumped
    numbers = await monitor.figures.newest()
    open_incidents = numbers.open_incidents
    sources, sinks = [*monitor.sources, *receivers.used], monitor.sinks
    if caller.patterns:
        open_incidents = sum(signal.incident is not None for signal in signals)
        sources, sinks = [], ()  # their errors may name any signal
    return reply(
        {
            "version": __version__,
            "ready": engine.ready and not engine.stalled,
            "progress": engine.progress,
            "started": time_text(monitor.started),
            "uptime": (time.time_ns() - monitor.started) / 1e9,
            "signals": len(signals),
            "silent": sum(signal.silent for signal in signals),
            "aside": [{"name": one.name, "reason": one.aside} for one in signals if one.aside is not None],
            "ahead": [one.name for one in signals if one.last_time is not None and one.last_time > now][:100],
            "clock_jumped": None if jumped is None else time_text(jumped[0]),
            "clock_jump": None if jumped is None else jumped[1],
            "open_incidents": open_incidents,
            "waiting": engine.waiting,
            "store_bytes": numbers.store_bytes,
            "outbox": {sink.name: numbers.outbox.get(sink.name, 0) for sink in sinks},
            "sources": [_source(source) for source in sources],
            "sinks": [_source_or_sink(sink) for sink in sinks],
        }
    )


def _source(source: SourceOrSink) -> dict[str, Any]:
    health = source.health
    counts = {"received": health.received, "skipped": health.skipped, "left_out": dict(health.left_out)}
    return {**_source_or_sink(source), **counts}


def _source_or_sink(one: SourceOrSink) -> dict[str, Any]:
    health = one.health
    return {
        "name": one.name,
        "last_success": time_or_none(health.last_success),
        "last_error": health.last_error,
        "last_error_time": time_or_none(getattr(health, "last_error_time", None)),
    }

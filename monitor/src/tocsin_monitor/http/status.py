"""The status of the monitor: probes, its own metrics, and its signals as metrics."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tocsin import __version__
from tocsin_monitor.as_json import json_of, time_text
from tocsin_monitor.engine import SignalStatus
from tocsin_monitor.errors import NotReadyError
from tocsin_monitor.http.auth import ADMIN, READER
from tocsin_monitor.http.errors import COMMON, errors
from tocsin_monitor.http.monitor_access import Monitor, check_ready, from_store, reply
from tocsin_monitor.http.push import Pushed
from tocsin_monitor.http.replies import Health, ReloadedOut, StatusOut
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.metrics import SinkHealth, SourceHealth
from tocsin_monitor.observations import LONGEST_NAME
from tocsin_monitor.reloading import Reloaded
from tocsin_monitor.store import ObservationRow
from tocsin_monitor.tokens import fits_any

router = ApiRouter(tags=["system"])
probes = APIRouter(tags=["system"])
signal_probes = ApiRouter(tags=["system"])

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
    monitor.metrics.stream_subscribers.set(monitor.hub.subscribers)
    return Response(monitor.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.post("/reload", summary="Read the settings file again", response_model=ReloadedOut)
async def reload(monitor: Monitor, caller: ADMIN) -> Response:
    """All settings are checked before any changes; if one is wrong, none does. Existing signals stay as they are."""
    check_ready(monitor)
    return reply(json_of(Reloaded, await monitor.reload()))


@router.get("/status", summary="How the monitor is doing", response_model=StatusOut)
async def status(monitor: Monitor, caller: READER, receivers: Pushed) -> Response:
    """Whether it is ready, its sizes, and the state of its sources and sinks."""
    engine = monitor.engine
    signals = [signal for signal in engine.overview() if caller.may_see(signal.name)]
    warned = [signal for signal in signals if signal.warning is not None][:100]
    now, jumped = time.time_ns(), engine.clock.jumped
    opened, reported = engine.expected_false(caller.may_see)
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
            "learning": sum(
                one.stage not in ("done", "failed") and caller.may_see(one.signal) for one in engine.imports()
            ),
            "quarantined": [
                {"name": one.name, "reason": one.quarantined} for one in signals if one.quarantined is not None
            ],
            "ahead": [one.name for one in signals if one.last_time is not None and one.last_time > now][:100],
            "warnings": [{"name": one.name, "reason": one.warning} for one in warned],
            "clock_jumped": None if jumped is None else time_text(jumped[0]),
            "clock_jump": None if jumped is None else jumped[1],
            "open_incidents": open_incidents,
            "expected_false_incidents": opened * WEEK,
            "expected_false_reported": reported * WEEK,
            "waiting": engine.waiting,
            "store_bytes": numbers.store_bytes,
            "outbox": {sink.name: numbers.outbox.get(sink.name, 0) for sink in sinks},
            "sources": [{"name": one.name, **json_of(SourceHealth, one.health)} for one in sources],
            "sinks": [{"name": one.name, **json_of(SinkHealth, one.health)} for one in sinks],
        }
    )


WEEK = 7 * 86400
MOST_SIGNALS = 2000
MOST_PATTERNS = 20


@signal_probes.get(
    "/metrics/signals", summary="Signals as metrics", response_class=Response,
    responses={200: {"content": _TEXT, "description": "Metrics as Prometheus reads them."}},
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


STATES = ("warming up", "watched", "silent", "quarantined")
_OF_FEATURES = {
    "value": "The newest value.",
    "forecast": "Its forecast.",
    "low": "Below this, the error alone would have raised an alarm.",
    "high": "Above this, the error alone would have raised an alarm.",
}


class SignalMetrics(Collector):
    """The metrics of some signals, with their newest observations. `left_out` others matched, but were too many."""

    def __init__(
        self,
        signals: Collection[SignalStatus] = (),
        newest: Mapping[tuple[int, int], ObservationRow] = {},
        left_out: int = 0,
    ) -> None:
        self._signals, self._newest, self._left_out = signals, newest, left_out

    def collect(self) -> Iterator[Metric]:
        def last_time(signal: SignalStatus) -> float:
            return math.nan if signal.last_time is None else signal.last_time / 1e9

        yield from self._features()
        yield self._of_signals("p", "The p-value of the newest observation.", lambda one: one.p)
        yield self._of_signals("severity", "How anomalous the newest observation is.", lambda one: one.severity)
        yield self._of_signals("incident_open", "Whether an incident is open.", lambda one: one.incident is not None)
        yield self._of_signals("last_time_seconds", "The time of the newest observation (Unix time).", last_time)
        states = GaugeMetricFamily("tocsin_signal_state", "1 for the signal's state.", labels=["signal", "state"])
        for signal in self._signals:
            for state in STATES:
                states.add_metric([signal.name, state], float(state == state_of(signal)))
        yield states
        yield GaugeMetricFamily(
            "tocsin_signal_left_out", "Signals that match but are beyond the limit.", value=self._left_out
        )

    def text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def _features(self) -> Iterator[Metric]:
        for name, about in _OF_FEATURES.items():
            family = GaugeMetricFamily(f"tocsin_signal_{name}", about, labels=["signal", "feature"])
            for signal in self._signals:
                row = None if signal.last_time is None else self._newest.get((signal.id, signal.last_time))
                for feature, value in zip(signal.features, getattr(row.judged, name) if row else (), strict=False):
                    if not math.isnan(value):
                        family.add_metric([signal.name, feature], value)
            yield family

    def _of_signals(self, name: str, about: str, value: Callable[[SignalStatus], float]) -> Metric:
        family = GaugeMetricFamily(f"tocsin_signal_{name}", about, labels=["signal"])
        for signal in self._signals:
            if not math.isnan(number := float(value(signal))):
                family.add_metric([signal.name], number)
        return family


def state_of(signal: SignalStatus) -> str:
    """Its state, one of STATES."""
    if signal.quarantined is not None:
        return "quarantined"
    if signal.silent:
        return "silent"
    return "watched" if signal.warm else "warming up"

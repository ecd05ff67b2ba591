"""The monitor's own metrics, for Prometheus, and how its sources and sinks are doing."""

import time
from collections import Counter as Counts
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tocsin_monitor.fields import Shown, Time

# From an idle tick to one that waits for a slow disk.
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Kind = TypeVar("Kind", Counter, Gauge, Histogram)


class Metrics:
    """The metrics of one monitor, in their own registry. Labels never contain the name of a signal.

    The engine updates those of observations, alarms, incidents, signals, ticks, its queue, snapshots and replays.
    Sources and the outbox update their own. The HTTP server updates those of requests and rejections, and at each
    scrape the size of the store and of the outbox.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(self._make, Counter), partial(self._make, Gauge)
        seconds = partial(self._make, Histogram, buckets=_SECONDS)
        self.observations = counter("tocsin_observations_total", "Observations by outcome.", "status", "source")
        self.alarms = counter("tocsin_alarms_total", "Alarms.")
        self.incidents_open = gauge("tocsin_incidents_open", "Open incidents.", "kind")
        self.signals = gauge("tocsin_signals", "Signals.")
        self.signals_silent = gauge("tocsin_signals_silent", "Signals without observations.")
        self.signals_quarantined = gauge(
            "tocsin_signals_quarantined", "Signals quarantined because their detectors cannot be rebuilt."
        )
        self.signals_learning = gauge(
            "tocsin_signals_learning", "Signals with imported history that is not yet learned."
        )
        self.refused_observations = counter(
            "tocsin_refused_observations_total", "Observations that the store rejects permanently."
        )
        self.left_out = counter(
            "tocsin_left_out_total",
            "Pushed points that are no observations: native histograms, unmatched series, first counts.",
            "source",
            "kind",
        )
        self.signals_ahead = gauge("tocsin_signals_ahead", "Signals whose newest observation is ahead of the clock.")
        self.clock_jumps = counter("tocsin_clock_jumps_total", "Number of jumps of the system clock.")
        self.tick_seconds = seconds(
            "tocsin_tick_seconds", "Duration of one turn of the engine: scoring and one transaction."
        )
        self.ingest_seconds = seconds("tocsin_ingest_seconds", "Time from accepting a batch to its commit.")
        self.waiting_observations = gauge(
            "tocsin_waiting_observations", "The backlog of observations waiting for the engine."
        )
        self.rejected = counter(
            "tocsin_rejected_total", "Rejected requests, by reason; too many or malformed connections too.", "reason"
        )
        self.outbox_waiting = gauge("tocsin_outbox_waiting", "Messages that the sink has not accepted yet.", "sink")
        self.deliveries = counter("tocsin_deliveries_total", "Attempts to deliver a message.", "sink", "outcome")
        self.snapshot_seconds = seconds("tocsin_snapshot_seconds", "Time to write the state of signals.")
        self.replayed_observations = counter(
            "tocsin_replayed_observations_total", "Stored observations scored again after a restart."
        )
        self.store_bytes = gauge("tocsin_store_bytes", "Size of the store.")
        self.source_errors = counter(
            "tocsin_source_errors_total", "Errors of sources, including skipped lines and messages.", "source"
        )
        self.http_requests = counter("tocsin_http_requests_total", "Requests answered.", "method", "status")
        self.stream_subscribers = gauge("tocsin_stream_subscribers", "Open live streams, about one per open page.")
        self.leader = gauge("tocsin_leader", "1 if the monitor leads, 0 on standby.")
        self.up_since_seconds = gauge("tocsin_up_since_seconds", "When the monitor was started (Unix time).")
        self.up_since_seconds.set(time.time())

    def _make(self, kind: type[Kind], name: str, about: str, *labels: str, **more: Any) -> Kind:
        return kind(name, about, labels, registry=self.registry, **more)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@dataclass
class SinkHealth:
    """The health of a sink."""

    last_success: Time | None = None
    last_error: str | None = None
    last_error_time: Time | None = None


@dataclass
class SourceHealth(SinkHealth):
    """The health of a source, or of a format that others push."""

    received: Annotated[int, Shown("How many observations came from it since the monitor started.")] = 0
    skipped: Annotated[int, Shown("How many things that are no observation, and never will be, it brought.")] = 0
    left_out: Annotated[
        Counts[str],
        Shown("How many points are no observations, such as native histograms, by what they are."),
    ] = field(default_factory=Counts)

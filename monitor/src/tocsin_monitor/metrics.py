"""The monitor's own metrics, for Prometheus."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

# From an idle tick to one that waits for a slow disk.
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one monitor, in their own registry. Labels never contain the name of a signal.

    The engine updates those of observations, alarms, incidents, signals, ticks, its queue, snapshots and replays.
    Sources and the outbox update their own. The HTTP server updates those of requests and rejections, and at each
    scrape the size of the store and of the outbox.
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.observations = Counter(
            "tocsin_observations_total", "Observations by outcome.", ["status", "source"], registry=registry
        )
        self.alarms = Counter("tocsin_alarms_total", "Alarms.", registry=registry)
        self.incidents_open = Gauge("tocsin_incidents_open", "Open incidents.", ["kind"], registry=registry)
        self.signals = Gauge("tocsin_signals", "Signals.", registry=registry)
        self.signals_silent = Gauge("tocsin_signals_silent", "Signals without observations.", registry=registry)
        self.signals_quarantined = Gauge(
            "tocsin_signals_quarantined", "Signals quarantined because they cannot be rebuilt.", registry=registry
        )
        self.signals_learning = Gauge(
            "tocsin_signals_learning", "Signals with imported history that is not yet learned.", registry=registry
        )
        self.refused_observations = Counter(
            "tocsin_refused_observations_total", "Observations that the store rejects permanently.", registry=registry
        )
        self.left_out = Counter(
            "tocsin_left_out_total", "Pushed points that are no observations.", ["source", "kind"], registry=registry
        )
        self.signals_ahead = Gauge(
            "tocsin_signals_ahead", "Signals whose newest observation is ahead of the clock.", registry=registry
        )
        self.clock_jumps = Counter(
            "tocsin_clock_jumps_total", "Number of jumps of the system clock.", registry=registry
        )
        self.tick_seconds = Histogram(
            "tocsin_tick_seconds", "Duration of one engine tick.", buckets=_SECONDS, registry=registry
        )
        self.ingest_seconds = Histogram(
            "tocsin_ingest_seconds", "Time from accepting a batch to its commit.", buckets=_SECONDS, registry=registry
        )
        self.waiting_observations = Gauge(
            "tocsin_waiting_observations", "The backlog of observations waiting for the engine.", registry=registry
        )
        self.rejected = Counter(
            "tocsin_rejected_total", "Rejected requests and observations.", ["reason"], registry=registry
        )
        self.outbox_waiting = Gauge(
            "tocsin_outbox_waiting", "Messages waiting to be delivered.", ["sink"], registry=registry
        )
        self.deliveries = Counter(
            "tocsin_deliveries_total", "Attempts to deliver a message.", ["sink", "outcome"], registry=registry
        )
        self.snapshot_seconds = Histogram(
            "tocsin_snapshot_seconds", "Time to write the state of signals.", buckets=_SECONDS, registry=registry
        )
        self.replayed_observations = Counter(
            "tocsin_replayed_observations_total", "Stored observations scored again after a restart.", registry=registry
        )
        self.store_bytes = Gauge("tocsin_store_bytes", "Size of the store.", registry=registry)
        self.source_errors = Counter("tocsin_source_errors_total", "Errors of sources.", ["source"], registry=registry)
        self.http_requests = Counter(
            "tocsin_http_requests_total", "Requests answered.", ["method", "status"], registry=registry
        )
        self.stream_subscribers = Gauge("tocsin_stream_subscribers", "Open live streams.", registry=registry)
        self.leader = Gauge("tocsin_leader", "1 if the monitor leads, 0 on standby.", registry=registry)
        self.up_since_seconds = Gauge(
            "tocsin_up_since_seconds", "When the monitor was started (Unix time).", registry=registry
        )
        self.up_since_seconds.set(time.time())

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

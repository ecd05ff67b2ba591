"""The newest verdict on each signal, for Prometheus."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tocsin.service.engine import SignalStatus
from tocsin.service.store import ObservationRow

STATES = ("warming up", "watched", "silent", "set aside")
_OF_FEATURES = {
    "value": "The newest value.",
    "forecast": "Its forecast.",
    "low": "Below this, the error alone would have raised an alarm.",
    "high": "Above this, the error alone would have raised an alarm.",
}

#: What is told of a signal.
Number = Callable[[SignalStatus], float]
#: The newest observations, by signal and time.
Newest = Mapping[tuple[int, int], ObservationRow]


class SignalMetrics(Collector):
    """The metrics of some signals. `left_out` others matched, but were too many."""

    def __init__(self, signals: Collection[SignalStatus] = (), newest: Newest | None = None, left_out: int = 0) -> None:
        self._signals, self._newest, self._left_out = signals, newest or {}, left_out

    def collect(self) -> Iterator[Metric]:
        yield from self._features()
        yield self._of_signals("p", "The p-value of the newest observation.", lambda one: one.p)
        yield self._of_signals("severity", "How anomalous the newest observation is.", lambda one: one.severity)
        yield self._of_signals("incident_open", "Whether an incident is open.", lambda one: one.incident is not None)
        yield self._of_signals("last_time_seconds", "The time of the newest observation (Unix time).", _last_time)
        states = GaugeMetricFamily("tocsin_signal_state", "1 for the signal's state.", labels=["signal", "state"])
        for signal in self._signals:
            for state in STATES:
                states.add_metric([signal.name, state], float(state == state_of(signal)))
        yield states
        yield GaugeMetricFamily(
            "tocsin_signal_left_out", "Signals that match but are beyond the limit.", value=self._left_out
        )

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
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

    def _of_signals(self, name: str, about: str, value: Number) -> Metric:
        family = GaugeMetricFamily(f"tocsin_signal_{name}", about, labels=["signal"])
        for signal in self._signals:
            if not math.isnan(number := float(value(signal))):
                family.add_metric([signal.name], number)
        return family


def state_of(signal: SignalStatus) -> str:
    """Its state, one of STATES."""
    if signal.aside is not None:
        return "set aside"
    if signal.silent:
        return "silent"
    return "watched" if signal.warm else "warming up"


def _last_time(signal: SignalStatus) -> float:
    return math.nan if signal.last_time is None else signal.last_time / 1e9

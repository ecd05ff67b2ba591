"""The formats that others push, and how each of them is doing."""

import asyncio

from tocsin.service.config import InfluxRule, OtlpRule, PushSettings, RemoteWriteRule
from tocsin.service.metrics import Metrics
from tocsin.service.push.intake import Intake, Naming
from tocsin.service.push.rates import Rates
from tocsin.service.sources.base import Reporter


class Receiver(Reporter):
    """One format: the counters that it knows, and its health."""

    def __init__(self, name: str, metrics: Metrics) -> None:
        super().__init__(name, metrics)
        self.rates = Rates()
        self._refusals, self._left_out = metrics.observations.labels("refused", name), metrics.push_left_out

    @property
    def used(self) -> bool:
        """Whether anybody ever sent anything."""
        return self.health.last_success is not None or self.health.last_error is not None

    def failed(self, why: str) -> None:
        """A request was refused as a whole."""
        self._skipped(why)

    def succeeded(self, intake: Intake, refused_by_engine: int, why: str | None) -> None:
        """A request was taken, and these of its points were refused."""
        self.health.received += len(intake.observations)
        self._succeeded()
        self._refusals.inc(intake.refused)
        for reason, points in intake.ignored.items():
            self._left_out.labels(self.name, reason).inc(points)
        refused = intake.refused + refused_by_engine
        if refused:
            self._skipped(intake.why or why or "refused", refused)


class Receivers:
    """All formats."""

    def __init__(self, settings: PushSettings, metrics: Metrics) -> None:
        self.remote_write = Receiver("remote_write", metrics)
        self.otlp = Receiver("otlp", metrics)
        self.influx = Receiver("influx", metrics)
        self.remote_write_names = Naming(settings.remote_write, RemoteWriteRule())
        self.otlp_names = Naming(settings.otlp, OtlpRule())
        self.influx_names = Naming(settings.influx, InfluxRule())
        #: One body at a time is unpacked and read: it may take many times the memory of what was sent.
        self.reading = asyncio.Lock()

    @property
    def used(self) -> list[Receiver]:
        """Those that anybody ever sent anything to."""
        return [one for one in (self.remote_write, self.otlp, self.influx) if one.used]

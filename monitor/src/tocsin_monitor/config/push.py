"""The settings of what others push over HTTP in their own formats: which series are signals, and their names."""

from pydantic import Field, field_validator

from tocsin_monitor.config.section import Section, placeholders


class PushRule(Section):
    """Which series are signals, and their names."""

    match: str = Field(default="*", min_length=1, description="Which series, by name: a pattern with * and ?.")
    signal: str | None = Field(
        default=None,
        description="The signal's name, such as 'load/{instance}'; by default the name with all labels.",
        examples=["load/{instance}"],
    )

    @field_validator("signal", mode="after")
    @classmethod
    def _from_labels(cls, signal: str | None) -> str | None:
        if signal is not None:
            placeholders(signal)
        return signal


class RemoteWriteRule(PushRule):
    """Series of Prometheus remote write."""

    rate: bool = Field(default=False, description="Whether these are counters: the increase per second is observed.")


class OtlpRule(PushRule):
    """Metrics of OpenTelemetry."""


class InfluxRule(PushRule):
    """Measurements in InfluxDB's line protocol."""

    match: str = Field(default="*", min_length=1, description="Which measurements: a pattern with * and ?.")
    signal: str | None = Field(
        default=None,
        description="The signal's name: {measurement}, {field} and tags; by default all of them.",
        examples=["{host}/{measurement}"],
    )
    fields: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Fields that are the features of one signal; by default each field is a signal.",
        examples=[["usage_user", "usage_system"]],
    )
    rate: bool = Field(default=False, description="Whether these are counters: the increase per second is observed.")


class PushSettings(Section):
    """What others push over HTTP in their own formats."""

    remote_write: tuple[RemoteWriteRule, ...] = Field(
        default=(), description="Prometheus remote write; the first match applies. Without rules, all series."
    )
    otlp: tuple[OtlpRule, ...] = Field(
        default=(), description="OpenTelemetry; the first match applies. Without rules, all metrics."
    )
    influx: tuple[InfluxRule, ...] = Field(
        default=(), description="InfluxDB's line protocol; the first match applies. Without rules, all fields."
    )

"""The settings of sinks: where incidents go."""

from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, field_validator

from tocsin.service.config.parts import Name, Part, Seconds, Secret, SecretUrl, Topic, Url, check_placeholders
from tocsin.service.config.sources import MqttBroker


def _called(example: str) -> Any:
    # Names must differ, in examples too.
    return Field(description="What it is called in metrics and logs.", examples=[example])


class Sink(Part):
    """Where incidents are told."""

    name: Name = _called("sink")
    match: str = Field(default="*", description="Which signals' incidents, a pattern with * and ?.")
    min_severity: float = Field(default=0.0, ge=0, description="Only incidents of at least this severity.")
    timeout: Seconds = Field(default=10.0, description="How long to wait for an answer.")

    def wants(self, signal: str, severity: float) -> bool:
        """Whether it is told of an incident."""
        return fnmatchcase(signal, self.match) and severity >= self.min_severity


class AlertmanagerSink(Sink):
    """Prometheus' Alertmanager."""

    name: Name = _called("alertmanager")
    url: Url = Field(default="http://127.0.0.1:9093", description="The Alertmanager.", repr=False)
    bearer_token: Secret | None = Field(default=None, description="A token to send.", examples=["change-me"])
    labels: dict[str, str] = Field(
        default_factory=dict, description="More labels on every alert.", examples=[{"team": "plant"}]
    )
    refresh: Seconds = Field(default=60.0, description="How often an alert that goes on is repeated.")


class WebhookSink(Sink):
    """Any address that takes Alertmanager's webhook payload (version 4)."""

    name: Name = _called("webhook")
    url: SecretUrl = Field(description="The address.", repr=False, examples=["https://hooks.example.com/tocsin"])
    bearer_token: Secret | None = Field(default=None, description="A token to send.", examples=["change-me"])
    headers: dict[str, Secret] = Field(
        default_factory=dict, description="More headers.", examples=[{"X-Key": "change-me"}]
    )


class MqttSink(Sink, MqttBroker):
    """An MQTT broker."""

    name: Name = _called("broker")
    topic: Topic = Field(
        default="tocsin/incidents/{signal}", description="Where incidents are published, retained while open."
    )

    @field_validator("topic", mode="after")
    @classmethod
    def _of_signal(cls, topic: str) -> str:
        return check_placeholders(topic, "there is {signal}", "signal")


class Sinks(Part):
    """Where incidents go."""

    alertmanager: tuple[AlertmanagerSink, ...] = Field(default=(), description="Prometheus' Alertmanager.")
    webhook: tuple[WebhookSink, ...] = Field(
        default=(), description="Any address that takes Alertmanager's webhook payload (version 4)."
    )
    mqtt: tuple[MqttSink, ...] = Field(default=(), description="An MQTT broker.")

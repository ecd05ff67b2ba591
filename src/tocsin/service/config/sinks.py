"""The settings of sinks: where incidents go."""

from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from tocsin.service.config.kinds import KindGroup, SinkSettings, group_of
from tocsin.service.config.section import Name, Seconds, Secret, SecretUrl, Topic, Url, check_placeholders
from tocsin.service.config.sources import MqttBroker


def _called(example: str) -> Any:
    # Names must differ, in examples too.
    return Field(description="Its name in metrics and logs.", examples=[example])


class AlertmanagerSettings(SinkSettings):
    """Prometheus' Alertmanager."""

    implementation = "tocsin.service.sinks.alertmanager:AlertmanagerSink"
    name: Name = _called("alertmanager")
    url: Url = Field(default="http://127.0.0.1:9093", description="The Alertmanager's address.", repr=False)
    bearer_token: Secret | None = Field(default=None, description="The bearer token to send.", examples=["change-me"])
    labels: dict[str, str] = Field(
        default_factory=dict, description="Additional labels for every alert.", examples=[{"team": "plant"}]
    )
    refresh: Seconds = Field(default=60.0, description="How often to repeat an open alert.")


class WebhookSettings(SinkSettings):
    """Any address that accepts Alertmanager's webhook payload (version 4)."""

    implementation = "tocsin.service.sinks.webhook:WebhookSink"
    name: Name = _called("webhook")
    url: SecretUrl = Field(description="The address.", repr=False, examples=["https://hooks.example.com/tocsin"])
    bearer_token: Secret | None = Field(default=None, description="The bearer token to send.", examples=["change-me"])
    headers: dict[str, Secret] = Field(
        default_factory=dict, description="Additional headers.", examples=[{"X-Key": "change-me"}]
    )


class MqttSinkSettings(SinkSettings, MqttBroker):
    """An MQTT broker."""

    implementation = "tocsin.service.sinks.mqtt:MqttSink"
    name: Name = _called("broker")
    topic: Topic = Field(
        default="tocsin/incidents/{signal}", description="Where incidents are published, retained while open."
    )

    @field_validator("topic", mode="after")
    @classmethod
    def _of_signal(cls, topic: str) -> str:
        return check_placeholders(topic, "use {signal}", "signal")


BUILT_IN = {"alertmanager": AlertmanagerSettings, "webhook": WebhookSettings, "mqtt": MqttSinkSettings}

if TYPE_CHECKING:
    Sinks = KindGroup[SinkSettings]
else:
    Sinks = group_of("Sinks", "Where incidents go.", "tocsin.sinks", SinkSettings, BUILT_IN)

"""Where incidents go."""

from tocsin.service.config import Settings
from tocsin.service.errors import settings_at
from tocsin.service.metrics import Metrics
from tocsin.service.sinks.alertmanager import AlertmanagerSink
from tocsin.service.sinks.base import DeliveryError, Sink, SinkHealth
from tocsin.service.sinks.mqtt import MqttSink
from tocsin.service.sinks.outbox import Outbox, Write
from tocsin.service.sinks.repeats import Readable
from tocsin.service.sinks.webhook import WebhookSink

__all__ = ["DeliveryError", "Outbox", "Sink", "SinkHealth", "make_sinks"]


def make_sinks(settings: Settings, store: Readable, write: Write, metrics: Metrics) -> list[Outbox]:
    """An outbox for each sink that is set up; ValueError for settings that make no sense."""
    sinks: list[Sink] = [
        *(AlertmanagerSink(one, settings) for one in settings.sinks.alertmanager),
        *(WebhookSink(one, settings) for one in settings.sinks.webhook),
    ]
    for number, mqtt in enumerate(settings.sinks.mqtt):
        with settings_at(f"sinks.mqtt[{number}]"):
            sinks.append(MqttSink(mqtt, settings))
    return [Outbox(sink, store, write, metrics) for sink in sinks]

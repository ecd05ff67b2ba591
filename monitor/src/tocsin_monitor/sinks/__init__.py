"""Where incidents go."""

from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import PictureSettings
from tocsin_monitor.errors import settings_at
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks.base import DeliveryError, Sink
from tocsin_monitor.sinks.outbox import Outbox, Write
from tocsin_monitor.sinks.pictures import Pictures
from tocsin_monitor.store import Store

__all__ = ["DeliveryError", "Outbox", "Sink", "make_sinks"]


def make_sinks(settings: Settings, store: Store, write: Write, metrics: Metrics) -> list[Outbox]:
    """An outbox for each configured sink; ValueError if its settings make no sense."""
    outboxes = []
    for place, one in settings.sinks.each():
        with settings_at(f"sinks.{place}"):
            sink, events = one.load()(one, settings), settings.events
            times = {"update_every": events.update_every, "max_age": events.max_age}
            outboxes.append(Outbox(sink, store, write, metrics, one, **times))
    pictured = [
        outbox.sink for outbox in outboxes if isinstance(outbox.rules, PictureSettings) and outbox.rules.picture
    ]
    if pictured:
        pictures = Pictures(store)
        for sink in pictured:
            sink.pictures = pictures
    return outboxes

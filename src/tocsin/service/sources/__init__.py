"""Where observations come from, apart from HTTP."""

from tocsin.service.config import Settings
from tocsin.service.metrics import Metrics
from tocsin.service.sources.base import MOST_TOGETHER, ReadCursor, Source, SourceHealth, Submit
from tocsin.service.sources.files import FileSource
from tocsin.service.sources.mqtt import MqttSource
from tocsin.service.sources.prometheus import PrometheusSource

__all__ = ["Source", "SourceHealth", "Submit", "make_sources"]


def make_sources(settings: Settings, submit: Submit, cursor: ReadCursor, metrics: Metrics) -> list[Source]:
    """The sources that are set up; ValueError for settings that make no sense."""
    # A batch larger than the queue would never be taken.
    most = min(MOST_TOGETHER, settings.engine.max_waiting)
    own = _own_topics(settings)
    return [
        *(MqttSource(one, submit, metrics, most=most, own=own) for one in settings.sources.mqtt),
        *(PrometheusSource(one, submit, cursor, metrics, most=most) for one in settings.sources.prometheus),
        *(FileSource(one, submit, cursor, metrics, most=most) for one in settings.sources.files),
    ]


def _own_topics(settings: Settings) -> set[str]:
    """The topics at and below which this monitor publishes."""
    topics = {one.status_topic for one in settings.sources.mqtt}
    topics |= {one.results_topic for one in settings.sources.mqtt if one.results_topic}
    topics |= {one.topic.split("{")[0].rpartition("/")[0] for one in settings.sinks.mqtt}
    return topics - {""}

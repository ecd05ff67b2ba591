"""Where observations come from, apart from HTTP."""

from tocsin.service.config import Settings
from tocsin.service.errors import settings_at
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
    sources: list[Source] = []
    for number, mqtt in enumerate(settings.sources.mqtt):
        with settings_at(f"sources.mqtt[{number}]"):
            sources.append(MqttSource(mqtt, submit, metrics, most=most, own=own))
    for number, prometheus in enumerate(settings.sources.prometheus):
        with settings_at(f"sources.prometheus[{number}]"):
            sources.append(PrometheusSource(prometheus, submit, cursor, metrics, most=most))
    for number, files in enumerate(settings.sources.files):
        with settings_at(f"sources.files[{number}]"):
            sources.append(FileSource(files, submit, cursor, metrics, most=most))
    return sources


def _own_topics(settings: Settings) -> set[str]:
    """The topics at and below which this monitor publishes."""
    topics = {one.status_topic for one in settings.sources.mqtt}
    topics |= {one.results_topic for one in settings.sources.mqtt if one.results_topic}
    topics |= {one.topic.split("{")[0].rpartition("/")[0] for one in settings.sinks.mqtt}
    return topics - {""}

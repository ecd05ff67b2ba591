"""Where observations come from, apart from HTTP."""

from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MqttSinkSettings
from tocsin_monitor.config.sources import MqttSourceSettings
from tocsin_monitor.errors import settings_at
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sources.base import MOST_TOGETHER, ReadCursor, Source, SourceContext, Submit

__all__ = ["Source", "SourceContext", "Submit", "make_sources"]


def make_sources(settings: Settings, submit: Submit, cursor: ReadCursor, metrics: Metrics) -> list[Source]:
    """The configured sources; ValueError if the settings of one are invalid."""
    # A batch larger than the queue would never be accepted.
    most = min(MOST_TOGETHER, settings.engine.max_waiting)
    context = SourceContext(submit, cursor, metrics, most=most, own_topics=frozenset(_own_topics(settings)))
    sources = []
    for place, one in settings.sources.each():
        with settings_at(f"sources.{place}"):
            sources.append(one.load()(one, context))
    return sources


def _own_topics(settings: Settings) -> set[str]:
    """The topics to which, and below which, this monitor publishes."""
    topics = {""}
    for _, source in settings.sources.each():
        if isinstance(source, MqttSourceSettings):
            topics |= {source.status_topic, source.results_topic or ""}
    for _, sink in settings.sinks.each():
        if isinstance(sink, MqttSinkSettings):
            topics.add(sink.topic.split("{")[0].rpartition("/")[0])
    return topics - {""}

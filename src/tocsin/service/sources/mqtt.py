"""Observations from an MQTT broker."""

from paho.mqtt.subscribeoptions import SubscribeOptions
from pydantic_core import to_json

from tocsin.service.as_json import verdict_json
from tocsin.service.config import MqttSourceSettings
from tocsin.service.mqtt import Message, Presence
from tocsin.service.observations import Observation, Outcome, check_name
from tocsin.service.sources.base import SourceContext
from tocsin.service.sources.broker import BrokerSource
from tocsin.service.sources.naming import NameTemplate, topic_signal
from tocsin.service.sources.payloads import Payload


class MqttSource(BrokerSource):
    """Takes messages with one number or several, and publishes their verdicts.

    Where messages have a time of their own, what was stored already is known by it when it comes again; where they have
    none, the time of arrival counts, and one that comes twice is stored twice.
    """

    kind = "mqtt"

    def __init__(self, settings: MqttSourceSettings, context: SourceContext) -> None:
        self._template = NameTemplate(settings.signal)
        self._payload = Payload(settings.value, settings.time, each="value" in self._template.fields)
        self._results = settings.results_topic
        self._own = {*context.own_topics, settings.status_topic, *([self._results] if self._results else [])}
        for topic in settings.topics:
            check_pattern(topic)
            if self._is_own(topic):
                raise ValueError(f"topics must not include those that the monitor itself publishes, got {topic!r}")
        # A retained message comes from the past: without a time of its own, its time is unknown.
        retained = (
            SubscribeOptions.RETAIN_DO_NOT_SEND if settings.time is None else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        )
        subscriptions = [
            # MQTT forbids "no local" for subscriptions that are shared.
            (topic, SubscribeOptions(1, noLocal=not topic.startswith("$share/"), retainHandling=retained))
            for topic in settings.topics
        ]
        super().__init__(settings.name, settings, context, subscriptions, Presence(settings.status_topic))

    def _is_own(self, topic: str) -> bool:
        """Whether the monitor itself publishes there: that is never an observation."""
        return any(topic == root or topic.startswith(f"{root}/") for root in self._own)

    def _read(self, message: Message) -> list[Observation]:
        if self._is_own(message.topic):
            return []
        try:
            return [
                Observation(
                    check_name(topic_signal(self._template, message.topic, one.path)),
                    message.arrival if one.time is None else one.time,
                    one.values,
                    self._payload.features,
                )
                for one in self._payload.read(message.payload)
            ]
        except ValueError as error:
            self._skipped(f"{message.topic!r}: {error}")
            return []

    def _stored(self, message: Message, outcome: Outcome) -> None:
        if self._results:
            verdict = to_json(verdict_json(outcome), inf_nan_mode="null")
            self._connection.send(f"{self._results}/{message.topic}", verdict)


def check_pattern(topic: str) -> None:
    """Refuse what is no topic pattern."""
    levels = topic.split("/")
    wrong = not topic or "\0" in topic or "#" in "".join(levels[:-1])
    if wrong or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError(f"a topic pattern has + and # only as whole levels, and # only as the last one, got {topic!r}")

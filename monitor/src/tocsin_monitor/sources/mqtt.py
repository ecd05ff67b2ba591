"""Observations from an MQTT broker, and what all sources at a broker share."""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

from paho.mqtt.subscribeoptions import SubscribeOptions
from pydantic_core import to_json

from tocsin_monitor.as_json import verdict_json
from tocsin_monitor.config import MqttBroker
from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.config.sources import MqttSourceSettings
from tocsin_monitor.errors import Backoff
from tocsin_monitor.mqtt import BrokerConnection, Message, MqttSession
from tocsin_monitor.observations import Observation, Outcome, check_name
from tocsin_monitor.sources.base import Source, SourceContext
from tocsin_monitor.sources.payloads import LARGEST, Payload, topic_signal

# How long the broker keeps the session while the monitor is offline.
SESSION_SECONDS = 7 * 86400
# The most messages of QoS 0 in the queue. The broker does not wait for them to be taken, so further ones are dropped.
MOST_WAITING = 20_000
# The most messages of QoS 1 that the broker sends without an acknowledgement; at the largest size, they take 64 MiB.
MOST_UNACKNOWLEDGED = 250
# Bytes of a message besides its payload: the topic has at most 64 KiB.
_HEADERS = 70_000


class BrokerSource(Source):
    """Subscribes to topics with QoS 1, and acknowledges a message once its observations are durable.

    The broker sends a message again if it was not acknowledged before a crash or a lost connection. While the monitor
    is too busy to accept observations, nothing is acknowledged, so the broker stops sending and keeps the rest.
    """

    def __init__(
        self,
        name: str,
        broker: MqttBroker,
        context: SourceContext,
        subscriptions: Sequence[tuple[str, SubscribeOptions]],
        presence: str | None = None,
    ) -> None:
        super().__init__(name, context)
        self._most = context.most
        self._queue: deque[Message] = deque()
        #: The messages at the front of the queue that are being stored, with their observations.
        self._taken: list[tuple[Message, list[Observation]]] = []
        self._arrived = asyncio.Event()
        self._connection = BrokerConnection(
            broker,
            broker.client_id or f"tocsin-{name}",
            subscriptions=subscriptions,
            session=MqttSession(SESSION_SECONDS, min(self._most, MOST_UNACKNOWLEDGED), LARGEST + _HEADERS),
            presence=presence,
            on_message=self._take,
            on_connect=self._connected,
            on_trouble=self._failed,
            on_dropped=self._dropped,
        )

    @abstractmethod
    def _read(self, message: Message) -> list[Observation]:
        """The observations in a message. Called once per message, in the order of arrival."""

    def _stored(self, message: Message, outcome: Outcome) -> None:
        """Called when an observation of a message is durable."""

    async def run(self) -> None:
        async with self._connection:
            await super().run()

    def _connected(self, session_kept: bool) -> None:
        self._succeeded()
        if session_kept:  # then the broker sends everything that was not acknowledged again
            keep = len(self._taken)
            again = [message for i, message in enumerate(self._queue) if i >= keep and message.qos > 0]
            self._queue = deque(message for i, message in enumerate(self._queue) if i < keep or message.qos == 0)
            for message in again:
                self._connection.let_go(message)

    def _dropped(self, count: int) -> None:
        self._skipped(f"{count} messages of QoS 0, as {len(self._queue)} wait already", count)

    def _take(self, message: Message) -> None:
        if message.qos == 0 and len(self._queue) >= MOST_WAITING:
            self._connection.let_go(message)
            self._dropped(1)
            return
        self._queue.append(message)
        self._arrived.set()

    async def _work(self, backoff: Backoff) -> None:
        while True:
            await self._arrived.wait()
            if not self._taken:  # otherwise they were read before, but could not be stored
                messages = [self._queue[i] for i in range(min(len(self._queue), self._most))]
                self._taken = [(message, self._read(message)) for message in messages]
            pairs = [(message, one) for message, some in self._taken for one in some]
            outcomes: list[Outcome] = []
            for begin in range(0, len(pairs), self._most):
                outcomes += await self._hand_over([one for _, one in pairs[begin : begin + self._most]])
            backoff.succeeded()
            for message, _ in self._taken:
                self._queue.popleft()
                self._connection.acknowledge(message)
            self._taken = []
            if not self._queue:
                self._arrived.clear()
            for (message, _), outcome in zip(pairs, outcomes, strict=True):
                self._stored(message, outcome)


class MqttSource(BrokerSource):
    """Reads messages with one or several numbers, and publishes their verdicts.

    If messages contain a time, duplicates are recognised by it. Otherwise the time of arrival is used, and a message
    that arrives twice is stored twice.
    """

    def __init__(self, settings: MqttSourceSettings, context: SourceContext) -> None:
        self._template = NameTemplate(settings.signal)
        self._payload = Payload(settings.value, settings.time, each="value" in self._template.fields)
        self._results = settings.results_topic
        self._own = {*context.own_topics, settings.status_topic, *([self._results] if self._results else [])}
        for topic in settings.topics:
            check_pattern(topic)
            if self._is_own(topic):
                raise ValueError(f"topics must not include those that the monitor itself publishes, got {topic!r}")
        # A retained message may be old: if it does not contain a time, its time is unknown.
        retained = (
            SubscribeOptions.RETAIN_DO_NOT_SEND if settings.time is None else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        )
        subscriptions = [
            # MQTT forbids "no local" for shared subscriptions.
            (topic, SubscribeOptions(1, noLocal=not topic.startswith("$share/"), retainHandling=retained))
            for topic in settings.topics
        ]
        super().__init__(settings.name, settings, context, subscriptions, settings.status_topic)

    def _is_own(self, topic: str) -> bool:
        """Whether the monitor itself publishes to a topic: such messages are never observations."""
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
    """ValueError if this is not a topic pattern."""
    levels = topic.split("/")
    wrong = not topic or "\0" in topic or "#" in "".join(levels[:-1])
    if wrong or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError(f"a topic pattern has + and # only as whole levels, and # only as the last one, got {topic!r}")

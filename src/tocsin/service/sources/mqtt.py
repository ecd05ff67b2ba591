"""Observations from an MQTT broker."""

import asyncio
from collections import deque

from paho.mqtt.subscribeoptions import SubscribeOptions
from pydantic_core import to_json

from tocsin.service.as_json import verdict_json
from tocsin.service.backoff import Backoff
from tocsin.service.config import MqttSourceSettings
from tocsin.service.mqtt import BrokerConnection, Message, MqttSession, Presence
from tocsin.service.observations import Observation, check_name
from tocsin.service.sources.base import Source, SourceContext
from tocsin.service.sources.naming import NameTemplate, topic_signal
from tocsin.service.sources.payloads import LARGEST, Payload

# How long the broker keeps our session while we are away.
SESSION_SECONDS = 7 * 86400
# Messages of QoS 0 that wait for us: the broker cannot be held back, so more are thrown away.
MOST_WAITING = 20_000
# Messages of QoS 1 that the broker sends before it waits for us: so many of the largest are 64 MiB.
MOST_UNACKNOWLEDGED = 250
# What a message has beside its payload: a topic of at most 64 KiB.
_HEADERS = 70_000


class MqttSource(Source):
    """Subscribes to topics with QoS 1, and acknowledges a message once its observation is durable.

    A message that was not acknowledged comes again after a crash or a lost connection. Where messages have a time of
    their own, what was stored already is then known by it; where they have none, the time of arrival counts, and one
    that comes twice is stored twice. While the monitor takes nothing, nothing is acknowledged, so that the broker
    stops sending and keeps the rest.
    """

    kind = "mqtt"

    def __init__(self, settings: MqttSourceSettings, context: SourceContext) -> None:
        super().__init__(settings.name, context)
        self._most = context.most
        self._template = NameTemplate(settings.signal)
        self._payload = Payload(settings.value, settings.time)
        self._results = settings.results_topic
        self._own = {*context.own_topics, settings.status_topic, *([self._results] if self._results else [])}
        for topic in settings.topics:
            check_pattern(topic)
            if self._is_own(topic):
                raise ValueError(f"topics must not include those that the monitor itself publishes, got {topic!r}")
        self._queue: deque[Message] = deque()
        self._working_on = 0
        self._arrived = asyncio.Event()
        # A retained message comes from the past: without a time of its own, its time is unknown.
        retained = (
            SubscribeOptions.RETAIN_DO_NOT_SEND if settings.time is None else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        )
        self._connection = BrokerConnection(
            settings,
            settings.client_id or f"tocsin-{settings.name}",
            subscriptions=[
                # MQTT forbids "no local" for subscriptions that are shared.
                (topic, SubscribeOptions(1, noLocal=not topic.startswith("$share/"), retainHandling=retained))
                for topic in settings.topics
            ],
            session=MqttSession(SESSION_SECONDS, min(self._most, MOST_UNACKNOWLEDGED), LARGEST + _HEADERS),
            presence=Presence(settings.status_topic),
            on_message=self._take,
            on_connect=self._connected,
            on_trouble=self._failed,
            on_dropped=self._dropped,
        )

    async def run(self) -> None:
        async with self._connection:
            await super().run()

    def _connected(self, session_kept: bool) -> None:
        self._succeeded()
        if session_kept:  # then the broker sends again what we have not acknowledged
            keep = self._working_on
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
            self._working_on = min(len(self._queue), self._most)
            messages = [self._queue[i] for i in range(self._working_on)]
            pairs = [(message, observation) for message in messages if (observation := self._read(message))]
            outcomes = await self._hand_over([observation for _, observation in pairs]) if pairs else []
            backoff.succeeded()
            for message in messages:
                self._queue.popleft()
                self._connection.acknowledge(message)
            self._working_on = 0
            if not self._queue:
                self._arrived.clear()
            if self._results:
                for (message, _), outcome in zip(pairs, outcomes, strict=True):
                    verdict = to_json(verdict_json(outcome), inf_nan_mode="null")
                    self._connection.send(f"{self._results}/{message.topic}", verdict)

    def _is_own(self, topic: str) -> bool:
        """Whether the monitor itself publishes there: that is never an observation."""
        return any(topic == root or topic.startswith(f"{root}/") for root in self._own)

    def _read(self, message: Message) -> Observation | None:
        if self._is_own(message.topic):
            return None
        try:
            signal = check_name(topic_signal(self._template, message.topic))
            values, time = self._payload.read(message.payload)
        except ValueError as error:
            self._skipped(f"{message.topic!r}: {error}")
            return None
        return Observation(signal, message.arrival if time is None else time, values, self._payload.features)


def check_pattern(topic: str) -> None:
    """Refuse what is no topic pattern."""
    levels = topic.split("/")
    wrong = not topic or "\0" in topic or "#" in "".join(levels[:-1])
    if wrong or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError(f"a topic pattern has + and # only as whole levels, and # only as the last one, got {topic!r}")

"""What sources at an MQTT broker share: messages are acknowledged once their observations are durable."""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

from paho.mqtt.subscribeoptions import SubscribeOptions

from tocsin.service.config import MqttBroker
from tocsin.service.errors import Backoff
from tocsin.service.mqtt import BrokerConnection, Message, MqttSession, Presence
from tocsin.service.observations import Observation, Outcome
from tocsin.service.sources.base import Source, SourceContext
from tocsin.service.sources.payloads import LARGEST

# How long the broker keeps our session while we are away.
SESSION_SECONDS = 7 * 86400
# Messages of QoS 0 that wait for us: the broker cannot be held back, so more are thrown away.
MOST_WAITING = 20_000
# Messages of QoS 1 that the broker sends before it waits for us: so many of the largest are 64 MiB.
MOST_UNACKNOWLEDGED = 250
# What a message has beside its payload: a topic of at most 64 KiB.
_HEADERS = 70_000


class BrokerSource(Source):
    """Subscribes to topics with QoS 1, and acknowledges a message once its observations are durable.

    A message that was not acknowledged comes again after a crash or a lost connection. While the monitor takes nothing,
    nothing is acknowledged, so that the broker stops sending and keeps the rest.
    """

    def __init__(
        self,
        name: str,
        broker: MqttBroker,
        context: SourceContext,
        subscriptions: Sequence[tuple[str, SubscribeOptions]],
        presence: Presence | None = None,
    ) -> None:
        super().__init__(name, context)
        self._most = context.most
        self._queue: deque[Message] = deque()
        #: The messages at the front of the queue that are being handed over, with what was read in them.
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
        """The observations in a message. It is asked once for each, in the order in which they came."""

    def _stored(self, message: Message, outcome: Outcome) -> None:
        """An observation of a message is durable."""

    async def run(self) -> None:
        async with self._connection:
            await super().run()

    def _connected(self, session_kept: bool) -> None:
        self._succeeded()
        if session_kept:  # then the broker sends again what we have not acknowledged
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
            if not self._taken:  # else they were read before, and could not be stored
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

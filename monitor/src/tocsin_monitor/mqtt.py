"""A connection to an MQTT broker, for the source and the sink."""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from tocsin_monitor.config import MqttBroker
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.observations import Stamps

LONGEST_WAIT = 60  # seconds between two tries to connect
KEEPALIVE = 30  # seconds
# Messages that promise nothing (QoS 0) and could not be sent yet: more are thrown away.
MOST_UNSENT = 10_000
# Bytes of messages that wait to be worked on: of those that promise nothing (QoS 0), more are thrown away.
MOST_HELD = 32 * 2**20
_OVERHEAD = 300
_TAKEN_OVER = 142

_log = logging.getLogger(__name__)


class BrokerError(MonitorError):
    """The broker cannot be reached, or did not confirm a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message, when it came (ns), and over which of the connections in turn: only there it can be acknowledged."""

    topic: str
    payload: bytes
    qos: int
    number: int
    connection: int
    arrival: int

    @property
    def size(self) -> int:
        return len(self.payload) + len(self.topic) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class MqttSession:
    """What the broker keeps for us: for how long (s), how many messages it sends before we acknowledge, and how large
    each may be."""

    expiry: int
    receive_maximum: int
    largest: int


def _nothing(*_: Any) -> None:
    """Where nobody listens."""


class BrokerConnection:
    """Keeps up a connection (MQTT 5), from `async with` on; lost, it is tried again, ever more rarely.

    paho runs in a thread of its own; the callbacks given here run on the event loop: `on_message`, `on_connect` with
    whether the broker kept our session, `on_trouble` with what is wrong, and `on_dropped` with how many messages were
    thrown away. Every message must be let go in the end: until then its bytes count. `presence` is a retained topic
    that says 'online', and 'offline' when we are gone, however we went.
    """

    def __init__(
        self,
        broker: MqttBroker,
        client_id: str,
        *,
        subscriptions: Iterable[tuple[str, SubscribeOptions]] = (),
        session: MqttSession | None = None,
        presence: str | None = None,
        on_message: Callable[[Message], None] = _nothing,
        on_connect: Callable[[bool], None] = _nothing,
        on_trouble: Callable[[str], None] = _nothing,
        on_dropped: Callable[[int], None] = _nothing,
    ) -> None:
        self._broker, self._on_dropped = broker, on_dropped
        self._lock = threading.Lock()
        self._held = self._dropped = 0
        self._subscriptions, self._session, self._presence = list(subscriptions), session, presence
        self._on_message, self._on_connect, self._on_trouble = on_message, on_connect, on_trouble
        self._number = 0  # of the connection
        self._stamps = Stamps()
        self._accepted = False  # by the broker; this one is of paho's thread, the next of the event loop
        self._up = asyncio.Event()
        self._closing = False
        self._unsent = 0
        self._unconfirmed: dict[int, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop
        self._client = self._made(client_id)

    def _made(self, client_id: str) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTv5, manual_ack=True)
        broker = self._broker
        if broker.username is not None:
            client.username_pw_set(broker.username, broker.password.get_secret_value() if broker.password else None)
        if broker.tls or broker.ca_file is not None:
            try:
                client.tls_set(ca_certs=None if broker.ca_file is None else str(broker.ca_file))
            except OSError as error:
                raise ValueError(f"ca_file {broker.ca_file} cannot be used: {error}") from error
        if self._presence is not None:
            client.will_set(self._presence, "offline", qos=1, retain=True)
        client.reconnect_delay_set(1, LONGEST_WAIT)
        client.on_connect = self._connected
        client.on_connect_fail = self._unreachable
        client.on_disconnect = self._disconnected
        client.on_subscribe = self._subscribed
        client.on_message = self._received
        client.on_publish = self._published
        return client

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if self._session is not None:
            properties.SessionExpiryInterval = self._session.expiry
            properties.ReceiveMaximum = self._session.receive_maximum
            properties.MaximumPacketSize = self._session.largest
        self._client.connect_async(
            self._broker.host,
            self._broker.port,
            KEEPALIVE,
            clean_start=self._session is None,
            properties=properties,
        )
        self._client.loop_start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        if self._presence is not None and self.connected:
            try:
                await self.publish(self._presence, b"offline", retain=True, timeout=2)
            except BrokerError:
                _log.debug("the broker did not take our farewell: the last will says the same")
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    async def publish(self, topic: str, payload: bytes, *, retain: bool, timeout: float) -> None:
        """Publish with QoS 1, and wait until the broker has it; BrokerError if it does not say so in time."""
        number = -1
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
                number = self._client.publish(topic, payload, qos=1, retain=retain).mid
                # The thread's word of it comes through the event loop, hence not before the next line.
                confirmed = self._unconfirmed[number] = self._loop.create_future()
                await confirmed
        except TimeoutError:
            what = "cannot be reached" if number < 0 else "did not confirm a message"
            raise BrokerError(f"{self._place} {what} within {timeout:g} s") from None
        finally:
            self._unconfirmed.pop(number, None)

    def send(self, topic: str, payload: bytes) -> bool:
        """Publish with QoS 0; false if it was thrown away, as there is no connection or it is too slow."""
        if not self.connected or self._unsent >= MOST_UNSENT:
            return False
        self._unsent += 1
        self._client.publish(topic, payload, qos=0)
        return True

    def acknowledge(self, message: Message) -> None:
        """Tell the broker that a message is ours now. After a new connection it sends the message again itself."""
        self.let_go(message)
        if message.qos > 0 and message.connection == self._number:
            self._client.ack(message.number, message.qos)

    def let_go(self, message: Message) -> None:
        with self._lock:
            self._held -= message.size

    @property
    def _place(self) -> str:
        return f"{self._broker.host}:{self._broker.port}"

    # From here on in paho's thread.

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    def _connected(self, client: Client, data: Any, flags: ConnectFlags, reason: ReasonCode, *_: Any) -> None:
        if reason.is_failure:
            self._tell(self._on_trouble, f"{self._place} turned us away: {reason}")
            return
        self._number += 1
        self._unsent = 0
        self._accepted = True
        if self._subscriptions:
            client.subscribe(self._subscriptions)
        if self._presence is not None:
            client.publish(self._presence, "online", qos=1, retain=True)
        self._tell(self._up.set)
        self._tell(self._on_connect, flags.session_present)

    def _unreachable(self, client: Client, data: Any) -> None:
        error = sys.exc_info()[1]  # paho calls this while it handles the error, but does not pass it on
        self._tell(self._on_trouble, f"{self._place} cannot be reached: {error}")

    def _disconnected(self, client: Client, data: Any, flags: DisconnectFlags, reason: ReasonCode, *_: Any) -> None:
        was, self._accepted = self._accepted, False
        self._tell(self._up.clear)
        if self._closing or not was:
            return
        hint = "; is there another with our client_id?" if reason.value == _TAKEN_OVER else ""
        self._tell(self._on_trouble, f"lost the connection to {self._place}: {reason}{hint}")

    def _subscribed(self, client: Client, data: Any, number: int, reasons: list[ReasonCode], *_: Any) -> None:
        for (topic, _options), reason in zip(self._subscriptions, reasons, strict=False):
            if reason.is_failure:
                self._tell(self._on_trouble, f"{self._place} does not let us subscribe to {topic!r}: {reason}")

    def _received(self, client: Client, data: Any, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""  # which no topic is
        payload = bytes(message.payload)
        received = Message(topic, payload, message.qos, message.mid, self._number, self._stamps.next())
        with self._lock:
            if received.qos == 0 and self._held + received.size > MOST_HELD:
                self._dropped += 1
                if self._dropped == 1:  # else the event loop is about to tell already
                    self._tell(self._tell_dropped)
                return
            self._held += received.size
        self._tell(self._on_message, received)

    def _published(self, client: Client, data: Any, number: int, reason: ReasonCode, *_: Any) -> None:
        self._tell(self._confirmed, number, reason)

    # On the event loop again.

    def _tell_dropped(self) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        self._on_dropped(dropped)

    def _confirmed(self, number: int, reason: ReasonCode) -> None:
        confirmed = self._unconfirmed.get(number)
        if confirmed is None:
            self._unsent = max(0, self._unsent - 1)
        elif not confirmed.done():
            if reason.is_failure:
                confirmed.set_exception(BrokerError(f"{self._place} refused a message: {reason}"))
            else:
                confirmed.set_result(None)

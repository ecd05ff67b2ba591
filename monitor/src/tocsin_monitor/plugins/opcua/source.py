"""Observations from an OPC UA server."""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncua import Client, Node, ua
from asyncua.crypto import security_policies

from tocsin_monitor.errors import Backoff, MonitorError, error_text
from tocsin_monitor.observations import MOST_FEATURES, Cursor, Observation, Stamps, check_name
from tocsin_monitor.plugins.opcua import OpcUaSourceSettings
from tocsin_monitor.sources.base import LONGEST_WAIT, Source, SourceContext
from tocsin_monitor.sources.payloads import fitting

# How often to check that the server still replies, in seconds.
LOOK_EVERY = 2.0
# For how many intervals the server keeps the subscription while the monitor is too busy to ask for more values.
LIFETIME = 10_000
KEEP_ALIVE = 10
# How many values of a node are requested at once from the server's history.
MOST_AT_ONCE = 5000
# After a start, only the newest time of all nodes is known. History is read from this many nanoseconds before it,
# in case the clocks of some devices are behind.
OVERLAP = 60 * 10**9

_NODE_ID = re.compile(r"(?:(ns|nsu)=[^;]+;)?[isgb]=")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OpcUaSource(Source):
    """Subscribes to variables. The server queues their values, which are acknowledged once they are durable.

    While the monitor is too busy, nothing is acknowledged, and the server keeps what fits into its queues. After a lost
    connection, the source connects again with a new subscription. With `history`, it reads the missed values from the
    server's history, from the newest stored value on; values that are already stored are recognised by their time.
    """

    def __init__(self, settings: OpcUaSourceSettings, context: SourceContext) -> None:
        super().__init__(settings.name, context)
        self._settings, self._cursor, self._most = settings, context.cursor, context.most
        self._signals = [check_name(fitting(one.signal or one.node)) for one in settings.nodes]
        twice = {signal for signal in self._signals if self._signals.count(signal) > 1}
        if twice:
            raise ValueError(f"nodes must be signals of different names, got {', '.join(sorted(twice))} more than once")
        self._stamps = Stamps()
        #: The newest stored time, of all signals and of each: the clocks of their devices may differ.
        self._newest: int | None = None
        self._newest_of: dict[str, int] = {}
        #: How many features each signal has.
        self._widths: dict[str, int] = {}

    async def _work(self, backoff: Backoff) -> None:
        if self._newest is None and (position := self._cursor(self.name)) is not None:
            self._newest = int(position)
        client = await self._client()
        async with client:
            nodes = [await self._node(client, one.node) for one in self._settings.nodes]
            feed = _Feed(self)
            missed = self._settings.history and self._newest is not None
            if missed:
                await self._catch_up(nodes)
            await self._subscribe(client, nodes, feed)
            if missed:
                await self._catch_up(nodes)  # values from between the two, before newer ones are stored
            feed.open()
            self._succeeded()
            backoff.succeeded()
            while True:
                await asyncio.sleep(LOOK_EVERY)
                feed.check()
                await client.nodes.server_state.read_value()

    async def _client(self) -> Client:
        settings = self._settings
        client = Client(settings.url, timeout=settings.timeout)
        client.application_uri = settings.application_uri
        client.name = client.description = "Tocsin"
        if settings.username is not None:
            client.set_user(settings.username)
            client.set_password(settings.password.get_secret_value() if settings.password else "")
        if settings.policy != "none":
            mode = ua.MessageSecurityMode.SignAndEncrypt if settings.encrypt else ua.MessageSecurityMode.Sign
            await client.set_security(
                getattr(security_policies, f"SecurityPolicy{settings.policy}"),
                str(settings.certificate),
                str(settings.key),
                server_certificate=None if settings.server_certificate is None else str(settings.server_certificate),
                mode=mode,
            )
        return client

    async def _node(self, client: Client, text: str) -> Node:
        if not _NODE_ID.match(text):
            return await client.nodes.objects.get_child(text.split("/"))
        if text.startswith("nsu="):
            space, _, rest = text.removeprefix("nsu=").partition(";")
            text = f"ns={await client.get_namespace_index(space)};{rest}"
        return client.get_node(text)

    async def _subscribe(self, client: Client, nodes: Sequence[Node], feed: "_Feed") -> None:
        # Not with the library's own subscriptions, because they acknowledge values before they are processed.
        period = self._settings.interval * 1000
        parameters = ua.CreateSubscriptionParameters(
            RequestedPublishingInterval=period,
            RequestedLifetimeCount=LIFETIME,
            RequestedMaxKeepAliveCount=KEEP_ALIVE,
            MaxNotificationsPerPublish=self._most,
            PublishingEnabled=True,
        )
        feed.signals = dict(enumerate(self._signals))
        made = await client.uaclient.create_subscription(parameters, feed.publish)
        alive = made.RevisedPublishingInterval / 1000 * made.RevisedMaxKeepAliveCount
        feed.longest_silence = 3 * alive + self._settings.timeout
        # A new measurement counts even if the value is unchanged.
        changes = ua.DataChangeFilter(Trigger=ua.DataChangeTrigger.StatusValueTimestamp)
        items = [
            ua.MonitoredItemCreateRequest(
                ItemToMonitor=ua.ReadValueId(NodeId=node.nodeid, AttributeId=ua.AttributeIds.Value),
                MonitoringMode=ua.MonitoringMode.Reporting,
                RequestedParameters=ua.MonitoringParameters(
                    ClientHandle=handle,
                    SamplingInterval=period,
                    QueueSize=self._settings.queue,
                    DiscardOldest=True,
                    Filter=changes,
                ),
            )
            for handle, node in enumerate(nodes)
        ]
        wanted = ua.CreateMonitoredItemsParameters(
            SubscriptionId=made.SubscriptionId, TimestampsToReturn=ua.TimestampsToReturn.Both, ItemsToCreate=items
        )
        results = await client.uaclient.create_monitored_items(wanted)
        for one, result in zip(self._settings.nodes, results, strict=True):
            if not result.StatusCode.is_good():
                self._skipped(f"{one.node!r} cannot be subscribed to: {result.StatusCode.name}")

    async def _catch_up(self, nodes: Sequence[Node]) -> None:
        """Read the server's history since the newest stored value, node by node."""
        for signal, node in zip(self._signals, nodes, strict=True):
            since = self._newest_of.get(signal, max(0, (self._newest or 0) - OVERLAP))
            try:
                async for values in _history(node, _EPOCH + timedelta(microseconds=since // 1000)):
                    await self.take([(signal, value) for value in values])
            except ua.UaStatusCodeError as error:
                self._skipped(f"the server has no history of {signal!r}: {error}")

    async def take(self, values: Iterable[tuple[str, Any]]) -> None:
        """Submit values; returns when they are durable, however long that takes."""
        observations = [one for signal, value in values if (one := self._observation(signal, value)) is not None]
        backoff = Backoff(most=LONGEST_WAIT)
        for begin in range(0, len(observations), self._most):
            piece = observations[begin : begin + self._most]
            # A device whose clock is ahead must not make later values look old.
            now = time.time_ns()
            newest = max([self._newest or 0, *(min(one.time or 0, now) for one in piece)])
            while True:
                try:
                    await self._hand_over(piece, Cursor(self.name, str(newest)))
                    break
                except MonitorError as error:
                    self._failed(error)
                    await asyncio.sleep(backoff.failed())
            self._newest = newest
            for one in piece:
                self._newest_of[one.signal] = max(min(one.time or 0, now), self._newest_of.get(one.signal, 0))

    def _observation(self, signal: str, value: ua.DataValue) -> Observation | None:
        """The observation of a value. If its status is not good, it is a missing value."""
        stamp = value.SourceTimestamp or value.ServerTimestamp
        moment = self._stamps.next() if stamp is None else (_aware(stamp) - _EPOCH) // timedelta(microseconds=1) * 1000
        found = None if value.Value is None else value.Value.Value
        if found is None or not (value.StatusCode is None or value.StatusCode.is_good()):
            # The number of features is known after the first good value.
            width = len(found) if isinstance(found, list) and found else 1
            return Observation(signal, moment, (math.nan,) * self._widths.get(signal, width))
        numbers = found if isinstance(found, list) else [found]
        if not 1 <= len(numbers) <= MOST_FEATURES or not all(isinstance(one, (bool, int, float)) for one in numbers):
            self._skipped(f"{signal!r}: a value must be a number or up to {MOST_FEATURES} of them, got {found!r:.60}")
            return None
        self._widths[signal] = len(numbers)
        return Observation(signal, moment, tuple(float(one) if math.isfinite(one) else math.nan for one in numbers))


class _Feed:
    """Receives what the server publishes. When `publish` returns, the library acknowledges it and asks for more."""

    def __init__(self, source: OpcUaSource) -> None:
        self._source = source
        self.signals: Mapping[int, str] = {}
        #: Seconds without any message, even a keep-alive, after which the subscription counts as lost.
        self.longest_silence = math.inf
        self._ended: str | None = None
        self._opened = asyncio.Event()
        self._heard: float | None = time.monotonic()  # None while values are being stored

    def open(self) -> None:
        """Start to process what is published and what is waiting."""
        self._opened.set()

    async def publish(self, result: ua.PublishResult) -> None:
        self._heard = None
        await self._opened.wait()
        try:
            await self._take(result)
            self._heard = time.monotonic()
        except Exception as error:
            # Returning would acknowledge the message. Instead, the connection is closed, which cancels this.
            self._ended = f"a message of the server cannot be read: {error_text(error)}"
            await asyncio.Event().wait()

    async def _take(self, result: ua.PublishResult) -> None:
        values = []
        for notification in result.NotificationMessage.NotificationData or ():
            if isinstance(notification, ua.StatusChangeNotification):
                self._ended = f"the server ended the subscription: {notification.Status.name}"
            elif isinstance(notification, ua.DataChangeNotification):
                values += [(self.signals[item.ClientHandle], item.Value) for item in notification.MonitoredItems]
        await self._source.take(values)

    def check(self) -> None:
        """MonitorError if the server ended the subscription, or sends nothing any more."""
        if self._ended is not None:
            raise MonitorError(self._ended)
        if self._heard is not None and time.monotonic() - self._heard > self.longest_silence:
            raise MonitorError(f"the server has published nothing for {self.longest_silence:.0f} s")


async def _history(node: Node, start: datetime) -> AsyncIterator[list[ua.DataValue]]:
    """The server's history of a node, in pieces, without the interpolated bounds that servers can add."""
    end, place = datetime.now(UTC), None
    while True:
        details = ua.ReadRawModifiedDetails(
            IsReadModified=False, StartTime=start, EndTime=end, NumValuesPerNode=MOST_AT_ONCE, ReturnBounds=False
        )
        found = await node.history_read(details, place)
        found.StatusCode.check()
        values = found.HistoryData.DataValues if isinstance(found.HistoryData, ua.HistoryData) else []
        yield values
        place = found.ContinuationPoint or None
        if place is None:
            # Some servers stop at the requested number without saying that there is more.
            last = values[-1].SourceTimestamp if len(values) >= MOST_AT_ONCE else None
            if last is None or _aware(last) <= start:
                return
            start = _aware(last)


def _aware(stamp: datetime) -> datetime:
    return stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)

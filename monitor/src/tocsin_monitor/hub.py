"""Publishes messages from any thread to any number of subscribers of the live stream, in bounded memory."""

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_core import to_json


@dataclass(eq=False, slots=True)
class StreamMessage:
    """A message of the live stream that pages follow. `number` orders those of one run; the id names the run too."""

    number: int
    id: str
    kind: str
    data: dict[str, Any]
    _written: bytes | None = field(default=None, init=False)

    def limited_to(self, may_see: Callable[[str], bool]) -> "StreamMessage | None":
        """The message for a caller who may see only some signals; None if it is about others."""
        if self.kind == "verdicts":
            seen = {name: latest for name, latest in self.data["signals"].items() if may_see(name)}
            return StreamMessage(self.number, self.id, self.kind, {"signals": seen}) if seen else None
        name = self.data.get("signal", self.data.get("name"))
        return self if name is None or may_see(name) else None

    def written(self) -> bytes:
        """The message as a server-sent event, serialised once for all subscribers."""
        if self._written is None:
            # One line, because JSON escapes line breaks. What takes long to make is made only if somebody reads it.
            data = to_json(self.data, inf_nan_mode="null", fallback=lambda make: make())
            self._written = b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.kind.encode(), data)
        return self._written


KEPT = 10_000
MOST_SUBSCRIBERS = 1000
# Seconds for which a signal's verdicts are kept after its last subscriber left, in case it reconnects.
LINGER = 60.0
# The most messages handed to a subscriber at once. A slow subscriber holds no more than these.
_AT_ONCE = 256


class FullHubError(Exception):
    """The limit of subscribers is reached."""


@dataclass
class _Watch:
    """A signal whose every verdict a subscriber wants, or wanted until recently."""

    subscribers: int = 0
    left: float = 0.0


class Hub:
    """Accepts messages from any thread and hands them to subscribers, all of which are of one event loop.

    A ring holds the newest messages. Subscribers read it at their own pace, so publishing costs the same for none as
    for a thousand. "verdicts" (the latest of each signal) are collected into one message every `pace` seconds, and
    only the latest such message is kept: a subscriber that missed some gets one message with all signals that changed.
    Data may hold functions without arguments; those that are read are called, others never.
    A "verdict" (data: {"signal": name, ...}) is kept only for signals that a subscriber asked for.
    """

    def __init__(self, size: int = KEPT, pace: float = 1.0) -> None:
        self.run = secrets.token_hex(4)
        self._pace = pace
        self._lock = threading.Lock()
        self._ring: deque[StreamMessage] = deque(maxlen=size)
        self._number = 0
        self._lost = 0  # the newest message that is no longer in the ring
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False  # the loop wakes the subscribers once, however much is published before it runs
        self._subscriptions: set[Subscription] = set()
        self._watches: dict[str, _Watch] = {}
        self._lapsed: dict[str, int] = {}  # signals no longer watched, and the newest message when that ended
        self._gathered: dict[str, Any] = {}
        self._latest: dict[str, tuple[int, Any]] = {}
        self._verdicts: StreamMessage | None = None
        self._verdicts_before = 0  # the number of the second newest "verdicts" message
        self._last_verdicts = float("-inf")
        self._timer_due = float("-inf")
        self._closed = False

    def publish(self, kind: str, data: dict[str, Any]) -> str:
        """Publish a message; returns the id of the newest message. Do not change `data` afterwards."""
        with self._lock:
            if kind == "verdicts":
                self._gathered.update(data["signals"])
                self._flush_or_wait()
            elif kind != "verdict" or self._watched(data["signal"]):
                if kind == "signal" and data.get("change") == "removed":
                    self._gathered.pop(data["name"], None)
                    self._latest.pop(data["name"], None)
                if len(self._ring) == self._ring.maxlen:
                    self._lost = self._ring[0].number
                self._ring.append(self._next(kind, data))
                self._wake()
            return self._identity(self._number)

    def watched(self, signal: str) -> bool:
        """Whether a subscriber wants every verdict on a signal. Verdicts on others need not be published."""
        with self._lock:
            return self._watched(signal)

    def subscribe(self, after: str | None, signals: Iterable[str] = ()) -> "Subscription":
        """Subscribe to all messages after one (None: from now on), with single verdicts only for `signals`.

        Call this in the event loop that reads the messages. If some after that one are no longer kept, the first one is
        "reset".
        """
        with self._lock:
            if self._closed or len(self._subscriptions) >= MOST_SUBSCRIBERS:
                raise FullHubError(f"all {MOST_SUBSCRIBERS} live streams are in use: try again later")
            if self._gathered:
                self._flush()
            self._let_lapse()
            wanted = frozenset(signals)
            position = self._number if after is None else self._position(after, wanted)
            start = None if position is None else self._identity(position)
            subscription = Subscription(self, wanted, position, start)
            running = asyncio.get_running_loop()
            if running is not self._loop:
                self._forget_all()
                self._loop, self._woken = running, False
            self._subscriptions.add(subscription)
            for name in wanted:
                self._watches.setdefault(name, _Watch()).subscribers += 1
            return subscription

    def leave(self, subscription: "Subscription") -> None:
        """Remove a subscription; it calls this when it is closed."""
        with self._lock:
            if subscription in self._subscriptions:
                self._remove(subscription)

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._wake()

    def after(self, position: int | None, signals: frozenset[str]) -> tuple[list[StreamMessage], int] | None:
        """The messages after a position (None: unknown), and the new position; None if the subscription must end."""
        with self._lock:
            if self._closed:
                return None
            if position is None:
                return [StreamMessage(self._number, self._identity(self._number), "reset", {})], self._number
            if position < self._lost:
                return None
            found: list[StreamMessage] = []
            for message in reversed(self._ring):
                if message.number <= position:
                    break
                if message.kind != "verdict" or message.data["signal"] in signals:
                    found.append(message)
            found.reverse()
            if self._verdicts is not None and self._verdicts.number > position:
                found.append(self._verdicts if self._verdicts_before <= position else self._missed(position))
                found.sort(key=lambda message: message.number)
            if len(found) > _AT_ONCE:
                return found[:_AT_ONCE], found[_AT_ONCE - 1].number
            return found, self._number

    def _missed(self, position: int) -> StreamMessage:
        """The latest verdicts on all signals that changed after a position."""
        changed = {name: latest for name, (number, latest) in self._latest.items() if number > position}
        newest = self._verdicts.number if self._verdicts is not None else position
        return StreamMessage(newest, self._identity(newest), "verdicts", {"signals": changed})

    def _flush_or_wait(self) -> None:
        now = time.monotonic()
        wait = self._last_verdicts + self._pace - now
        if wait <= 0:
            self._flush()
        elif self._loop is not None and self._subscriptions and self._timer_due < now:
            # If nothing else is published, a timer in a subscriber's loop sends these verdicts in time.
            self._timer_due = now + wait
            self._call(partial(self._loop.call_later, wait, self._time_is_up))

    def _time_is_up(self) -> None:
        with self._lock:
            if self._gathered:
                self._flush()

    def _flush(self) -> None:
        self._verdicts_before = self._verdicts.number if self._verdicts is not None else 0
        self._verdicts = self._next("verdicts", {"signals": self._gathered})
        self._latest.update({name: (self._number, latest) for name, latest in self._gathered.items()})
        self._gathered = {}
        self._last_verdicts = time.monotonic()
        self._wake()

    def _next(self, kind: str, data: dict[str, Any]) -> StreamMessage:
        self._number += 1
        return StreamMessage(self._number, self._identity(self._number), kind, data)

    def _wake(self) -> None:
        if self._subscriptions and not self._woken:
            self._woken = True
            self._call(self._wake_all)

    def _wake_all(self) -> None:
        self._woken = False
        for subscription in tuple(self._subscriptions):
            subscription.wake()

    def _call(self, function: Callable[[], object]) -> None:
        """Make the loop call a function soon. If it is closed, it has no subscribers anymore."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            self._forget_all()

    def _forget_all(self) -> None:
        for subscription in tuple(self._subscriptions):
            self._remove(subscription)

    def _remove(self, subscription: "Subscription") -> None:
        self._subscriptions.discard(subscription)
        for name in subscription.signals:
            self._watches[name].subscribers -= 1
            self._watches[name].left = time.monotonic()

    def _identity(self, number: int) -> str:
        return f"{self.run}-{number}"

    def _watched(self, signal: str) -> bool:
        watch = self._watches.get(signal)
        if watch is None:
            return False
        if watch.subscribers == 0 and time.monotonic() - watch.left > LINGER:
            self._let_lapse()
            return False
        return True

    def _let_lapse(self) -> None:
        """Stop keeping verdicts that no subscriber came back for. A later subscriber gets "reset"."""
        now = time.monotonic()
        for name, watch in tuple(self._watches.items()):
            if watch.subscribers == 0 and now - watch.left > LINGER:
                del self._watches[name]
                self._lapsed[name] = self._number
        # Older entries are not needed: such a subscriber has missed other messages as well.
        self._lapsed = {name: number for name, number in self._lapsed.items() if number >= self._lost}

    def _position(self, after: str, signals: frozenset[str]) -> int | None:
        """The position from which a subscriber continues; None if some of its messages are no longer kept."""
        run, _, digits = after.partition("-")
        if run != self.run or not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            return None
        number = int(digits)
        kept = all(number > self._lapsed.get(name, -1) for name in signals)
        return number if kept and self._lost <= number <= self._number else None


class Subscription:
    """An asynchronous iterator over messages.

    It ends when the hub closes, or when its reader is too slow. A new subscription after the last id that was read
    continues there, or starts with "reset".
    """

    def __init__(self, hub: Hub, signals: frozenset[str], position: int | None, start: str | None) -> None:
        #: The id after which it starts, if known.
        self.start = start
        self.signals = signals
        self._hub = hub
        self._position = position
        self._ready: deque[StreamMessage] = deque()
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Continue reading; called in its loop when there are new messages."""
        self._news.set()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> StreamMessage:
        while not self._ready:
            self._news.clear()
            found = self._hub.after(self._position, self.signals)
            if found is None:
                self.close()
                raise StopAsyncIteration
            messages, self._position = found
            self._ready.extend(messages)
            if not messages:
                await self._news.wait()
        return self._ready.popleft()

    def close(self) -> None:
        """Unsubscribe. For a while, a new subscription can continue from here."""
        self._hub.leave(self)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

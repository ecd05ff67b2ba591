"""Connections: limits of their number, and timeouts for slow clients."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds from the start of a connection, or the first byte of a further request, to the end of its headers.
HEADER_SECONDS = 15.0
# Seconds that a connection may wait for a further request. Most proxies and clients wait for at most a minute: whoever
# closes first must not be the server, since a request may be on its way.
IDLE_SECONDS = 75
# The same after something that needs no token, such as a file of the page: whoever only looks at that must not hold it.
OPEN_IDLE_SECONDS = 10
# Seconds after which a client that reads nothing of its reply is disconnected.
UNREAD_SECONDS = 30.0
# What uvicorn logs about clients that do not speak HTTP.
_OF_CLIENTS = frozenset(("Invalid HTTP request received.", "Unsupported upgrade request."))


def _is_of_ours(record: logging.LogRecord) -> bool:
    return record.msg not in _OF_CLIENTS and not str(record.msg).startswith("No supported WebSocket")


logging.getLogger("uvicorn.error").addFilter(_is_of_ours)


class ConnectionSlot:
    """The slot of one connection. `drop` closes the connection."""

    def __init__(self, places: "ConnectionSlots", address: str) -> None:
        self._places, self.address = places, address
        self.drop: Callable[[], Any] = lambda: None

    def wait(self) -> None:
        """Record that it waits for a request."""
        if self in self._places.taken:
            self._places.waiting[self] = None

    def work(self) -> None:
        """Record that it has a request in progress."""
        self._places.waiting.pop(self, None)

    def leave(self) -> None:
        """Give the slot back; once is enough."""
        places = self._places
        if self in places.taken:
            places.taken.remove(self)
            places.waiting.pop(self, None)
            places.of_address[self.address] -= 1
            if not places.of_address[self.address]:
                del places.of_address[self.address]


class ConnectionSlots:
    """Limits the number of connections, in total and per address.

    At the limit, a new connection replaces the one that has waited longest without a complete request. So a client that
    only holds connections open cannot lock out others.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self.of_address: Counter[str] = Counter()
        self.taken: set[ConnectionSlot] = set()
        self.waiting: dict[ConnectionSlot, None] = {}  # the longest first

    def __len__(self) -> int:
        return len(self.taken)

    def enter(self, address: str) -> ConnectionSlot | None:
        """A slot for a new connection; None if all connections have a request in progress."""
        if self.of_address[address] >= self._most_of_one and not self.free(address):
            return None
        if len(self.taken) >= self._most and not self.free():
            return None
        place = ConnectionSlot(self, address)
        self.taken.add(place)
        self.of_address[address] += 1
        place.wait()
        return place

    def free(self, address: str | None = None) -> bool:
        """Close the connection that has waited longest, from this address or from any; false if none waits."""
        longest = next((one for one in self.waiting if address in (None, one.address)), None)
        if longest is None:
            return False
        longest.leave()
        longest.drop()
        return True


class ClientConnection(H11Protocol):
    """HTTP on one connection, which is closed if the client is too slow."""

    def __init__(self, place: ConnectionSlot, on_malformed: Callable[[], None], **server: Any) -> None:
        super().__init__(**server)
        self._place, self._on_malformed = place, on_malformed
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._place.drop = transport.abort
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.resume_writing()
        self._place.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
            self._place.work()

    def on_response_complete(self) -> None:
        # First, because the call below may start the next request.
        self._place.wait()
        self.timeout_keep_alive = OPEN_IDLE_SECONDS if self.scope.get("caller") is None else IDLE_SECONDS
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._on_malformed()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # a reply has already started
            self.transport.abort()
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application still replies is not sent

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _expect_headers(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self, left: int) -> None:
        """Check after a while whether the client has read more of its reply."""

        def look() -> None:
            now_left = self.transport.get_write_buffer_size()
            if now_left >= left:
                self.transport.abort()
            else:
                self._watch(now_left)

        self._unread = self.loop.call_later(UNREAD_SECONDS, look)


# Files other than connections: of the store, of sources, of libraries.
OWN = 200
# The fewest connections to try in any case.
LEAST = 20

log = logging.getLogger("tocsin.monitor")


def room_for(connections: int) -> int:
    """Raise the limit of open files for this many connections; returns how many are possible."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    room = possible(connections)
    if room < connections:
        log.warning(
            "only %d connections are possible, not the %d of server.max_connections: the system allows %d open files "
            "(LimitNOFILE, ulimit -n)", room, connections, allowed,
        )  # fmt: skip
    return room


def possible(connections: int) -> int:
    """How many of these connections the limit of open files allows."""
    if sys.platform == "win32":
        return connections
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = allowed == resource.RLIM_INFINITY or allowed >= connections + OWN
    return connections if enough else max(LEAST, allowed - OWN)

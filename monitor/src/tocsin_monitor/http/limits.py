"""Limits for clients: requests per second, and bytes per request."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive

from tocsin_monitor.access_log import LONGEST_DETAILS, AccessEntry
from tocsin_monitor.http.errors import HttpError

MOST_CLIENTS = 10_000
# Seconds after which an incomplete body is rejected.
BODY_SECONDS = 60.0


class Buckets:
    """A token bucket for each client: `rate` requests per second, up to `burst` at once.

    Only the most recent clients are remembered; others start with a full bucket.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # the level, and when it was that

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take from a client's bucket; 0 if it had enough, else the seconds to wait.

        A cost above the capacity empties a full bucket.
        """
        now = self._clock()
        left, then = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        cost = min(cost, self._burst)
        enough = left >= cost
        self._buckets[client] = (left - cost if enough else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (cost - left) / self._rate


def too_large(limit: int) -> HttpError:
    """The error for a body that is too large."""
    return HttpError(
        413,
        f"the body may have at most {limit} bytes here (see server.max_body_bytes and server.max_upload_bytes)",
        "body",
    )


class Bodies:
    """Limits the memory of all request bodies together."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> bool:
        """Reserve this many bytes; false if there is not enough memory left."""
        if count > self._left:
            return False
        self._left -= count
        return True

    def give_back(self, count: int) -> None:
        self._left += count


class LimitedBody:
    """Passes on a request's body while it is small enough, there is memory for it, and it arrives in time.

    Without `bodies`, the body is not held in memory, and the time limit applies to each piece.
    """

    def __init__(self, receive: Receive, limit: int, bodies: Bodies | None, entry: AccessEntry | None = None) -> None:
        self._receive, self._limit, self._bodies, self._entry = receive, limit, bodies, entry
        self._read = self._held = 0
        self._until: float | None = None
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        if self._until is None or self._bodies is None:
            self._until = asyncio.get_running_loop().time() + BODY_SECONDS
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, f"the body must arrive within {BODY_SECONDS:g} s", "body") from None
        if message["type"] == "http.disconnect":
            raise HttpError(408, "the client disconnected before its body arrived", "body")
        count = len(message.get("body", b""))
        self._read += count
        if self._read > self._limit:
            raise too_large(self._limit)
        self._take(count)
        self._note(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        return message

    def hold(self, count: int) -> None:
        """Hold memory for the unpacked body, which has this many bytes."""
        self._take(max(0, count - self._held))

    def _take(self, count: int) -> None:
        if self._bodies is None:
            return
        if not self._bodies.take(count):
            busy = "too many large requests at once: try again"
            raise HttpError(503, busy, headers={"Retry-After": "1"})
        self._held += count

    def _note(self, body: bytes) -> None:
        """Add the start of the body to the access log, without NUL characters, which databases reject."""
        if self._entry is not None and len(self._entry.details) < LONGEST_DETAILS:
            text = self._entry.details + body[:LONGEST_DETAILS].decode(errors="replace").replace("\0", "\ufffd")
            self._entry.details = text[:LONGEST_DETAILS]

    def close(self) -> None:
        if self._bodies is not None:
            self._bodies.give_back(self._held)
        self._held = 0

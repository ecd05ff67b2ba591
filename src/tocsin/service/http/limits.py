"""How much one client may ask for: requests in a time, and bytes in a request."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive

from tocsin.service.http.errors import HttpError

MOST_CLIENTS = 10_000
# A request whose body does not come on for so long is given up.
BODY_SECONDS = 30.0


class Buckets:
    """A token bucket for each client: `rate` requests a second, up to `burst` at once.

    Only the clients seen last are remembered; one that is forgotten begins with a full bucket.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take from a client's bucket; 0 if there was enough, else the seconds to wait.

        What costs more than a bucket holds empties it.
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

    def drain(self, client: str, cost: float) -> None:
        """Take from a client's bucket what is there, up to `cost`."""
        if self.take(client, cost) > 0:
            self._buckets[client] = (0.0, self._clock())


def too_many(wait: float) -> HttpError:
    """The refusal of a client that asks too often."""
    seconds = max(1, math.ceil(wait))
    return HttpError(
        429, f"too many requests: try again in {seconds} s (see server.requests_per_second)",
        headers={"Retry-After": str(seconds)},
    )  # fmt: skip


def too_large(limit: int) -> HttpError:
    """The refusal of a body that is too large."""
    return HttpError(413, f"the body may have at most {limit} bytes (server.max_body_bytes)", "body")


class LimitedBody:
    """Hands on a request's body as long as it is small enough and keeps coming."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._read = 0
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, f"the body did not come on for {BODY_SECONDS:.0f} s", "body") from None
        self._read += len(message.get("body", b""))
        if self._read > self._limit:
            raise too_large(self._limit)
        self._complete = not message.get("more_body", False)
        return message

"""What the HTTP server is given of the monitor, and how it asks for it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from tocsin.service.config import Settings
from tocsin.service.errors import NotReadyError, OverloadedError
from tocsin.service.figures import Figures
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.store import Store, StoreReader

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tocsin.service.engine import Engine

T = TypeVar("T")
# Longer than any turn of the engine takes; while the store is away, a client is better told to come back.
PATIENCE = 60.0
# So long a request waits for its turn to look into the store.
READ_PATIENCE = 20.0


class Neighbour(Protocol):
    """A source or a sink, as far as it is shown."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def health(self) -> Any:
        """How it is."""


class MonitorAccess(Protocol):
    """The parts of the monitor."""

    @property
    def settings(self) -> Settings:
        """All settings."""

    @property
    def store(self) -> Store:
        """Where everything is kept."""

    @property
    def engine(self) -> "Engine":
        """What scores."""

    @property
    def hub(self) -> Hub:
        """What tells of events."""

    @property
    def metrics(self) -> Metrics:
        """What is counted."""

    @property
    def read_queue(self) -> "ReadQueue":
        """How requests look into the store."""

    @property
    def figures(self) -> Figures:
        """Numbers of the store."""

    @property
    def sources(self) -> Sequence[Neighbour]:
        """Where observations come from."""

    @property
    def sinks(self) -> Sequence[Neighbour]:
        """Where incidents go."""

    @property
    def started(self) -> int:
        """When it was started, in nanoseconds since 1970."""


def _monitor(request: Request) -> MonitorAccess:
    monitor: MonitorAccess = request.app.state.monitor
    return monitor


Monitor = Annotated[MonitorAccess, Depends(_monitor)]


def check_ready(monitor: MonitorAccess) -> None:
    """While the monitor starts, that a signal is not there means nothing."""
    if not monitor.engine.ready:
        raise NotReadyError(f"the monitor is not ready: {monitor.engine.progress}")


async def done(future: "Future[T]") -> T:
    """What the engine gives. It goes on with its work even if nobody waits any more."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError:
        raise NotReadyError(
            f"the monitor did not finish this within {PATIENCE:.0f} s, and may still do it: send it again, "
            "observations with their times or with the same Idempotency-Key"
        ) from None


class ReadQueue:
    """Looks into the store for who asks, for a few at a time: all others together must not slow down what comes in."""

    def __init__(self, at_once: int = 2) -> None:
        self._turns = asyncio.Semaphore(at_once)

    async def read(self, store: Store, read: Callable[[StoreReader], T]) -> T:
        """What the store has; OverloadedError where too many ask."""
        try:
            async with asyncio.timeout(READ_PATIENCE):
                await self._turns.acquire()
        except TimeoutError:
            raise OverloadedError(retry_after=1.0) from None
        try:
            return await run_in_threadpool(self._reading, store, read)
        finally:
            self._turns.release()

    @staticmethod
    def _reading(store: Store, read: Callable[[StoreReader], T]) -> T:
        with store.reading() as reader:
            return read(reader)


async def from_store(monitor: MonitorAccess, read: Callable[[StoreReader], T]) -> T:
    """What the store has, read and made ready without holding up other requests."""
    return await monitor.read_queue.read(monitor.store, read)


def reply(data: Any, status: int = 200) -> Response:
    """A reply as JSON; what is not finite is null."""
    return Response(to_json(data, inf_nan_mode="null"), status, media_type="application/json")

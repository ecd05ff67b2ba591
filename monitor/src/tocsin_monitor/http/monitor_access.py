"""How the HTTP server uses the monitor: its engine, its store, and numbers that must never wait for a slow store."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from tocsin_monitor.config import Settings
from tocsin_monitor.errors import MonitorError, NotReadyError, OverloadedError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.reloading import Reloaded
from tocsin_monitor.sinks import Outbox
from tocsin_monitor.sources.base import Reporter
from tocsin_monitor.store import Store, StoreReader

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tocsin_monitor.engine import Engine

T = TypeVar("T")
# Longer than any turn of the engine. If the store fails, the client should retry instead of waiting.
PATIENCE = 60.0
# How many requests read the store at the same time.
READERS = 2
# Seconds that a request waits for its turn.
TURN_PATIENCE = 20.0
# Seconds to wait for fresh numbers before returning the previous ones.
FIGURES_PATIENCE = 0.5


@dataclass(frozen=True)
class Numbers:
    """Numbers from the store when it was last read."""

    open_incidents: int = 0
    store_bytes: int = 0
    outbox: dict[str, int] = field(default_factory=dict)


class Figures:
    """Reads the store on request, once for all concurrent requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest = Numbers()
        self._looking: asyncio.Task[None] | None = None

    async def newest(self) -> Numbers:
        """The current numbers, or the previous ones if the store does not reply at once."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({self._looking}, timeout=FIGURES_PATIENCE)
        return self._newest

    async def _look(self) -> None:
        with suppress(MonitorError):  # the engine reports errors of the store
            self._newest = await asyncio.to_thread(self._read)

    def _read(self) -> Numbers:
        with self._store.reading() as reader:
            counted = reader.count_open_incidents(), reader.outbox_waiting(time.time_ns())
        return Numbers(counted[0], self._store.size_bytes(), counted[1])


class MonitorAccess(Protocol):
    """The parts of the monitor."""

    settings: Settings
    store: Store
    engine: "Engine"
    hub: Hub
    metrics: Metrics
    figures: Figures
    #: Turns to read the store for requests.
    read_turns: asyncio.Semaphore
    #: When it was started, in nanoseconds since 1970.
    started: int

    @property
    def sources(self) -> Sequence[Reporter]:
        """Where observations come from."""

    @property
    def sinks(self) -> Sequence[Outbox]:
        """Where incidents go."""

    async def reload(self) -> Reloaded:
        """Read the settings again."""


# Async although it waits for nothing: FastAPI would run it in a thread, which takes far longer than the function does.
async def _monitor(request: Request) -> MonitorAccess:
    monitor: MonitorAccess = request.app.state.monitor
    return monitor


Monitor = Annotated[MonitorAccess, Depends(_monitor)]


def check_ready(monitor: MonitorAccess) -> None:
    """Raise NotReadyError during a start, when a missing signal may just not be rebuilt yet."""
    if not monitor.engine.ready:
        raise NotReadyError(f"the monitor is not ready: {monitor.engine.progress}")


async def done(future: "Future[T]") -> T:
    """Wait for a result of the engine, which finishes its work even if the client leaves."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError:
        raise NotReadyError(
            f"the monitor did not finish this within {PATIENCE:.0f} s, but may still do so: retry, with times or the "
            "same Idempotency-Key for observations"
        ) from None


@asynccontextmanager
async def turn_of(turns: asyncio.Semaphore) -> AsyncIterator[None]:
    """A turn for an `async with` block; OverloadedError if too many requests wait for theirs."""
    try:
        async with asyncio.timeout(TURN_PATIENCE):
            await turns.acquire()
    except TimeoutError:
        raise OverloadedError(retry_after=1.0) from None
    try:
        yield
    finally:
        turns.release()


async def from_store(monitor: MonitorAccess, read: Callable[[StoreReader], T]) -> T:
    """Read the store without blocking other requests; a few at a time, so that observations are not slowed down."""

    def reading() -> T:
        with monitor.store.reading() as reader:
            return read(reader)

    async with turn_of(monitor.read_turns):
        return await run_in_threadpool(reading)


def reply(data: Any, status: int = 200) -> Response:
    """A JSON reply; numbers that are not finite become null."""
    return Response(to_json(data, inf_nan_mode="null"), status, media_type="application/json")

"""Numbers from the store for the status and the metrics, which must never wait for a slow store."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from tocsin.service.errors import MonitorError
from tocsin.service.store import Store

# Seconds to wait for fresh numbers before returning the previous ones.
PATIENCE = 0.5


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
        await asyncio.wait({self._looking}, timeout=PATIENCE)
        return self._newest

    async def _look(self) -> None:
        with suppress(MonitorError):  # the engine reports errors of the store
            self._newest = await asyncio.to_thread(self._read)

    def _read(self) -> Numbers:
        with self._store.reading() as reader:
            counted = reader.count_open_incidents(), reader.outbox_waiting(time.time_ns())
        return Numbers(counted[0], self._store.size_bytes(), counted[1])

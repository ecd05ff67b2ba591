"""Numbers of the store that are told often, and must never be waited for."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from tocsin.service.errors import MonitorError
from tocsin.service.store import Store

# So long somebody who asks waits for fresh numbers; then those of before have to do.
PATIENCE = 0.5


@dataclass(frozen=True)
class Numbers:
    """What the store had when it was last looked at."""

    open_incidents: int = 0
    store_bytes: int = 0
    outbox: dict[str, int] = field(default_factory=dict)


class Figures:
    """Looks at the store when asked to, once for all who ask meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest = Numbers()
        self._looking: asyncio.Task[None] | None = None

    async def newest(self) -> Numbers:
        """The numbers of now, or those of before where the store does not answer at once."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({self._looking}, timeout=PATIENCE)
        return self._newest

    async def _look(self) -> None:
        with suppress(MonitorError):  # the engine says what is wrong with the store
            self._newest = await asyncio.to_thread(self._read)

    def _read(self) -> Numbers:
        with self._store.reading() as reader:
            counted = len(reader.open_incidents()), reader.outbox_waiting()
        return Numbers(counted[0], self._store.size_bytes(), counted[1])

"""What is to be told, until it is told."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from tocsin.service.backoff import Backoff, delay_after
from tocsin.service.error_text import error_text
from tocsin.service.metrics import Metrics
from tocsin.service.sinks.base import DeliveryError, Sink, SinkHealth
from tocsin.service.sinks.repeats import Readable, Repeats, Told, incidents_in
from tocsin.service.store import IncidentRow, OutboxRow, SignalRow, StoreWriter

POLL = 1.0  # seconds
AT_ONCE = 50  # messages that are looked at, and marked, together

_log = logging.getLogger(__name__)

#: Changes the store in a transaction.
Write = Callable[[Callable[[StoreWriter], None]], Future[None]]


class Outbox:
    """Delivers the messages for one sink, in order, until it has got each of them: at least once.

    A sink that does not answer is left alone for a while, ever longer, and then tried with a message that was tried
    least, so that one that it cannot take holds up no other. A message that it refuses waits by itself. What goes on is
    repeated only when there is no news, or between news.

    A snooze holds back that an incident began. If it is over before the snooze, nothing is told of it at all.
    """

    def __init__(self, sink: Sink, store: Readable, write: Write, metrics: Metrics, *, poll: float = POLL) -> None:
        self.sink = sink
        self.health = SinkHealth()
        self._store, self._write, self._metrics, self._poll = store, write, metrics, poll
        self._backoff = Backoff()
        self._rest_until = 0.0
        self._repeats = Repeats(sink, store, self._delivered, self._failed)
        self._unmarked: list[int] = []  # delivered, but not yet marked so
        self._woken = asyncio.Event()

    @property
    def name(self) -> str:
        """The sink's."""
        return self.sink.name

    def wake(self) -> None:
        """There may be something to tell; on the event loop."""
        self._woken.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self._open()
        try:
            while True:
                busy = False
                try:
                    busy = await self._round()
                    if time.monotonic() >= self._rest_until:
                        busy = await self._repeats.tell_some() or busy
                except Exception as error:
                    # The store, most likely: it comes back, and so do we.
                    self._failed(error)
                if not busy:
                    await self._wait()
        finally:
            with suppress(Exception):  # a message that is not marked comes twice, no worse
                async with asyncio.timeout(2):
                    await self._mark_delivered()
            await self.sink.close()

    async def _open(self) -> None:
        while True:
            try:
                return await self.sink.open()
            except Exception as error:
                self._failed(error)
                await asyncio.sleep(self._backoff.failed())

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._woken.wait()
        self._woken.clear()

    async def _round(self) -> bool:
        """Deliver some of what is due; whether there may be more."""
        await self._mark_delivered()
        due, waiting = await asyncio.to_thread(self._due)
        self.health.waiting = waiting
        self._metrics.outbox_waiting.labels(sink=self.name).set(waiting)
        if time.monotonic() < self._rest_until:
            return False
        tried = 0
        for row, (incident, signal) in due:
            if row.status == "firing" and _was_slept_through(incident):
                await self._settle(row.incident)
                continue
            tried += 1
            if not await self._deliver(row, incident, signal) or tried >= AT_ONCE:
                break
        await self._mark_delivered()
        return tried > 0

    def _due(self) -> tuple[list[tuple[OutboxRow, Told]], int]:
        with self._store.reading() as reader:
            rows = reader.outbox_due(self.name, time.time_ns(), AT_ONCE)
            incidents = incidents_in(reader, [row.incident for row in rows])
            waiting = reader.outbox_waiting().get(self.name, 0)
        return [(row, incidents[row.incident]) for row in rows if row.incident in incidents], waiting

    async def _deliver(self, row: OutboxRow, incident: IncidentRow, signal: SignalRow) -> bool:
        """Whether to go on with others."""
        try:
            await self.sink.deliver(incident, signal, row.status)
        except Exception as error:
            # Whatever is no DeliveryError is about this message, as far as anybody knows.
            down = isinstance(error, DeliveryError) and not error.refused
            if down:
                self._rest_until = time.monotonic() + self._backoff.failed()
            self._count("failed")
            self._failed(error)
            text, next_attempt = error_text(error), time.time_ns() + int(delay_after(row.attempts + 1) * 1e9)
            await self._change(lambda writer: writer.mark_failed(row.id, text, next_attempt))
            return not down
        self._delivered()
        self._count("delivered")
        self._unmarked.append(row.id)
        return True

    async def _settle(self, incident: int) -> None:
        """Tell nothing of an incident: neither that it began nor that it is over."""
        await self._change(lambda writer: writer.settle(self.name, incident, time.time_ns()))

    async def _mark_delivered(self) -> None:
        if self._unmarked:
            ids, now = list(self._unmarked), time.time_ns()
            await self._change(lambda writer: writer.mark_delivered(ids, now))
            self._unmarked.clear()

    async def _change(self, change: Callable[[StoreWriter], None]) -> None:
        # Shielded, as whoever writes may have begun: what is written is not to be cancelled.
        await asyncio.shield(asyncio.wrap_future(self._write(change)))

    def _delivered(self) -> None:
        self._backoff.succeeded()
        self.health.last_success = time.time_ns()

    def _failed(self, error: Exception) -> None:
        self.health.last_error, self.health.last_error_time = error_text(error), time.time_ns()
        _log.warning("sink %s: %s", self.name, self.health.last_error)

    def _count(self, outcome: str) -> None:
        self._metrics.deliveries.labels(sink=self.name, outcome=outcome).inc()


def _was_slept_through(incident: IncidentRow) -> bool:
    until = incident.snoozed_until
    return not incident.open and until is not None and (incident.closed or incident.end) <= until

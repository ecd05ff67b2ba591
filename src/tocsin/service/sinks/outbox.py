"""What is to be told, until it is told."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from tocsin.service.backoff import Backoff, delay_after
from tocsin.service.metrics import Metrics
from tocsin.service.sinks.base import DeliveryError, Sink, SinkHealth
from tocsin.service.store import IncidentRow, OutboxRow, Reader, SignalRow, Writer
from tocsin.service.telling import told

POLL = 1.0  # seconds
AT_ONCE = 50  # messages that are marked together
LOOKED_AT = 1000  # messages: those of incidents that are snoozed are passed over

_log = logging.getLogger(__name__)

Told = tuple[IncidentRow, SignalRow]
#: Changes the store in a transaction.
Write = Callable[[Callable[[Writer], None]], Future[None]]


class Readable(Protocol):
    """Of the store, what an outbox needs."""

    def reading(self) -> AbstractContextManager[Reader]:
        """One consistent view."""


class Outbox:
    """Delivers the messages for one sink, in order, until it has got each of them: at least once.

    A sink that does not answer is left alone for a while, ever longer, and then tried with a message that was tried
    least, so that one that it cannot take holds up no other. A message that it refuses waits by itself.

    A snooze holds back that an incident began. If it is over before the snooze, nothing is told of it at all.
    """

    def __init__(self, sink: Sink, store: Readable, write: Write, metrics: Metrics, *, poll: float = POLL) -> None:
        self.sink = sink
        self.health = SinkHealth()
        self._store, self._write, self._metrics, self._poll = store, write, metrics, poll
        self._backoff = Backoff()
        self._rest_until = 0.0
        self._repeated: float | None = None
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
                    await self._repeat()
                    busy = await self._round()
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
        now = time.time_ns()
        done = 0
        for row, (incident, signal) in sorted(due, key=lambda one: (one[0].attempts, one[0].id)):
            if row.status == "firing" and _was_slept_through(incident):
                await self._settle(row)
                continue
            if row.status == "firing" and _is_snoozed(incident, now):
                continue
            if not await self._deliver(row, incident, signal):
                break
            done += 1
            if done >= AT_ONCE:
                break
        await self._mark_delivered()
        return done > 0

    def _due(self) -> tuple[list[tuple[OutboxRow, Told]], int]:
        with self._store.reading() as reader:
            rows = reader.outbox_due(self.name, time.time_ns(), LOOKED_AT)
            incidents = _told(reader, [row.incident for row in rows])
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
            text, next_attempt = told(error), time.time_ns() + int(delay_after(row.attempts + 1) * 1e9)
            await self._change(lambda writer: writer.mark_failed(row.id, text, next_attempt))
            return not down
        self._delivered()
        self._count("delivered")
        self._unmarked.append(row.id)
        return True

    async def _settle(self, row: OutboxRow) -> None:
        """Tell nothing of an incident: neither that it began nor that it is over."""

        def change(writer: Writer) -> None:
            now = time.time_ns()
            writer.mark_delivered([row.id], now)
            rest = [one.id for one in writer.outbox_due(self.name, now, LOOKED_AT) if one.incident == row.incident]
            writer.mark_delivered(rest, now)

        await self._change(change)

    async def _repeat(self) -> None:
        """Tell again of what goes on, if it is time."""
        refresh, now = self.sink.refresh, time.monotonic()
        if refresh is None or now < self._rest_until or (self._repeated is not None and now < self._repeated + refresh):
            return
        going_on = await asyncio.to_thread(self._going_on)
        try:
            await self.sink.repeat(going_on)
        except DeliveryError as error:
            self._failed(error)
            self._rest_until = time.monotonic() + self._backoff.failed()
            return
        self._repeated = now
        if going_on:
            self._delivered()

    def _going_on(self) -> list[Told]:
        with self._store.reading() as reader:
            return list(_told(reader, reader.delivered_firing(self.name)).values())

    async def _mark_delivered(self) -> None:
        if self._unmarked:
            ids, now = list(self._unmarked), time.time_ns()
            await self._change(lambda writer: writer.mark_delivered(ids, now))
            self._unmarked.clear()

    async def _change(self, change: Callable[[Writer], None]) -> None:
        # Shielded, as whoever writes may have begun: what is written is not to be cancelled.
        await asyncio.shield(asyncio.wrap_future(self._write(change)))

    def _delivered(self) -> None:
        self._backoff.succeeded()
        self.health.last_success = time.time_ns()

    def _failed(self, error: Exception) -> None:
        self.health.last_error, self.health.last_error_time = told(error), time.time_ns()
        _log.warning("sink %s: %s", self.name, self.health.last_error)

    def _count(self, outcome: str) -> None:
        self._metrics.deliveries.labels(sink=self.name, outcome=outcome).inc()


def _told(reader: Reader, numbers: list[int]) -> dict[int, Told]:
    """Incidents with their signals, of those that are still there."""
    if not numbers:
        return {}
    signals = {signal.id: signal for signal in reader.signals()}
    incidents = [incident for number in dict.fromkeys(numbers) if (incident := reader.incident(number)) is not None]
    return {incident.id: (incident, signals[incident.signal]) for incident in incidents if incident.signal in signals}


def _is_snoozed(incident: IncidentRow, now: int) -> bool:
    return incident.snoozed_until is not None and incident.snoozed_until > now


def _was_slept_through(incident: IncidentRow) -> bool:
    until = incident.snoozed_until
    return not incident.open and until is not None and (incident.closed or incident.end) <= until

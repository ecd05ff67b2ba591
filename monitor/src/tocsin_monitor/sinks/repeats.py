"""Repeats open incidents to a sink, a bounded number at a time."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import fields

from tocsin_monitor.errors import Backoff
from tocsin_monitor.sinks.base import DeliveryError, Readable, Sink
from tocsin_monitor.store import EventSummary, IncidentRow, LeadRow, SignalRow, StoreReader

PIECE = 50  # incidents
# After this many known refusals in a row, the rest waits for the next time.
MOST_REFUSED = 20

Told = tuple[IncidentRow, SignalRow]


class Repeats:
    """Repeats open incidents every `refresh` seconds, for a sink that asks for it.

    A batch that the sink refuses is tried again in smaller batches, down to the single incident that is to blame, so
    that all others get through. What was refused comes last the next time, one by one. News can go out between batches.
    """

    def __init__(
        self, sink: Sink, store: Readable, succeeded: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self._sink, self._store, self._succeeded, self._failed = sink, store, succeeded, failed
        self._due = 0.0
        self._left: deque[int] = deque()
        self._most = PIECE
        self._refused: set[int] = set()
        self._refused_in_a_row = 0
        self._backoff = Backoff()

    async def tell_some(self) -> bool:
        """Repeat one batch if it is time; true if there may be more to repeat at once."""
        if self._sink.refresh is None or time.monotonic() < self._due:
            return False
        if not self._left:
            await self._begin()
        if self._left:
            await self._tell([self._left.popleft() for _ in range(self._next_size())])
        else:
            self._due = time.monotonic() + self._sink.refresh
        return time.monotonic() >= self._due

    async def _begin(self) -> None:
        going_on = await asyncio.to_thread(self._going_on)
        self._sink.keep_only(set(going_on))
        self._refused &= set(going_on)
        self._left.extend(sorted(going_on, key=lambda number: number in self._refused))
        self._refused_in_a_row = 0

    def _next_size(self) -> int:
        if self._left[0] in self._refused:
            return 1
        return min(self._most, sum(number not in self._refused for number in self._left))

    async def _tell(self, piece: list[int]) -> None:
        incidents = await asyncio.to_thread(self._incidents, piece)
        try:
            if incidents:
                await self._sink.repeat(incidents)
        except DeliveryError as error:
            self._failed(error)
            self._put_back(piece, error)
        else:
            self._succeeded()
            self._backoff.succeeded()
            self._refused.difference_update(piece)
            self._refused_in_a_row = 0
            self._most = min(PIECE, self._most + max(1, self._most // 4))
        if not self._left and self._sink.refresh is not None:
            self._due = time.monotonic() + self._sink.refresh

    def _put_back(self, piece: list[int], error: DeliveryError) -> None:
        if not error.refused:  # the sink seems to be down: after a rest, others first
            self._left.extend(piece)
            self._due = time.monotonic() + self._backoff.failed()
        elif len(piece) > 1:
            self._left.extendleft(reversed(piece))
            self._most = len(piece) // 2
        else:
            known = piece[0] in self._refused
            self._refused.update(piece)
            self._refused_in_a_row += 1
            if known and self._refused_in_a_row >= MOST_REFUSED:
                self._left.clear()

    def _going_on(self) -> list[int]:
        with self._store.reading() as reader:
            return reader.delivered_firing(self._sink.name)

    def _incidents(self, piece: list[int]) -> list[Told]:
        with self._store.reading() as reader:
            return list(incidents_in(reader, piece).values())


def incidents_in(reader: StoreReader, numbers: list[int]) -> dict[int, Told]:
    """Incidents with their signals, of those that are still there; each stands for its event, if it has one."""
    incidents = [row for number in dict.fromkeys(numbers) if (row := reader.incident(number)) is not None]
    if not incidents:
        return {}
    signals = {row.id: row for row in reader.signals({incident.signal for incident in incidents})}
    numbers_of_events = {incident.event for incident in incidents if incident.event is not None}
    events = [event for number in numbers_of_events if (event := reader.event(number)) is not None]
    summaries = {whole.event.id: whole for whole in reader.summaries(events, reader.signal_names())}
    return {
        incident.id: (_lead(incident, summaries.get(incident.event or 0)), signals[incident.signal])
        for incident in incidents
    }


def _lead(incident: IncidentRow, whole: EventSummary | None) -> IncidentRow:
    if whole is None:
        return incident
    event = whole.event
    own = {field.name: getattr(incident, field.name) for field in fields(IncidentRow)}
    lasts = {"open": event.open, "closed": event.closed, "ended": whole.ended, "snoozed_until": whole.snoozed_until}
    return LeadRow(**{**own, **lasts}, whole=whole)

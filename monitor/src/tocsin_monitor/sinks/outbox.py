"""Delivers messages from the store as the rules of a sink say, tries again until it has them, and repeats them."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from enum import Enum

from tocsin_monitor.config.kinds import DeliveryRules
from tocsin_monitor.errors import Backoff, delay_after, error_text
from tocsin_monitor.metrics import Metrics, SinkHealth
from tocsin_monitor.sinks.alerts import told_as
from tocsin_monitor.sinks.base import DeliveryError, Sink
from tocsin_monitor.sinks.testing import made_up
from tocsin_monitor.store import (
    EventSummary,
    IncidentRow,
    LeadRow,
    Message,
    OutboxRow,
    SignalRow,
    Store,
    StoreReader,
    StoreWriter,
)

PIECE = 50  # incidents
# After this many refusals in a row, the sink itself seems to be to blame: its address may be revoked.
MOST_REFUSED = 20

Told = tuple[IncidentRow, SignalRow]


class Repeats:
    """Repeats open incidents every `refresh` seconds, for a sink that asks for it.

    A batch that the sink refuses is tried again in smaller batches, down to the single incident that is to blame, so
    that all others get through. What was refused comes last the next time, one by one. News can go out between batches.
    """

    def __init__(
        self, sink: Sink, store: Store, succeeded: Callable[[], None], failed: Callable[[Exception], None]
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


POLL = 1.0  # seconds
AT_ONCE = 50  # messages that are looked at, and marked, together
# Seconds for which what was read is acted on. Meanwhile people may have acknowledged an incident, and after a pause
# another monitor may lead.
FRESH = 3.0
# Seconds that a test message may take: longer than the usual `timeout` of a sink, and no request waits for ever.
TEST_PATIENCE = 60.0
# How long a message waits while the observations of its incident have not come up to now, in nanoseconds.
_LOOK_AGAIN = 10 * 10**9

_log = logging.getLogger(__name__)

#: Changes the store in a transaction.
Write = Callable[[Callable[[StoreWriter], None]], Future[None]]
#: A message that is due, with its incident and signal.
Due = tuple[OutboxRow, Told]


class Outbox:
    """Delivers the messages for one sink, in order, until it has accepted each of them: at least once.

    A sink that does not answer gets a rest, longer each time. It is then tried with a message that had the fewest
    attempts, so that one message it cannot take does not hold up the others. A message that it refuses waits on its
    own; a sink that refuses many in a row gets a rest, too. Open incidents are repeated when there is no news, or
    between news.

    What was over for longer than `max_age` when the monitor learned of it is not sent: nobody can do anything about it.

    The sink's rules may hold a message back, skip it, or leave out an incident altogether. A snooze holds back the
    start of an incident; if the incident ends before the snooze does, the sink is told nothing about it.
    """

    def __init__(
        self, sink: Sink, store: Store, write: Write, metrics: Metrics, rules: DeliveryRules | None = None, *,
        poll: float = POLL, update_every: float = 0.0, max_age: float = math.inf,
    ) -> None:  # fmt: skip
        self.sink, self.rules = sink, rules or DeliveryRules()
        self.health = SinkHealth()
        self._store, self._write, self._metrics, self._poll = store, write, metrics, poll
        self._backoff = Backoff()
        self._rest_until = 0.0
        self._refused_in_a_row = 0
        self._repeats = Repeats(sink, store, self._delivered, self._failed)
        self._update_every, self._max_age = round(update_every * 1e9), max_age * 1e9
        self._unmarked: dict[int, int] = {}  # delivered, but not yet marked so: which news each had

    @property
    def name(self) -> str:
        return self.sink.name

    async def test(self) -> str | None:
        """Deliver a test message now, whatever the rules say; why the sink does not have it, None if it does."""
        start = time.time_ns()
        told: tuple[Message, ...] = ("firing", "resolved") if self.sink.keeps_open else ("firing",)
        try:
            async with asyncio.timeout(TEST_PATIENCE):
                for status in told:
                    await self.sink.deliver(*made_up(status, start), status)
        except Exception as error:
            late = DeliveryError(f"no reply within {TEST_PATIENCE:g} s")
            reason = late if isinstance(error, TimeoutError) else error
            self._count("failed")
            self._failed(reason)
            return error_text(reason)
        self._delivered()
        self._count("delivered")
        self._rest_until = 0.0  # what waits need not wait longer
        return None

    async def run(self) -> None:
        await self._open()
        try:
            while True:
                busy = False
                try:
                    busy = await self._round()
                    if time.monotonic() >= self._rest_until:
                        busy = await self._repeats.tell_some() or busy
                except Exception as error:
                    # Most likely the store failed: try again when it is back.
                    self._failed(error)
                if not busy:
                    await asyncio.sleep(self._poll)
        finally:
            with suppress(Exception):  # a message that is not marked is delivered twice, which is allowed
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

    async def _round(self) -> bool:
        """Deliver some of the messages that are due; true if there may be more."""
        await self._mark_delivered()
        # While the sink rests, only count what waits for it.
        due, waiting = await asyncio.to_thread(self._due, 0 if time.monotonic() < self._rest_until else AT_ONCE)
        stale = time.monotonic() + FRESH
        self._metrics.outbox_waiting.labels(sink=self.name).set(waiting)
        wanted, decided = self._sorted_out(due, time.time_ns())
        if decided is not None:
            await self._change(decided)
        for row, (incident, signal) in wanted:
            if time.monotonic() > stale or not await self._deliver(row, incident, signal):
                break
        await self._mark_delivered()
        return bool(due)

    def _sorted_out(self, due: Sequence[Due], now: int) -> tuple[list[Due], Callable[[StoreWriter], None] | None]:
        """The messages to send now, and what to store about the others."""
        wanted: list[Due] = []
        held: dict[int, int] = {}
        skipped, left_out = set(), set()
        for row, (incident, signal) in due:
            decision = decide(self.rules, row, incident, now, self._max_age)
            if decision is Decision.SEND:
                wanted.append((row, (incident, signal)))
            elif decision is Decision.SKIP:
                skipped.add(row.id)
            elif decision is Decision.LEAVE_OUT:
                left_out.add(row.incident)
            else:
                held[row.id] = decision

        def store(writer: StoreWriter) -> None:
            writer.hold_messages(held)
            writer.skip_messages(skipped, now)
            for incident in left_out:
                writer.drop_messages(self.name, incident)

        return wanted, store if held or skipped or left_out else None

    def _due(self, most: int) -> tuple[list[Due], int]:
        with self._store.reading() as reader:
            now = time.time_ns()
            rows = reader.outbox_due(self.name, now, most) if most else []
            incidents = incidents_in(reader, [row.incident for row in rows])
            waiting = reader.outbox_waiting(now).get(self.name, 0)
        return [(row, incidents[row.incident]) for row in rows if row.incident in incidents], waiting

    async def _deliver(self, row: OutboxRow, incident: IncidentRow, signal: SignalRow) -> bool:
        """Deliver one message; true if it makes sense to try others."""
        try:
            await self.sink.deliver(incident, signal, row.status)
        except Exception as error:
            # Any other error is assumed to be about this message only, unless there are many.
            self._refused_in_a_row += 1
            down = (isinstance(error, DeliveryError) and not error.refused) or self._refused_in_a_row >= MOST_REFUSED
            if down:
                self._rest_until = time.monotonic() + self._backoff.failed()
            self._count("failed")
            self._failed(error)
            text, next_attempt = error_text(error), time.time_ns() + int(delay_after(row.attempts + 1) * 1e9)
            await self._change(lambda writer: writer.mark_failed(row.id, text, next_attempt))
            return not down
        self._delivered()
        self._count("delivered")
        self._unmarked[row.id] = row.news
        return True

    async def _mark_delivered(self) -> None:
        if self._unmarked:
            news, now = dict(self._unmarked), time.time_ns()
            every = self._update_every
            await self._change(lambda writer: writer.mark_delivered(news, now, news=news, update_every=every))
            self._unmarked.clear()

    async def _change(self, change: Callable[[StoreWriter], None]) -> None:
        # Shielded: a change that has begun must not be cancelled.
        await asyncio.shield(asyncio.wrap_future(self._write(change)))

    def _delivered(self) -> None:
        self._backoff.succeeded()
        self._refused_in_a_row = 0
        self.health.last_success = time.time_ns()

    def _failed(self, error: Exception) -> None:
        self.health.last_error, self.health.last_error_time = error_text(error), time.time_ns()
        _log.warning("sink %s: %s", self.name, self.health.last_error)

    def _count(self, outcome: str) -> None:
        self._metrics.deliveries.labels(sink=self.name, outcome=outcome).inc()


class Decision(Enum):
    """What to do with a message now."""

    SEND = "send it"
    SKIP = "the sink does not want this message"
    LEAVE_OUT = "the sink is told nothing about this incident"


def decide(
    rules: DeliveryRules, row: OutboxRow, incident: IncidentRow, now: int, max_age: float = math.inf
) -> Decision | int:
    """The decision, or the moment until which the message is held back.

    What ended longer than `max_age`, in nanoseconds, before the monitor learned of it is nobody's alarm.
    """
    if row.status == "firing" and row.told is not None:
        # It has grown. That is no news once it is over, or once somebody takes care of what was escalated.
        if not incident.open or (rules.after is not None and incident.acknowledged is not None):
            return Decision.SKIP
    elif row.status == "firing" and row.attempts == 0:
        # After an attempt without a reply, the sink may know of the incident, and must learn of its end, too.
        if isinstance(incident, LeadRow) and incident.whole.age > max_age:
            # Its observations may still come up to now; if it ends before they do, it was over long ago.
            return now + _LOOK_AGAIN if incident.open else Decision.LEAVE_OUT
        decision = _before_first_attempt(rules, incident, now)
        if decision is not None:
            return decision
    if told_as(incident, row.status) not in rules.messages:
        return Decision.SKIP
    allowed = rules.next_time(now)
    return Decision.SEND if allowed <= now else allowed


def _before_first_attempt(rules: DeliveryRules, incident: IncidentRow, now: int) -> Decision | int | None:
    until = incident.snoozed_until
    slept_through = not incident.open and until is not None and (incident.closed or incident.end) <= until
    if slept_through or incident.ended == "removed":
        return Decision.LEAVE_OUT
    due = incident.opened
    if rules.after is not None:
        due += round(rules.after * 1e9)
        if now < due:
            return due
        if not incident.open or incident.acknowledged is not None:
            return Decision.LEAVE_OUT
    # It was over before anybody was to be told of it.
    if not incident.open and incident.closed is not None and rules.next_time(due) > max(due, incident.closed):
        return Decision.LEAVE_OUT
    return None

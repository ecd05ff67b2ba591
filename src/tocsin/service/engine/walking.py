"""A way through all that is stored of a signal, on which a fresh detector judges what was imported."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tocsin.detection import Incident
from tocsin.service.engine.core import Core
from tocsin.service.engine.histories import Span
from tocsin.service.engine.incidents import alarm_facts, nanoseconds
from tocsin.service.engine.rebuilding import alone
from tocsin.service.engine.replaying import TAKEN, learn_reference, stretch_of, what_was_said
from tocsin.service.engine.watched import Watched
from tocsin.service.observations import Status
from tocsin.service.store import IncidentFacts, ObservationRow, StoreReader

# So many stored observations are taken at once: meanwhile nobody can tell it to stop.
PIECE = 1024
# So many observations before the first imported one are taken, so that it is judged as if all had come in their order.
MOST_BEFORE = 100_000


@dataclass(frozen=True)
class Found:
    """What one piece of the way brought: verdicts, and incidents that are over."""

    taken: int
    judged: Sequence[ObservationRow]
    incidents: Sequence[IncidentFacts]
    #: Whether there may be more.
    more: bool


class Walk:
    """From before the first imported observation to the newest of all. Verdicts of what came live stay as they are.

    An incident of the past begins with an imported observation; all others are known already.
    """

    def __init__(self, core: Core, signal: Watched, span: Span) -> None:
        self.row, self.reference, self.span = signal.row, signal.reference, span
        self.new = alone(core, signal.row, signal.reference)
        self._alarms: set[int] = set()
        with core.store.reading() as reader:
            learn_reference(reader, self.new)
            # The past before the reference is compared with it, too.
            self.new.last_time = reader.time_before_newest(self.row.id, MOST_BEFORE, TAKEN, before=span.first)
            self._said = what_was_said(reader, self.new, self.new.last_time)
            self.total = reader.count_observations(self.row.id, self.new.last_time, TAKEN)

    def is_of(self, signal: Watched) -> bool:
        """Whether the signal is still what it was at the start."""
        return signal.row is self.row and signal.reference is self.reference

    def step(self, reader: StoreReader) -> Found:
        """Take the next piece."""
        new = self.new
        # A piece ends where somebody said that what an incident brought is normal.
        end = self._said.next_accepted(new.last_time)
        rows = reader.observations(self.row.id, after=new.last_time, until=end, statuses=TAKEN, limit=PIECE)
        judged = self._judge(rows)
        if end is not None and len(rows) < PIECE:
            new.block.fleet.accept(new.place)
            new.last_time = end
        closed = [incident for _, incident in new.block.take_closed()]
        return Found(len(rows), judged, self._past(closed), more=len(rows) == PIECE or end is not None)

    def last_incident(self) -> list[IncidentFacts]:
        """The one that goes on at the end, if it is of the past: it is over with that."""
        going_on = self.new.block.fleet.open_incident(self.new.place)
        return [] if going_on is None else self._past([going_on])

    def _judge(self, rows: Sequence[ObservationRow]) -> list[ObservationRow]:
        if not rows:
            return []
        new, span = self.new, self.span
        verdicts = new.block.run({new.place: stretch_of(new, rows, self._said)})[new.place].judged
        judged = [
            replace(row, judged=replace(verdict, value=row.judged.value))
            for row, verdict in zip(rows, verdicts, strict=True)
            if row.status is Status.IMPORTED and span.first <= row.time <= span.last
        ]
        self._alarms.update(row.time for row in judged if row.judged.alarm)
        new.last_time = rows[-1].time
        return judged

    def _past(self, incidents: Sequence[Incident]) -> list[IncidentFacts]:
        now = time.time_ns()
        return [
            replace(alarm_facts(self.new, one, now), open=False, closed=now, ended="imported")
            for one in incidents
            if nanoseconds(one.start) in self._alarms
        ]

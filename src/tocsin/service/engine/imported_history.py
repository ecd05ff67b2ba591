"""Imported history: a fresh detector judges it on a thread of its own, while the engine takes what comes live."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tocsin.detection import Incident
from tocsin.service.engine.changes import Ask
from tocsin.service.engine.detector_replacement import DetectorReplacement
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.incidents import alarm_facts, nanoseconds
from tocsin.service.engine.pending_imports import Progress, Span
from tocsin.service.engine.replay import TAKEN, learn_reference, remember_newest, stored_input, what_was_said
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.errors import NotReadyError, StoreError
from tocsin.service.observations import Status
from tocsin.service.store import IncidentFacts, ObservationRow, StoreReader, StoreWriter

log = logging.getLogger("tocsin.engine")

# So many stored observations are taken at once: meanwhile nobody can tell it to stop.
PIECE = 1024
# So many observations before the first imported one are taken, so that it is judged as if all had come in their order.
MOST_BEFORE = 100_000
# How often to look for something to do, and how long to wait when the store is away, in seconds.
LOOK_EVERY = 0.2
PAUSE = 1.0


@dataclass(frozen=True)
class Found:
    """What one piece of the way brought: verdicts, and incidents that are over."""

    taken: int
    judged: Sequence[ObservationRow]
    incidents: Sequence[IncidentFacts]
    #: Whether there may be more.
    more: bool


class Walk:
    """A way through all that is stored of a signal, on which a fresh detector judges what was imported.

    It goes from before the first imported observation to the newest of all. Verdicts of what came live stay.

    An incident of the past begins with an imported observation; all others are known already.
    """

    def __init__(self, reader: StoreReader, signal: MonitoredSignal, new: MonitoredSignal, span: Span) -> None:
        self.row, self.reference, self.span = signal.row, signal.reference, span
        #: The signal with a fresh detector.
        self.new = new
        self._alarms: set[int] = set()
        learn_reference(reader, new)
        # The past before the reference is compared with it, too.
        new.last_time = reader.time_before_newest(self.row.id, MOST_BEFORE, TAKEN, before=span.first)
        self._said = what_was_said(reader, new, new.last_time)
        self.total = reader.count_observations(self.row.id, new.last_time, TAKEN)

    def is_of(self, signal: MonitoredSignal) -> bool:
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
        verdicts = new.block.run({new.place: stored_input(new, rows, self._said)})[new.place].judged
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


class _StoppedError(Exception):
    """There is no need to go on."""


class HistoryLearner:
    """Takes signals whose history has come, one after the other, and lets them go on with what was learned of it.

    A detector that is built beside the one that judges takes its place when it has caught up.
    """

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-history", daemon=True)

    def start(self) -> None:
        """Begin to look for something to do."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """What is not finished is begun anew at the next start."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY):
            due = self._state.pending_imports.due()
            if due is None:
                continue
            name, span = due
            try:
                self._learn(name, span)
            except _StoppedError:
                return
            except (NotReadyError, StoreError) as error:
                log.warning("the history of %r is learned later: %s", name, error)
                self._stopping.wait(PAUSE)
            except Exception as error:
                log.exception("the history of %r cannot be learned", name)
                self._give_up(name, error)

    def _learn(self, name: str, span: Span) -> None:
        state = self._state
        signal = state.signals.get(name)
        if signal is None:
            return  # it was removed just now
        new = self._detectors.fresh(signal.row, signal.reference)
        with state.store.reading() as reader:
            walk = Walk(reader, signal, new, span)
        self._do(lambda: self._begin(walk))
        done = incidents = 0
        more = True
        while more:
            with state.store.reading() as reader:
                found = walk.step(reader)
            if found.judged or found.incidents:
                self._do(partial(self._store, [found]))
            done, incidents, more = done + found.taken, incidents + len(found.incidents), found.more
            state.pending_imports.tell(Progress(name, "learning", done, max(done, walk.total), incidents))
            if state.pending_imports.span(walk.row.id) != span:
                return  # more has come, and it begins anew
        last = self._do(lambda: self._finish(name, walk))
        if last is not None:
            state.pending_imports.tell(Progress(name, "done", done, done, incidents + last))
            state.hub.publish("signal", {"name": name, "change": "imported"})
            log.info("the history of %r is learned: %d observations, %d incidents", name, done, incidents + last)

    def _do(self, call: Callable[[], Any]) -> Any:
        """Have the engine do something, between what else it does."""
        if self._stopping.is_set():
            raise _StoppedError
        return self._ask(call).result()

    def _begin(self, walk: Walk) -> None:
        """What was found in this past before is found anew."""
        with self._state.store.transaction() as writer:
            writer.remove_imported_incidents(walk.row.id, walk.span.first, walk.span.last)

    def _store(self, pieces: Sequence[Found]) -> None:
        with self._state.store.transaction() as writer:
            _put(writer, pieces)

    def _finish(self, name: str, walk: Walk) -> int | None:
        """Let the signal go on with the detector that has learned; returns how many more incidents there are.

        None where it has to be built anew.
        """
        state, number = self._state, walk.row.id
        signal = state.signals.get(name)
        if signal is None or not walk.is_of(signal) or state.pending_imports.span(number) != walk.span:
            return None
        with state.store.reading() as reader:
            pieces = [walk.step(reader)]  # what has come live meanwhile
            while pieces[-1].more:
                pieces.append(walk.step(reader))
        pieces.append(Found(0, (), walk.last_incident(), more=False))

        def change(writer: StoreWriter) -> None:
            _put(writer, pieces)
            state.pending_imports.end(writer, number)

        self._detectors.replace(signal, walk.new, "relearned", change)
        state.pending_imports.forget(number)
        with state.store.reading() as reader, state.lock:
            remember_newest(reader, signal)
        state.count()
        return sum(len(piece.incidents) for piece in pieces)

    def _give_up(self, name: str, error: Exception) -> None:
        """It goes on as it is, and is tried again at the next start."""
        self._state.pending_imports.fail(name, str(error))


def _put(writer: StoreWriter, pieces: Sequence[Found]) -> None:
    for piece in pieces:
        writer.judge_observations(piece.judged)
        for one in piece.incidents:
            writer.put_incident(one)

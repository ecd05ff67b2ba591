"""Judges imported history with a new detector on its own thread, while the engine processes live observations."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tocsin.detection import Incident
from tocsin_monitor.engine.changes import Ask, DetectorReplacement
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import alarm_facts, nanoseconds
from tocsin_monitor.engine.pending_imports import Progress, Span
from tocsin_monitor.engine.replay import (
    TAKEN,
    incident_labels,
    learn_reference,
    remember_newest,
    take_piece,
)
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.errors import NotReadyError, StoreError
from tocsin_monitor.observations import Status
from tocsin_monitor.store import IncidentFacts, ObservationRow, StoreReader, StoreWriter

log = logging.getLogger("tocsin.engine")

# Stored observations per step. A step cannot be interrupted.
PIECE = 1024
# Observations to take before the first imported one, so that it is judged as if all had arrived in order.
MOST_BEFORE = 100_000
# Seconds between checks for new work, and to wait when the store has failed.
LOOK_EVERY = 0.2
PAUSE = 1.0


@dataclass(frozen=True)
class ReplayStep:
    """The result of one step: verdicts, and incidents that ended."""

    taken: int
    judged: Sequence[ObservationRow]
    incidents: Sequence[IncidentFacts]
    #: Whether there may be more observations.
    more: bool


class HistoryReplay:
    """Replays the stored observations of a signal with a new detector, which judges the imported ones.

    It starts before the first imported observation and ends with the newest one. Verdicts on live observations stay.

    Only incidents that start with an imported observation are new; all others are stored already.
    """

    def __init__(self, reader: StoreReader, signal: MonitoredSignal, new: MonitoredSignal, span: Span) -> None:
        self.row, self.reference, self.span = signal.row, signal.reference, span
        #: The signal with a new detector.
        self.new = new
        self._alarms: set[int] = set()
        learn_reference(reader, new)
        # Observations before the reference are compared with it too.
        new.last_time = reader.time_before_newest(self.row.id, MOST_BEFORE, TAKEN, before=span.first)
        self._labels = incident_labels(reader, new, new.last_time)
        self.total = reader.count_observations(self.row.id, new.last_time, TAKEN)

    def step(self, reader: StoreReader) -> ReplayStep:
        rows, verdicts, closed, more = take_piece(reader, self.new, self._labels, PIECE)
        judged = [
            replace(row, judged=replace(verdict, value=row.judged.value))
            for row, verdict in zip(rows, verdicts, strict=True)
            if row.status is Status.IMPORTED and self.span.first <= row.time <= self.span.last
        ]
        self._alarms.update(row.time for row in judged if row.judged.alarm)
        return ReplayStep(len(rows), judged, self._past(closed), more)

    def last_incident(self) -> list[IncidentFacts]:
        """The incident still open at the end, if it is in the imported history. It ends there."""
        going_on = self.new.block.fleet.open_incident(self.new.place)
        return [] if going_on is None else self._past([going_on])

    def _past(self, incidents: Sequence[Incident]) -> list[IncidentFacts]:
        now = time.time_ns()
        return [
            replace(alarm_facts(self.new, one, now), open=False, closed=now, ended="imported")
            for one in incidents
            if nanoseconds(one.start) in self._alarms
        ]


class _StoppedError(Exception):
    """The monitor is stopping."""


class HistoryLearner:
    """Judges the imported history of one signal after another.

    A new detector learns next to the current one, and replaces it once it has caught up.
    """

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-history", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Stop the thread. The next start begins unfinished work again."""
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
                log.warning("the history of %r will be learned later: %s", name, error)
                self._stopping.wait(PAUSE)
            except Exception as error:
                log.exception("the history of %r cannot be learned", name)
                # The current detector stays, and the next start tries again.
                self._state.pending_imports.fail(name, str(error))

    def _learn(self, name: str, span: Span) -> None:
        state = self._state
        signal = state.signals.get(name)
        if signal is None:
            return  # it was just removed
        new = self._detectors.fresh(signal.row, signal.reference)
        with state.store.reading() as reader:
            replay = HistoryReplay(reader, signal, new, span)
        self._do(lambda: self._begin(replay))
        done = incidents = 0
        more = True
        while more:
            with state.store.reading() as reader:
                found = replay.step(reader)
            if found.judged or found.incidents:
                self._do(partial(self._store, [found]))
            done, incidents, more = done + found.taken, incidents + len(found.incidents), found.more
            state.pending_imports.tell(Progress(name, "learning", done, max(done, replay.total), incidents))
            if state.pending_imports.span(replay.row.id) != span:
                return  # more history has arrived, so this starts again
        last = self._do(lambda: self._finish(name, replay))
        if last is not None:
            state.pending_imports.tell(Progress(name, "done", done, done, incidents + last))
            state.hub.publish("signal", {"name": name, "change": "imported"})
            log.info("learned the history of %r: %d observations, %d incidents", name, done, incidents + last)

    def _do(self, call: Callable[[], Any]) -> Any:
        """Run something on the engine's thread and wait for the result."""
        if self._stopping.is_set():
            raise _StoppedError
        return self._ask(call).result()

    def _begin(self, replay: HistoryReplay) -> None:
        """Remove incidents found in this history before: they will be found again."""
        with self._state.store.transaction() as writer:
            writer.remove_imported_incidents(replay.row.id, replay.span.first, replay.span.last)

    def _store(self, pieces: Sequence[ReplayStep]) -> None:
        with self._state.store.transaction() as writer:
            _put(writer, pieces)

    def _finish(self, name: str, replay: HistoryReplay) -> int | None:
        """Replace the signal's detector with the one that has learned; returns the number of further incidents.

        None if the signal has changed, so that this must start again.
        """
        state, number = self._state, replay.row.id
        signal = state.signals.get(name)
        if signal is None or signal.row is not replay.row or signal.reference is not replay.reference:
            return None
        if state.pending_imports.span(number) != replay.span:
            return None
        with state.store.reading() as reader:
            pieces = [replay.step(reader)]  # observations that arrived meanwhile
            while pieces[-1].more:
                pieces.append(replay.step(reader))
        pieces.append(ReplayStep(0, (), replay.last_incident(), more=False))

        def change(writer: StoreWriter) -> None:
            _put(writer, pieces)
            state.pending_imports.end(writer, number)

        self._detectors.replace(signal, replay.new, "relearned", change)
        state.pending_imports.forget(number)
        with state.store.reading() as reader, state.lock:
            remember_newest(reader, signal)
        state.count()
        return sum(len(piece.incidents) for piece in pieces)


def _put(writer: StoreWriter, pieces: Sequence[ReplayStep]) -> None:
    for piece in pieces:
        writer.judge_observations(piece.judged)
        for one in piece.incidents:
            writer.put_incident(one)

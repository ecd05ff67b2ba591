"""Judges imported history with new detectors on threads of its own, while the engine processes live observations."""

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tocsin.detection import Incident
from tocsin_monitor.engine.changes import Ask, DetectorReplacement
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import alarm_facts, nanoseconds
from tocsin_monitor.engine.pending_imports import Progress, Span, Stage
from tocsin_monitor.engine.recovery import give_back_freed_memory
from tocsin_monitor.engine.replay import (
    TAKEN,
    TakenPiece,
    incident_labels,
    learn_reference,
    remember_newest,
    take_pieces,
)
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.errors import NotReadyError, StoreError
from tocsin_monitor.observations import Status, VerdictColumns
from tocsin_monitor.store import IncidentFacts, ObservationColumns, ReferenceRow, SignalRow, StoreReader, StoreWriter

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("tocsin.engine")

# Stored observations per step, of one signal and of all that are judged together. A step cannot be interrupted, and the
# engine stores its verdicts between two turns.
PIECE = 1024
MOST_IN_STEP = 4096
# Signals that are judged together: more would gain little speed.
MOST_TOGETHER = 16
# Observations to take before the first imported one, so that it is judged as if all had arrived in order.
MOST_BEFORE = 100_000
# Seconds between checks for new work, and to wait when the store has failed.
LOOK_EVERY = 0.2
PAUSE = 1.0


@dataclass(frozen=True)
class ReplayStep:
    """The result of one step for one signal: its imported observations with verdicts, and incidents that ended."""

    signal: int
    taken: int
    judged: tuple[ObservationColumns, VerdictColumns] | None
    incidents: Sequence[IncidentFacts]
    #: Whether there may be more observations.
    more: bool

    def put(self, writer: StoreWriter) -> None:
        if self.judged is not None:
            writer.judge_observations(self.signal, *self.judged)
        for one in self.incidents:
            writer.put_incident(one)


class HistoryReplay:
    """Replays the stored observations of a signal with a new detector, which judges the imported ones.

    It starts before the first imported observation and ends with the newest one. Verdicts on live observations stay.

    Only incidents that start with an imported observation are new; all others are stored already.
    """

    def __init__(self, reader: StoreReader, new: MonitoredSignal, span: Span) -> None:
        self.row, self.reference, self.span = new.row, new.reference, span
        #: The signal with a new detector.
        self.new = new
        #: How many observations were taken, and how many incidents were found.
        self.done = self.incidents = 0
        self._alarms: set[int] = set()
        learn_reference(reader, new)
        # Observations before the reference are compared with it too.
        new.last_time = reader.time_before_newest(self.row.id, MOST_BEFORE, TAKEN, before=span.first)
        self.labels = incident_labels(reader, new, new.last_time)
        self.total = reader.count_observations(self.row.id, new.last_time, TAKEN)

    def note(self, taken: TakenPiece) -> ReplayStep:
        """What to store of a piece that its detector took."""
        judged = None
        if taken.verdicts is not None:
            found = taken.observations
            within = (self.span.first <= found.times) & (found.times <= self.span.last)
            chosen = within & (found.statuses == Status.IMPORTED)
            judged = found.at(chosen), taken.verdicts.at(chosen)
            self._alarms.update(judged[0].times[judged[1].alarm].tolist())
        incidents = self._past(taken.closed)
        self.done, self.incidents = self.done + len(taken), self.incidents + len(incidents)
        return ReplayStep(self.row.id, len(taken), judged, incidents, taken.more)

    def last_incident(self) -> ReplayStep:
        """The incident still open at the end, if it is in the imported history. It ends there."""
        going_on = self.new.block.fleet.open_incident(self.new.place)
        incidents = [] if going_on is None else self._past([going_on])
        self.incidents += len(incidents)
        return ReplayStep(self.row.id, 0, None, incidents, more=False)

    def progress(self, stage: Stage) -> Progress:
        return Progress(self.row.name, stage, self.done, max(self.done, self.total), self.incidents)

    def _past(self, incidents: Sequence[Incident]) -> list[IncidentFacts]:
        now = time.time_ns()
        return [
            replace(alarm_facts(self.new, one, now), open=False, closed=now, ended="imported")
            for one in incidents
            if nanoseconds(one.start) in self._alarms
        ]


def step(reader: StoreReader, replays: Sequence[HistoryReplay]) -> list[ReplayStep]:
    """Replay the next observations of signals whose new detectors share a block."""
    most = min(PIECE, MOST_IN_STEP // len(replays))
    taken = take_pieces(reader, {one.new: one.labels for one in replays}, most)
    return [one.note(taken[one.new]) for one in replays]


class _StoppedError(Exception):
    """The monitor is stopping."""


@dataclass(frozen=True)
class _Due:
    """A signal whose history has arrived, as it was then."""

    row: SignalRow
    reference: ReferenceRow | None
    span: Span


class HistoryLearner:
    """Judges the imported history of signals, those with the same settings together, on all cores.

    New detectors learn next to the current ones, and replace them once they have caught up.
    """

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        #: The names of the signals whose history is being learned.
        self._learning: set[str] = set()
        self._threads = [
            threading.Thread(target=self._run, name=f"tocsin-history-{number}", daemon=True)
            for number in range(state.settings.threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """Stop the threads. The next start begins unfinished work again."""
        self._stopping.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY):
            learned = False
            while (due := self._take()) and not self._stopping.is_set():
                learned = True
                try:
                    self._try(due)
                except _StoppedError:
                    return
                finally:
                    with self._lock:
                        self._learning.difference_update(one.row.name for one in due)
            if learned:
                give_back_freed_memory()

    def _take(self) -> list[_Due]:
        """Signals to learn together. The other threads get their share."""
        state = self._state
        with self._lock:
            due = state.pending_imports.due(self._learning)
            groups: dict[str, list[_Due]] = {}
            for name, span in due.items():
                signal = state.signals.get(name)
                if signal is not None:  # it was not just removed
                    alike = json.dumps([signal.row.features, signal.row.settings], sort_keys=True)
                    groups.setdefault(alike, []).append(_Due(signal.row, signal.reference, span))
            share = len(due) if state.pending_imports.arriving else -(-len(due) // len(self._threads))
            taken = next(iter(groups.values()), [])[: min(MOST_TOGETHER, share)]
            self._learning.update(one.row.name for one in taken)
        return taken

    def _try(self, due: Sequence[_Due]) -> None:
        try:
            self._learn(due)
        except _StoppedError:
            raise
        except (NotReadyError, StoreError) as error:
            log.warning("the history of %s will be learned later: %s", _names(due), error)
            self._stopping.wait(PAUSE)
        except Exception as error:
            if len(due) > 1:  # it may be only one of them
                for one in due:
                    self._try([one])
                return
            log.exception("the history of %s cannot be learned", _names(due))
            # The current detector stays, and the next start tries again.
            self._state.pending_imports.fail(due[0].row.name, str(error))

    def _learn(self, due: Sequence[_Due]) -> None:
        state = self._state
        news = self._detectors.fresh_together([(one.row, one.reference) for one in due])
        with state.store.reading() as reader:
            left = [HistoryReplay(reader, new, one.span) for new, one in zip(news, due, strict=False)]
        self._do(partial(self._begin, left))
        stored: Future[None] | None = None
        while left:
            with state.store.reading() as reader:
                steps = step(reader, left)
            if stored is not None:
                stored.result()
            stored = self._submit(partial(self._store, steps))
            for replay in left:
                state.pending_imports.tell(replay.progress("learning"))
            ended = [replay for replay, one in zip(left, steps, strict=True) if not one.more]
            # If more of its history has arrived, a signal starts again.
            left = [one for one in left if one not in ended and state.pending_imports.span(one.row.id) == one.span]
            if ended:
                stored.result()
            # All at once: between two turns, the engine does everything that was asked for.
            for replay, finished in [(one, self._submit(partial(self._finish, one))) for one in ended]:
                if finished.result():
                    self._tell(replay)

    def _tell(self, replay: HistoryReplay) -> None:
        state, name = self._state, replay.row.name
        state.pending_imports.tell(replay.progress("done"))
        state.hub.publish("signal", {"name": name, "change": "imported"})
        log.info("learned the history of %r: %d observations, %d incidents", name, replay.done, replay.incidents)

    def _do(self, call: Callable[[], Any]) -> Any:
        """Run something on the engine's thread and wait for the result."""
        return self._submit(call).result()

    def _submit(self, call: Callable[[], Any]) -> "Future[Any]":
        if self._stopping.is_set():
            raise _StoppedError
        return self._ask(call)

    def _begin(self, replays: Sequence[HistoryReplay]) -> None:
        """Remove incidents found in this history before: they will be found again."""
        with self._state.store.transaction() as writer:
            for one in replays:
                writer.remove_imported_incidents(one.row.id, one.span.first, one.span.last)

    def _store(self, steps: Sequence[ReplayStep]) -> None:
        with self._state.store.transaction() as writer:
            for one in steps:
                one.put(writer)

    def _finish(self, replay: HistoryReplay) -> bool:
        """Replace the signal's detector with the one that has learned.

        False if the signal has changed, so that this must start again.
        """
        state, number = self._state, replay.row.id
        signal = state.signals.get(replay.row.name)
        if signal is None or signal.row is not replay.row or signal.reference is not replay.reference:
            return False
        if state.pending_imports.span(number) != replay.span:
            return False
        with state.store.reading() as reader:
            steps = step(reader, [replay])  # observations that arrived meanwhile
            while steps[-1].more:
                steps += step(reader, [replay])
        steps.append(replay.last_incident())

        def change(writer: StoreWriter) -> None:
            for one in steps:
                one.put(writer)
            state.pending_imports.end(writer, number)

        self._detectors.replace(signal, replay.new, "relearned", change)
        state.pending_imports.forget(number)
        with state.store.reading() as reader, state.lock:
            remember_newest(reader, signal)
            if not state.pending_imports:
                # What signals propose, and what recurs, is known from history.
                state.budgets.recover(reader, state.signals.values())
        state.count()
        return True


def _names(due: Sequence[_Due]) -> str:
    return ", ".join(repr(one.row.name) for one in due)

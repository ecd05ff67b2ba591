"""Trials: what a detector with other settings would have found in stored observations.

A trial runs on a thread of its own with a detector of its own. It only reads the store: nothing of the engine changes.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tocsin.detection import Incident
from tocsin.service.engine.detector_replacement import DetectorReplacement
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.incidents import nanoseconds
from tocsin.service.engine.new_signals import new_row
from tocsin.service.engine.replay import (
    PIECE,
    TAKEN,
    IncidentLabels,
    incident_labels,
    latest,
    learn_reference,
    rebuilt_from,
    stored_input,
)
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.store import SignalRow

log = logging.getLogger("tocsin.engine")

WEEK = 7 * 86400 * 10**9
# A trial ends after so many observations or seconds, and says how far it came.
MOST_ROWS = 200_000
MOST_SECONDS = 120.0
# Detectors that judge come first: so many trials at most run beside them, and so many results are kept.
AT_ONCE = 2
# One that is ended goes on until it has judged its piece: so many threads may be left.
MOST_THREADS = 2 * AT_ONCE
KEPT = 100
MOST_COUNTED = 100_000

TrialStage = Literal["running", "done", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """How far a trial is. Incidents count that began since `since`, and up to `until`, as far as it came."""

    stage: TrialStage
    since: int
    until: int | None = None
    done: int = 0
    total: int = 0
    #: How many there would have been, and how many there were.
    incidents: int = 0
    raised: int = 0
    #: Whether it came to the newest observation.
    complete: bool = False
    #: Whether the detector was warm before `since`.
    warm: bool = False
    message: str = ""


@dataclass
class _Trial:
    progress: TrialProgress
    stop: threading.Event = field(default_factory=threading.Event)


class Trials:
    """The newest trial of each signal."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._detectors = DetectorReplacement(state)
        self._lock = threading.Lock()
        self._trials: dict[str, _Trial] = {}
        self._threads = 0
        self._stopped = False

    def start(self, name: str, detector: dict[str, Any], since: int | None = None) -> TrialProgress:
        """Begin a trial; one of the same signal that runs is ended. RefusedError if the settings are wrong."""
        signal = self._state.signal(name)
        row = self._row(signal, detector)
        newest = latest(signal.last_time, 0) or 0
        trial = _Trial(TrialProgress("running", newest - WEEK if since is None else since))
        new = self._detectors.fresh(row, signal.reference)  # refuses what there is no room for
        with self._lock:
            others = [one for other, one in self._trials.items() if other != name]
            running = sum(one.progress.stage == "running" for one in others)
            if running >= AT_ONCE or self._threads >= MOST_THREADS or self._stopped:
                raise RefusedError(f"{AT_ONCE} trials run already: wait for one of them, or end it")
            before = self._trials.pop(name, None)
            if before is not None:
                before.stop.set()
            self._threads += 1
            for old in list(self._trials)[: len(self._trials) - KEPT + 1]:
                del self._trials[old]
            self._trials[name] = trial
        threading.Thread(target=self._run, args=(trial, new), name="tocsin-trial", daemon=True).start()
        return trial.progress

    def progress(self, name: str) -> TrialProgress:
        """How far the newest trial of a signal is."""
        return self._trial(name).progress

    def _trial(self, name: str) -> _Trial:
        with self._lock:
            trial = self._trials.get(name)
        if trial is None:
            raise UnknownError(f"there is no trial of {name!r}")
        return trial

    def cancel(self, name: str) -> None:
        """End it; what it found so far is kept."""
        self._trial(name).stop.set()

    def stop(self) -> None:
        """End all: the monitor stops."""
        with self._lock:
            self._stopped = True
            for trial in self._trials.values():
                trial.stop.set()

    def _row(self, signal: MonitoredSignal, detector: dict[str, Any]) -> SignalRow:
        """The signal as it would be configured."""
        given = new_row(self._state.settings, signal.name, signal.row.features, detector)
        interval = {} if signal.row.every is None else {"interval": signal.row.every}
        return replace(signal.row, settings={**given.settings, **interval})

    def _run(self, trial: _Trial, new: MonitoredSignal) -> None:
        try:
            self._judge(trial, new)
        except Exception as error:
            log.warning("a trial of %r failed: %s", new.name, error)
            trial.progress = replace(trial.progress, stage="failed", message=str(error))
        finally:
            with self._lock:
                self._threads -= 1

    def _judge(self, trial: _Trial, new: MonitoredSignal) -> None:
        end, since = time.monotonic() + MOST_SECONDS, trial.progress.since
        with self._state.store.reading() as reader:
            learn_reference(reader, new)
            before = reader.time_before_newest(new.row.id, rebuilt_from(new), TAKEN, before=since)
            new.last_time = latest(new.last_time, before)
            labels = incident_labels(reader, new, new.last_time)
            total = reader.count_observations(new.row.id, new.last_time, TAKEN)
            learned = total - reader.count_observations(new.row.id, since - 1, TAKEN)
        warm = new.reference is not None or learned >= new.block.fleet.warm_up
        trial.progress = replace(trial.progress, total=min(total, MOST_ROWS), warm=warm)
        found = 0
        while trial.progress.done < MOST_ROWS and time.monotonic() < end and not trial.stop.is_set():
            taken, closed, more = self._step(new, labels)
            found += _since(closed, since)
            going_on = new.block.fleet.open_incident(new.place)
            trial.progress = replace(
                trial.progress, done=trial.progress.done + taken, until=new.last_time, complete=not more,
                incidents=found + _since([] if going_on is None else [going_on], since),
            )  # fmt: skip
            if not more:
                break
        raised = self._raised(new, since, trial.progress.until)
        stage: TrialStage = "cancelled" if trial.stop.is_set() else "done"
        trial.progress = replace(trial.progress, stage=stage, raised=raised)

    def _step(self, new: MonitoredSignal, labels: IncidentLabels) -> tuple[int, list[Incident], bool]:
        """Take the next piece: how many there were, the incidents that are over, and whether there may be more."""
        accepted = labels.next_accepted(new.last_time)
        with self._state.store.reading() as reader:
            rows = reader.observations(new.row.id, after=new.last_time, until=accepted, statuses=TAKEN, limit=PIECE)
        if rows:
            new.block.run({new.place: stored_input(new, rows, labels)})
            new.last_time = rows[-1].time
        if accepted is not None and len(rows) < PIECE:
            new.block.fleet.accept(new.place)
            new.last_time = accepted
        closed = [incident for _, incident in new.block.take_closed()]
        return len(rows), closed, len(rows) == PIECE or accepted is not None

    def _raised(self, new: MonitoredSignal, since: int, until: int | None) -> int:
        with self._state.store.reading() as reader:
            rows = reader.incidents(signal_id=new.row.id, kind="alarm", since=since, until=until, limit=MOST_COUNTED)
        return sum(row.start >= since for row in rows)


def _since(incidents: Sequence[Incident], since: int) -> int:
    return sum(nanoseconds(one.start) >= since for one in incidents)

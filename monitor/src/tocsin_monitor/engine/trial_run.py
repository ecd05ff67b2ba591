"""Trials: detectors with other settings judge what is stored of one signal, or of many.

They only read the store: nothing of the engine changes.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tocsin.detection import Incident
from tocsin_monitor.engine.incidents import nanoseconds
from tocsin_monitor.engine.replay import (
    PIECE,
    TAKEN,
    IncidentLabels,
    incident_labels,
    latest,
    learn_reference,
    rebuilt_from,
    stored_input,
)
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.store import Store

MOST_COUNTED = 100_000

TrialStage = Literal["running", "done", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """How far a trial is. Incidents count that began since `since`, and up to `until`, as far as it came."""

    stage: TrialStage
    since: Time
    until: Annotated[Time | None, Shown("The newest observation that was judged.")] = None
    done: Annotated[int, Shown("How many observations were judged, including those learned before `since`.")] = 0
    total: int = 0
    incidents: Annotated[int, Shown("How many incidents these settings would have raised.")] = 0
    raised: Annotated[int, Shown("How many incidents there were.")] = 0
    complete: Annotated[bool, Shown("Whether the newest stored observation was reached.")] = False
    warm: Annotated[bool, Shown("Whether the detector was warm when it came to `since`.")] = False
    message: Annotated[str, Shown("Why it failed.")] = ""


class Limits:
    """How much a trial may still do, be it of one signal or of many: observations, seconds, until it is stopped."""

    def __init__(self, rows: int, seconds: float) -> None:
        self.rows, self._end = rows, time.monotonic() + seconds
        self.stop = threading.Event()

    @property
    def reached(self) -> bool:
        """Whether it may do no more."""
        return self.rows <= 0 or time.monotonic() >= self._end or self.stop.is_set()


class TrialRun:
    """A run for one signal. Any thread may read `progress`."""

    def __init__(self, store: Store, since: int, limits: Limits) -> None:
        self._store, self.limits = store, limits
        self.progress = TrialProgress("running", since)

    def run(self, new: MonitoredSignal) -> None:
        """Let a new detector judge what is stored, as far as the limits allow."""
        since = self.progress.since
        labels = self._begin(new)
        found = 0
        while not self.limits.reached:
            taken, closed, more = self._step(new, labels)
            self.limits.rows -= taken
            found += _since(closed, since)
            going_on = new.block.fleet.open_incident(new.place)
            self.progress = replace(
                self.progress, done=self.progress.done + taken, until=new.last_time, complete=not more,
                incidents=found + _since([] if going_on is None else [going_on], since),
            )  # fmt: skip
            if not more:
                break
        raised = self._raised(new, since, self.progress.until)
        stage: TrialStage = "cancelled" if self.limits.stop.is_set() else "done"
        self.progress = replace(self.progress, stage=stage, raised=raised)

    def fail(self, message: str) -> None:
        """It cannot go on."""
        self.progress = replace(self.progress, stage="failed", message=message)

    def _begin(self, new: MonitoredSignal) -> IncidentLabels:
        """Learn the reference, and find from when on the detector learns."""
        since = self.progress.since
        with self._store.reading() as reader:
            learn_reference(reader, new)
            before = reader.time_before_newest(new.row.id, rebuilt_from(new), TAKEN, before=since)
            new.last_time = latest(new.last_time, before)
            labels = incident_labels(reader, new, new.last_time)
            total = reader.count_observations(new.row.id, new.last_time, TAKEN)
            learned = total - reader.count_observations(new.row.id, since - 1, TAKEN)
        warm = new.reference is not None or learned >= new.block.fleet.warm_up
        self.progress = replace(self.progress, total=min(total, self.limits.rows), warm=warm)
        return labels

    def _step(self, new: MonitoredSignal, labels: IncidentLabels) -> tuple[int, list[Incident], bool]:
        """Take the next piece: how many there were, the incidents that are over, and whether there may be more."""
        accepted = labels.next_accepted(new.last_time)
        with self._store.reading() as reader:
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
        with self._store.reading() as reader:
            rows = reader.incidents(signal_id=new.row.id, kind="alarm", since=since, until=until, limit=MOST_COUNTED)
        return sum(row.start >= since for row in rows)


def _since(incidents: Sequence[Incident], since: int) -> int:
    return sum(nanoseconds(one.start) >= since for one in incidents)


WEEK = 7 * 86400 * 10**9
#: The most signals to try.
MOST_SIGNALS = 20

#: The signal with a new detector, and with a reference if it has one; or MonitorError.
Fresh = Callable[[MonitoredSignal], MonitoredSignal]


@dataclass(frozen=True, slots=True)
class SignalFinding:
    """How many incidents a signal would have had, and how many it had."""

    signal: str
    incidents: int
    raised: int


@dataclass(frozen=True, slots=True)
class ManyProgress:
    """How far a trial for many signals is."""

    stage: TrialStage
    #: How many signals it is about, and how many of them it tries at most.
    signals: int
    chosen: int
    #: Of the signals tried so far; those that change most come first.
    found: tuple[SignalFinding, ...] = ()
    #: Why some cannot be tried, by signal.
    failed: tuple[tuple[str, str], ...] = ()
    #: How many observations were judged.
    done: int = 0
    #: Whether all chosen signals were tried up to their newest observations.
    complete: bool = False
    #: Whether all detectors were warm before incidents counted.
    warm: bool = True
    message: str = ""


def sample(names: Sequence[str]) -> list[str]:
    """Some of these signals, the same every time: a second trial has to be comparable with the first."""
    ordered = sorted(names)
    return sorted(random.Random(0).sample(ordered, MOST_SIGNALS)) if len(ordered) > MOST_SIGNALS else ordered  # noqa: S311


class ManyRun:
    """A run for these signals, out of a larger number. Any thread may read `progress`."""

    def __init__(
        self, store: Store, chosen: Sequence[MonitoredSignal], signals: int, since: int | None, limits: Limits, by: str
    ) -> None:
        self._store, self._chosen, self._since, self.limits, self.by = store, chosen, since, limits, by
        self._current: TrialRun | None = None
        self._progress = ManyProgress("running", signals, len(chosen))

    @property
    def progress(self) -> ManyProgress:
        """How far it is."""
        current, progress = self._current, self._progress
        return progress if current is None else replace(progress, done=progress.done + current.progress.done)

    def run(self, fresh: Fresh) -> None:
        """Try one signal after the other, as far as the limits allow."""
        complete = True
        for signal in self._chosen:
            if self.limits.reached:
                complete = False
                break
            try:
                complete = self._try(signal, fresh(signal)) and complete
            except MonitorError as error:
                failed = (*self._progress.failed, (signal.name, str(error)))
                self._current, self._progress = None, replace(self._progress, failed=failed)
        stage: TrialStage = "cancelled" if self.limits.stop.is_set() else "done"
        self._progress = replace(self._progress, stage=stage, complete=complete)

    def _try(self, signal: MonitoredSignal, new: MonitoredSignal) -> bool:
        """Try one signal; false if the limits were reached before its newest observation."""
        since = (latest(signal.last_time, 0) or 0) - WEEK if self._since is None else self._since
        self._current = run = TrialRun(self._store, since, self.limits)
        run.run(new)
        came, before = run.progress, self._progress
        found = before.found
        if came.complete or (came.until is not None and came.until > since):  # else nothing can be said about it
            found = (*found, SignalFinding(signal.name, came.incidents, came.raised))
            found = tuple(sorted(found, key=lambda one: (-abs(one.incidents - one.raised), one.signal)))
        done, warm = before.done + came.done, before.warm and came.warm
        self._current, self._progress = None, replace(before, found=found, done=done, warm=warm)
        return came.complete

    def fail(self, message: str) -> None:
        """It cannot go on."""
        self._current, self._progress = None, replace(self._progress, stage="failed", message=message)

"""Trials: what other settings would have found in what is stored, for one signal or for many.

A trial runs on a thread of its own with detectors of its own. It only reads the store: nothing of the engine changes.
"""

import logging
import random
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Annotated, Any, TypeVar

from tocsin.detection import Incident
from tocsin_monitor.config import SignalTemplate
from tocsin_monitor.engine import detectability
from tocsin_monitor.engine.changes import DetectorReplacement
from tocsin_monitor.engine.detectability import (
    DetectableProgress,
    DetectableRun,
    TemplateDetectable,
    TemplateDetectableRun,
)
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import nanoseconds
from tocsin_monitor.engine.lifecycle import affected, changed, configured, templated
from tocsin_monitor.engine.replay import (
    PIECE,
    TAKEN,
    IncidentLabels,
    incident_labels,
    latest,
    learn_reference,
    rebuilt_from,
    take_piece,
)
from tocsin_monitor.engine.signal_changes import checked_template
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.engine.trial_limits import MOST_SECONDS, Limits, TrialStage
from tocsin_monitor.errors import MonitorError, RefusedError, UnknownError
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.store import SignalRow, Store

MOST_COUNTED = 100_000


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
            with self._store.reading() as reader:
                taken = take_piece(reader, new, labels, PIECE)
            self.limits.rows -= len(taken)
            found += _since(taken.closed, since)
            going_on = new.block.fleet.open_incident(new.place)
            self.progress = replace(
                self.progress, done=self.progress.done + len(taken), until=new.last_time, complete=not taken.more,
                incidents=found + _since([] if going_on is None else [going_on], since),
            )  # fmt: skip
            if not taken.more:
                break
        until = self.progress.until
        with self._store.reading() as reader:
            past = reader.incidents(signal_id=new.row.id, kind="alarm", since=since, until=until, limit=MOST_COUNTED)
        raised = sum(row.start >= since for row in past)
        stage: TrialStage = "cancelled" if self.limits.stop.is_set() else "done"
        self.progress = replace(self.progress, stage=stage, raised=raised)

    def fail(self, message: str) -> None:
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


def _since(incidents: Sequence[Incident], since: int) -> int:
    return sum(nanoseconds(one.start) >= since for one in incidents)


WEEK = 7 * 86400 * 10**9
#: The most signals to try.
MOST_SIGNALS = 20

#: The signal with a new detector, and with a reference if it has one; or MonitorError.
Fresh = Callable[[MonitoredSignal], MonitoredSignal]


@dataclass(frozen=True, slots=True)
class SignalFinding:
    """What a trial found for one signal."""

    signal: str
    incidents: Annotated[int, Shown("How many incidents it would have had.")]
    raised: Annotated[int, Shown("How many incidents it had.")]


@dataclass(frozen=True, slots=True)
class ManyProgress:
    """How far a trial for many signals is."""

    stage: TrialStage
    signals: Annotated[int, Shown("How many signals it is about.")]
    chosen: Annotated[int, Shown("How many of them it tries at most.")]
    found: Annotated[tuple[SignalFinding, ...], Shown("The signals tried; those that change most come first.")] = ()
    #: Why, by signal.
    failed: Annotated[tuple[tuple[str, str], ...], Shown("Signals that cannot have these settings.")] = ()
    done: Annotated[int, Shown("How many observations were judged.")] = 0
    complete: Annotated[bool, Shown("Whether all that were chosen were tried up to their newest observations.")] = False
    warm: Annotated[bool, Shown("Whether all detectors were warm before incidents counted.")] = True
    message: Annotated[str, Shown("Why it failed.")] = ""


def sample(names: Sequence[str], most: int) -> list[str]:
    """Some of these signals, the same every time: a second trial has to be comparable with the first."""
    ordered = sorted(names)
    return sorted(random.Random(0).sample(ordered, most)) if len(ordered) > most else ordered  # noqa: S311


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
        self._current, self._progress = None, replace(self._progress, stage="failed", message=message)


log = logging.getLogger("tocsin.engine")

# After this many observations, a trial ends and says how far it came.
MOST_ROWS = 200_000
# The most trials that run at once: the detectors of signals come first.
AT_ONCE = 2
# A trial that is ended still finishes its piece, so more threads may be running.
MOST_THREADS = 2 * AT_ONCE
# How many results of each kind are kept.
KEPT = 100

#: A template, and the patterns of names to which those are limited who may see the run.
TemplateKey = tuple[str, tuple[str, ...]]
AnyRun = TrialRun | ManyRun | DetectableRun | TemplateDetectableRun
Key = TypeVar("Key", str, int, TemplateKey)
Run = TypeVar("Run", TrialRun, ManyRun, DetectableRun, TemplateDetectableRun)


class Trials:
    """The newest trial of each signal, and the newest trials of many signals, by number."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._detectors = DetectorReplacement(state)
        self._lock = threading.Lock()
        self._of_signals: dict[str, TrialRun] = {}
        self._of_many: dict[int, ManyRun] = {}
        self._of_faults: dict[str, DetectableRun] = {}
        self._of_template_faults: dict[TemplateKey, TemplateDetectableRun] = {}
        self._numbers = count(1)
        self._threads = 0
        self._stopped = False

    def start(self, name: str, detector: dict[str, Any], since: int | None = None) -> TrialProgress:
        """Begin a trial; one of the same signal that runs is ended. RefusedError if the settings are wrong."""
        signal = self._state.signal(name)
        row = configured(self._state.settings, signal.row, detector)
        newest = latest(signal.last_time, 0) or 0
        run = TrialRun(self._state.store, newest - WEEK if since is None else since, _limits())
        new = self._detectors.fresh(row, signal.reference)  # refuses what there is no room for
        self._start(self._of_signals, name, run, partial(run.run, new))
        return run.progress

    def start_change(
        self, names: Collection[str], detector: dict[str, Any], by: str = "", since: int | None = None
    ) -> int:
        """Begin a trial of these settings for many signals, whose other settings stay; returns its number."""
        return self._start_many(names, lambda row: changed(self._state.settings, row, detector), by, since)

    def start_template(
        self, template: SignalTemplate, names: Collection[str], *, own: bool = True, by: str = "",
        since: int | None = None,
    ) -> int:  # fmt: skip
        """Begin a trial of a template for those of these signals to which it would apply; returns its number.

        Without `own`, signals are left out that have other settings than templates gave them.
        """
        template = checked_template(self._state.settings, template)
        settings = self._state.settings_with(template)
        allowed = set(names)
        rows = [row for row in self._state.rows() if row.name in allowed]
        found = affected(self._state.settings, settings, template.match, rows)
        chosen = (*found.signals, *found.own) if own else found.signals
        return self._start_many(chosen, lambda row: templated(settings, row), by, since)

    def progress(self, name: str) -> TrialProgress:
        """How far the newest trial of a signal is."""
        return self._of_signal(name).progress

    def cancel(self, name: str) -> None:
        """End it; what it found so far is kept."""
        self._of_signal(name).limits.stop.set()

    def progress_of_many(self, number: int, by: str) -> ManyProgress:
        """How far a trial of many signals is that this caller began."""
        return self._by_number(number, by).progress

    def cancel_many(self, number: int, by: str) -> None:
        """End it; what it found so far is kept."""
        self._by_number(number, by).limits.stop.set()

    def start_faults(self, name: str) -> DetectableProgress:
        """Begin to inject faults into what is stored of a signal; a run for the same signal is ended."""
        signal = self._state.signal(name)
        run = DetectableRun(self._state.store, _fault_limits())
        new = self._detectors.fresh(signal.row, signal.reference)
        self._start(self._of_faults, name, run, partial(run.run, new))
        return run.progress

    def progress_of_faults(self, name: str) -> DetectableProgress:
        """How far that is."""
        self._state.signal(name)
        with self._lock:
            run = self._of_faults.get(name)
        return DetectableProgress("none") if run is None else run.progress

    def cancel_faults(self, name: str) -> None:
        """End it."""
        self._state.signal(name)
        self._end(self._of_faults, name)

    def start_template_faults(self, key: TemplateKey, names: Collection[str]) -> TemplateDetectable:
        """Begin to inject faults into some of these signals of a template; a run with the same key is ended."""
        chosen, signals = self._chosen(names, detectability.MOST_SIGNALS)
        run = TemplateDetectableRun(self._state.store, chosen, signals, _fault_limits())

        def fresh(signal: MonitoredSignal) -> MonitoredSignal:
            return self._detectors.fresh(signal.row, signal.reference)

        self._start(self._of_template_faults, key, run, partial(run.run, fresh))
        return run.progress

    def progress_of_template_faults(self, key: TemplateKey) -> TemplateDetectable:
        """How far that is."""
        with self._lock:
            run = self._of_template_faults.get(key)
        return TemplateDetectable("none") if run is None else run.progress

    def cancel_template_faults(self, key: TemplateKey) -> None:
        """End it; what it found so far is kept."""
        self._end(self._of_template_faults, key)

    def stop(self) -> None:
        """End all: the monitor stops."""
        with self._lock:
            self._stopped = True
            for run in self._all():
                run.limits.stop.set()

    def _all(self) -> list[AnyRun]:
        runs = (self._of_signals, self._of_many, self._of_faults, self._of_template_faults)
        return [run for some in runs for run in some.values()]

    def _end(self, runs: Mapping[Key, Run], key: Key) -> None:
        with self._lock:
            run = runs.get(key)
        if run is not None:
            run.limits.stop.set()

    def _of_signal(self, name: str) -> TrialRun:
        with self._lock:
            run = self._of_signals.get(name)
        if run is None:
            raise UnknownError(f"there is no trial of {name!r}")
        return run

    def _by_number(self, number: int, by: str) -> ManyRun:
        with self._lock:
            run = self._of_many.get(number)
        if run is None or run.by != by:
            raise UnknownError(f"there is no trial {number} of yours")
        return run

    def _start_many(
        self, names: Collection[str], wanted: Callable[[SignalRow], SignalRow], by: str, since: int | None
    ) -> int:
        chosen, watched = self._chosen(names, MOST_SIGNALS)
        self._check_one(chosen, wanted)
        number, run = next(self._numbers), ManyRun(self._state.store, chosen, watched, since, _limits(), by)

        def fresh(signal: MonitoredSignal) -> MonitoredSignal:
            return self._detectors.fresh(wanted(signal.row), signal.reference)

        self._start(self._of_many, number, run, partial(run.run, fresh))
        return number

    def _chosen(self, names: Collection[str], most: int) -> tuple[list[MonitoredSignal], int]:
        """Some of these signals, and out of how many."""
        with self._state.lock:
            signals = self._state.signals
            watched = [name for name in names if name in signals]
            chosen = [signals[name] for name in sample(watched, most)]
        if not chosen:
            raise RefusedError("there is no signal to try this on")
        return chosen, len(watched)

    def _check_one(self, chosen: Sequence[MonitoredSignal], wanted: Callable[[SignalRow], SignalRow]) -> None:
        """Refuse at once what no signal can take, such as an unknown setting."""
        for signal in chosen:
            try:
                wanted(signal.row)
            except RefusedError as error:
                refusal = error
            else:
                return
        raise refusal

    def _start(self, runs: dict[Key, Run], key: Key, run: Run, work: Callable[[], None]) -> None:
        with self._lock:
            before = runs.get(key)
            others = [one for one in self._all() if one is not before]
            running = sum(one.progress.stage == "running" for one in others)
            if running >= AT_ONCE or self._threads >= MOST_THREADS:
                raise RefusedError(f"{AT_ONCE} trials run already: wait for one of them, or end it")
            if self._stopped:
                raise RefusedError("the monitor stops: no trial can begin")
            if before is not None:
                before.limits.stop.set()
                del runs[key]  # the new one is the newest
            for old in list(runs)[: len(runs) - KEPT + 1]:
                del runs[old]
            runs[key] = run
            self._threads += 1
        threading.Thread(target=self._guarded, args=(run, work), name="tocsin-trial", daemon=True).start()

    def _guarded(self, run: AnyRun, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            log.warning("a trial failed: %s", error)
            run.fail(str(error))
        finally:
            with self._lock:
                self._threads -= 1


def _limits() -> Limits:
    return Limits(MOST_ROWS, MOST_SECONDS)


def _fault_limits() -> Limits:
    return Limits(detectability.MOST_ROWS, MOST_SECONDS)

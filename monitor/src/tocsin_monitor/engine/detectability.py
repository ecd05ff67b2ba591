"""What the detector of a signal, or of a template's signals, can find: faults injected into copies of what is stored.

Like a trial, it has a thread and detectors of its own, and only reads the store.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tocsin.detection import Detector
from tocsin.evaluation import Detectability, Finding, detectable, median_and_worst
from tocsin_monitor.config import Settings
from tocsin_monitor.engine.block import Allocation
from tocsin_monitor.engine.replay import TAKEN, incident_labels, latest, learn_reference, stored_input
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.engine.trial_limits import MOST_SECONDS, Limits, TrialStage
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.store import SignalRow, Store

log = logging.getLogger("tocsin.engine")

#: The detector learns from so many of the newest observations, and faults are injected into the same.
MOST_ROWS = 10_000
#: Of a template, so many signals at most.
MOST_SIGNALS = 5

DetectableStage = Annotated[TrialStage | Literal["none"], Shown("none: there was no run since the monitor started.")]


@dataclass(frozen=True, slots=True)
class DetectableProgress:
    """How far the injection of faults is, and what was found."""

    stage: DetectableStage
    done: Annotated[int, Shown("At how many places of the past faults were injected.")] = 0
    total: Annotated[int, Shown("How many places there are; 0 until that is known.")] = 0
    since: Annotated[Time | None, Shown("The oldest observation that was used.")] = None
    until: Annotated[Time | None, Shown("The newest observation that was used.")] = None
    sentences: Annotated[tuple[str, ...], Shown("What is found how soon, one for each feature and kind of fault.")] = ()
    alarm_rate: str = ""
    findings: Annotated[tuple[Finding, ...], Shown("How often each fault was found at the signal's alarm rate.")] = ()
    message: Annotated[str, Shown("Why it failed.")] = ""


class _EndedError(Exception):
    """Somebody ended the run."""


class DetectableRun:
    """A run for one signal. Any thread may read `progress`, and what was `found` once that is done."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store, self.limits = store, limits
        self.progress = DetectableProgress("running")
        self.found: Detectability | None = None

    def run(self, new: MonitoredSignal) -> None:
        """Inject faults into what is stored, as far as the limits allow; `new` has a detector that has seen nothing."""
        with self._store.reading() as reader:
            learn_reference(reader, new)
            rows = reader.observations(
                new.row.id, after=new.last_time, statuses=TAKEN, limit=self.limits.rows, newest=True
            )
            labels = incident_labels(reader, new, latest(new.last_time, rows[0].time if rows else None))
        if not rows:
            raise RefusedError(f"{new.name!r} has no stored observations to inject faults into")
        given = stored_input(new, rows, labels)
        detector = Detector.from_state(new.block.fleet.signal_state(new.place))
        self.progress = replace(self.progress, since=rows[0].time, until=rows[-1].time)
        try:
            found = detectable(detector, given.values, given.times, seconds=MOST_SECONDS, progress=self._tell)
        except _EndedError:
            self.progress = replace(self.progress, stage="cancelled")
            return
        self.found = found = replace(found, unit=new.row.unit or "")
        self.progress = replace(
            self.progress, stage="done", sentences=tuple(found.sentences), alarm_rate=found.alarm_rate,
            findings=found.findings,
        )  # fmt: skip

    @classmethod
    def alone(cls, store: Store, row: SignalRow, settings: Settings) -> Detectability | str:
        """What is found how soon in a stored signal, without an engine; or why that is not known."""
        run = cls(store, Limits(MOST_ROWS, MOST_SECONDS))
        try:
            block = Allocation(settings.engine.max_signal_bytes, settings.most_detector_bytes).alone(
                row.features, row.settings
            )
            with store.reading() as reader:
                reference = next((one for one in reader.references() if one.signal == row.id), None)
            run.run(MonitoredSignal(row, block, block.take(None), reference))
        except (RefusedError, ValueError) as error:
            return str(error)
        assert run.found is not None  # noqa: S101 for the type checker: nobody ends it
        return run.found

    def _tell(self, done: int, total: int) -> None:
        if self.limits.stop.is_set():
            raise _EndedError
        self.progress = replace(self.progress, done=done, total=total)

    def fail(self, message: str) -> None:
        self.progress = replace(self.progress, stage="failed", message=message)


@dataclass(frozen=True, slots=True)
class TemplateDetectable:
    """How far the injection of faults into some of a template's signals is, and what was found."""

    stage: DetectableStage
    signals: Annotated[int, Shown("How many signals came from the template.")] = 0
    chosen: Annotated[int, Shown("How many of them it tries.")] = 0
    sentences: Annotated[
        tuple[str, ...], Shown("What the median of the signals tried finds, and the worst; of each kind of fault.")
    ] = ()
    #: How far each is, by name, in the order in which they are tried.
    tried: tuple[tuple[str, DetectableProgress], ...] = ()
    message: Annotated[str, Shown("Why it failed.")] = ""


class TemplateDetectableRun:
    """Runs for these signals out of a larger number, one after the other. Any thread may read `progress`."""

    def __init__(self, store: Store, chosen: Sequence[MonitoredSignal], signals: int, limits: Limits) -> None:
        self._store, self._chosen, self.limits = store, chosen, limits
        self._runs: tuple[tuple[str, DetectableRun], ...] = ()
        self._progress = TemplateDetectable("running", signals, len(chosen))

    @property
    def progress(self) -> TemplateDetectable:
        return replace(self._progress, tried=tuple((name, run.progress) for name, run in self._runs))

    def run(self, fresh: Callable[[MonitoredSignal], MonitoredSignal]) -> None:
        """Inject faults into each signal with the limits of a single one; what was found before an end is kept."""
        for signal in self._chosen:
            if self.limits.stop.is_set():
                break
            run = DetectableRun(self._store, self.limits)
            self._runs = (*self._runs, (signal.name, run))
            try:
                run.run(fresh(signal))
            except Exception as error:  # what is wrong with one signal is said of it, and the others go on
                log.warning("faults cannot be injected into %s: %s", signal.name, error)
                run.fail(str(error))
            found = {name: run.found for name, run in self._runs if run.found is not None}
            if found:
                self._progress = replace(self._progress, sentences=tuple(median_and_worst(found)))
        self._progress = replace(self._progress, stage="cancelled" if self.limits.stop.is_set() else "done")

    def fail(self, message: str) -> None:
        self._progress = replace(self._progress, stage="failed", message=message)

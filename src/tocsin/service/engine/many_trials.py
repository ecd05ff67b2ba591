"""A trial for many signals: a sample of them, one after the other."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tocsin.service.engine.replay import latest
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.engine.trial_run import Limits, TrialRun, TrialStage
from tocsin.service.errors import MonitorError
from tocsin.service.store import Store

WEEK = 7 * 86400 * 10**9
#: So many signals at most are tried.
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
    """A run for these signals, out of so many. Any thread may read `progress`."""

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

"""Trials: what other settings would have found in stored observations, for one signal or for many.

A trial runs on a thread of its own with detectors of its own.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from tocsin_monitor.config import SignalTemplate
from tocsin_monitor.engine.changes import DetectorReplacement
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.lifecycle import affected, changed, configured, templated
from tocsin_monitor.engine.replay import latest
from tocsin_monitor.engine.signal_changes import check_template
from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.engine.trial_run import WEEK, Limits, ManyProgress, ManyRun, TrialProgress, TrialRun, sample
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.store import SignalRow

log = logging.getLogger("tocsin.engine")

# After this many observations or seconds, a trial ends and says how far it came.
MOST_ROWS = 200_000
MOST_SECONDS = 120.0
# The most trials that run at once: the detectors of signals come first.
AT_ONCE = 2
# A trial that is ended still finishes its piece, so more threads may be running.
MOST_THREADS = 2 * AT_ONCE
# How many results of each kind are kept.
KEPT = 100

Key = TypeVar("Key", str, int)
Run = TypeVar("Run", TrialRun, ManyRun)


class Trials:
    """The newest trial of each signal, and the newest trials of many signals, by number."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._detectors = DetectorReplacement(state)
        self._lock = threading.Lock()
        self._of_signals: dict[str, TrialRun] = {}
        self._of_many: dict[int, ManyRun] = {}
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
        return self._start_many(names, lambda row: changed(row, detector), by, since)

    def start_template(
        self, template: SignalTemplate, names: Collection[str], *, own: bool = True, by: str = "",
        since: int | None = None,
    ) -> int:  # fmt: skip
        """Begin a trial of a template for those of these signals to which it would apply; returns its number.

        Without `own`, signals are left out that have other settings than templates gave them.
        """
        check_template(self._state.settings, template)
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

    def stop(self) -> None:
        """End all: the monitor stops."""
        with self._lock:
            self._stopped = True
            for run in self._all():
                run.limits.stop.set()

    def _all(self) -> list[TrialRun | ManyRun]:
        return [*self._of_signals.values(), *self._of_many.values()]

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
        with self._state.lock:
            signals = self._state.signals
            watched = [name for name in names if name in signals]
            chosen = [signals[name] for name in sample(watched)]
        if not chosen:
            raise RefusedError("there is no signal to try this on")
        self._check_one(chosen, wanted)
        number, run = next(self._numbers), ManyRun(self._state.store, chosen, len(watched), since, _limits(), by)

        def fresh(signal: MonitoredSignal) -> MonitoredSignal:
            return self._detectors.fresh(wanted(signal.row), signal.reference)

        self._start(self._of_many, number, run, partial(run.run, fresh))
        return number

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

    def _guarded(self, run: TrialRun | ManyRun, work: Callable[[], None]) -> None:
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

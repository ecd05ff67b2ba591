"""The engine's thread and its interface."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin_monitor.access_log import carried
from tocsin_monitor.config import Settings
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.imported_history import HistoryLearner
from tocsin_monitor.engine.inbox import Command, Inbox, Waiting, complete, fail, noted, recalled
from tocsin_monitor.engine.incident_changes import EventChanges, IncidentChanges, MaintenanceChanges
from tocsin_monitor.engine.ingest import Ingest
from tocsin_monitor.engine.lifecycle import remove_leaving
from tocsin_monitor.engine.loops import load_loops
from tocsin_monitor.engine.pending_imports import Progress
from tocsin_monitor.engine.recovery import StoppedError, recover
from tocsin_monitor.engine.signal_changes import SignalChanges, TemplateChanges
from tocsin_monitor.engine.signals import SignalStatus
from tocsin_monitor.engine.trials import Trials
from tocsin_monitor.engine.upkeep import SystemClock, Upkeep
from tocsin_monitor.errors import MonitorError, RefusedError, UnfitError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Outcome, Status
from tocsin_monitor.store import Refused, Store, StoreError, StoreWriter, encoding

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("tocsin.engine")
T = TypeVar("T")

CHORES_EVERY = 1.0
PRUNE_EVERY = 600.0
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0
# In seconds; together less than the minute that systemd waits for the monitor to stop.
TIME_TO_SAVE, TIME_TO_STOP, TIME_TO_CUT = 20.0, 35.0, 5.0
# A turn that takes longer, in seconds, waits for the store or learns a lot.
STALLED = 10.0


class Engine:
    """Accepts batches of observations and changes from any thread, and processes them one by one on its own thread.

    It returns an outcome only once that is stored. If the store fails, the engine discards its state and rebuilds it
    when the store is back. Waiting batches stay in the queue until then.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self._state = EngineState(settings, store, hub, metrics)
        self._inbox = Inbox(settings.engine.max_waiting, metrics)
        self._metrics = metrics
        self._thread = threading.Thread(target=self._run, name="tocsin-engine", daemon=True)
        self._next_chores = self._next_prune = 0.0
        self._turn_began: float | None = None
        self._loaded = False
        self.clock = SystemClock()
        self._ingest = Ingest(self._state)
        self._upkeep = Upkeep(self._state, self.clock)
        self._learner = HistoryLearner(self._state, self._inbox.ask)
        #: What people change.
        self.signals = SignalChanges(self._state, self._inbox.ask)
        self.incidents = IncidentChanges(self._state, self._inbox.ask)
        self.events = EventChanges(self._state, self._inbox.ask, self.incidents)
        self.maintenance = MaintenanceChanges(self._state, self._inbox.ask)
        self.templates = TemplateChanges(self._state, self._inbox.ask)
        #: What other settings would have found.
        self.trials = Trials(self._state)

    @property
    def ready(self) -> bool:
        """Whether it accepts observations."""
        return self._inbox.open

    @property
    def stalled(self) -> bool:
        """Whether a turn takes so long that the store seems to hang. Everything waits until it ends."""
        began = self._turn_began
        return began is not None and time.monotonic() - began > STALLED

    @property
    def progress(self) -> str:
        """What it is doing while it is not ready."""
        return "waiting for the store" if self.stalled else self._inbox.progress

    @property
    def waiting(self) -> int:
        """The number of observations that wait to be judged."""
        return self._inbox.waiting

    def start(self) -> None:
        """Start. First it rebuilds the signals from the store."""
        self._thread.start()
        self._learner.start()

    def stop(self) -> None:
        """Process what waits, store the detectors' states, and stop; stop without that if the store does not reply."""
        self.trials.stop()
        self._learner.stop(TIME_TO_CUT)
        self._inbox.stop()
        if self._thread.ident is not None:
            self._thread.join(TIME_TO_STOP)
            if self._thread.is_alive():
                log.error("the store does not reply: stopping without storing the rest")
                self._state.store.cut()
                self._thread.join(TIME_TO_CUT)
        self._state.pool.shutdown(wait=not self._thread.is_alive(), cancel_futures=True)

    def submit(self, batch: Batch) -> "Future[list[Outcome]]":
        """Submit a batch. The future gives the outcomes, in the order of the observations, once they are stored."""
        return self._inbox.submit(batch)

    def puts_together(self, name: str) -> tuple[float, str] | None:
        """The interval in seconds and the method by which a signal with this name aggregates; None if it does not."""
        known = self._state.signals.get(name) or self._state.quarantined.get(name)
        of = self._state.settings.template_for(name) if known is None else known.row
        return None if of is None or of.every is None else (of.every, of.aggregate)

    def storing(self, totals: Mapping[str, int]) -> AbstractContextManager[Callable[[str, int], None]]:
        """Let `imports` say how much of a file with so many observations of each signal is stored."""
        return self._state.pending_imports.storing(totals)

    def imports(self) -> list[Progress]:
        """The progress of imports, newest first."""
        return self._state.pending_imports.all_progress()

    def overview(self) -> list[SignalStatus]:
        return self._state.overview()

    def status(self, name: str) -> SignalStatus:
        return self._state.status(name)

    def expected_false(self, sees: Callable[[str], bool]) -> tuple[float, float]:
        return self._state.expected_false(sees)

    def write(self, change: Callable[[StoreWriter], T]) -> "Future[T]":
        """Make any other change of the store, in its own transaction."""

        def call() -> T:
            try:
                with self._state.store.transaction() as writer:
                    return change(writer)
            except UnfitError as error:
                raise RefusedError(str(error)) from error  # the transaction was rolled back, and nothing else changed

        return self._inbox.ask(carried(call))

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._inbox.end()

    def _work(self) -> None:
        wait = 0.0
        while not (self._inbox.stopping and not self.ready):
            try:
                if not self.ready:
                    self._recover(wait)
                if not self._turn():
                    self._upkeep.save_all_states(time.monotonic() + TIME_TO_SAVE)
                    return
                wait = 0.0
            except StoppedError:
                return
            except UnfitError as error:
                log.warning("the store rejected data, rebuilding all signals: %s", error)
                wait = 0.0
                self._suspend("rebuilding after data that the store rejected")
            except StoreError as error:
                log.error("the store failed, all signals will be rebuilt when it is back: %s", error)
                wait = min(LONGEST_WAIT, max(SHORTEST_WAIT, 2 * wait))
                self._suspend("waiting for the store")
            except Exception as error:
                log.exception("the engine failed, rebuilding all signals")
                wait = min(LONGEST_WAIT, max(SHORTEST_WAIT, 2 * wait))
                self._suspend(f"restarting after a failure: {error}")

    def _recover(self, wait: float) -> None:
        self._inbox.pause(wait)
        if not self._loaded:
            load_loops(self._state.settings.detector, self._starting)
            self._loaded = True
        recover(self._state, self._report)
        self._inbox.resume()
        self._state.hub.publish("status", {"ready": True})

    def _starting(self, progress: str) -> None:
        if self._inbox.stopping:
            raise StoppedError
        self._inbox.suspend(progress)

    def _report(self, done: int, total: int) -> None:
        if self._inbox.stopping:
            raise StoppedError
        self._inbox.accept_batches(f"rebuilding signals: {done} of {total}")
        # Batches for signals that are already rebuilt; the others keep waiting.
        if batches := self._inbox.next_batches(self._state.rebuilding):
            self._take(batches)

    def _suspend(self, progress: str) -> None:
        self._inbox.suspend(progress)
        self._state.hub.publish("status", {"ready": False})

    def _turn(self) -> bool:
        """Process what waits, and do the chores; false if it is time to stop."""
        if not self._inbox.wait(min(CHORES_EVERY, max(0.0, self._next_chores - time.monotonic()))):
            return False
        self._turn_began = time.monotonic()
        try:
            self._work_once()
        finally:
            self._turn_began = None
        return True

    def _work_once(self) -> None:
        for command in self._inbox.take_commands():
            self._run_command(command)
        if batches := self._inbox.next_batches():
            self._take(batches)
        self._upkeep.save_due_states()
        self._do_chores()

    def _run_command(self, command: Command[Any]) -> None:
        if not self._inbox.start(command):
            return
        try:
            command.done.set_result(command.call())
        except Exception as error:
            command.done.set_exception(error)
            if not isinstance(error, MonitorError) or isinstance(error, StoreError):
                raise  # it may be half done, so everything is rebuilt

    def _take(self, batches: list[Waiting]) -> None:
        try:
            with self._metrics.tick_seconds.time():
                now = time.time_ns()
                come = [recalled(self._state.store, one.batch, now) for one in batches]
                for waiting, batch in zip(batches, self._ingest.timed(come, now), strict=True):
                    waiting.batch = noted(batch, now)
                outcomes = self._ingest.take([waiting.piece for waiting in batches], now)
        except UnfitError as error:
            self._narrow_down(batches, error)
            raise
        except StoreError:
            raise  # the batches stay in the queue until the store is back
        except Exception as error:
            if len(batches) == 1:
                self._inbox.drop(batches)
                fail(batches[0].done, error)
            for waiting in batches:
                waiting.alone = True
            raise
        self._answer(batches, outcomes)

    def _narrow_down(self, batches: list[Waiting], error: UnfitError) -> None:
        """Find the observation that the store rejects, with fewer observations in each turn, and list it as refused."""
        for waiting in batches:
            waiting.alone = True
        if len(batches) > 1:
            return
        (waiting,) = batches
        taken = len(waiting.piece.observations)
        if taken > 1:
            waiting.most = taken // 2
            return
        ((one,), source, now) = (waiting.piece.observations, waiting.batch.source, time.time_ns())
        log.error("an observation of %r is refused, because the store rejects it: %s", one.signal, error)
        moment = now if one.time is None else one.time
        row = Refused(one.signal, moment, encoding.values_to_text(one.values), source, str(error), now)
        with self._state.store.transaction() as writer:
            writer.refuse([row])
        self._metrics.refused_observations.inc()
        self._answer(batches, [[Outcome(one.signal, moment, Status.REFUSED, message=str(error))]])

    def _answer(self, batches: list[Waiting], outcomes: Sequence[Sequence[Outcome | None]]) -> None:
        """Complete the batches that are done, and queue the rest of the others for another turn."""
        self._inbox.drop(batches)
        ended = time.monotonic()
        for waiting, results in zip(batches, outcomes, strict=True):
            everything = waiting.note(results)
            waiting.most = None if waiting.most is None else 2 * waiting.most
            if everything is None:
                self._inbox.put_back(waiting)
            else:
                self._metrics.ingest_seconds.observe(ended - waiting.since)
                complete(waiting.done, everything)

    def _do_chores(self) -> None:
        now = time.monotonic()
        if now < self._next_chores:
            return
        self._next_chores = now + CHORES_EVERY
        self._state.store.check_owned()  # even without writes, notice that another monitor may lead
        self._upkeep.save_due_states(least=1)
        self._upkeep.notice_jump()
        # What waits here is no missing data.
        absent = self._ingest.count_absent(time.time_ns() - round(self._inbox.longest_wait * 1e9))
        more = [absent, self._upkeep.notice_silence(), remove_leaving(self._state)]
        if any(more):
            self._next_chores = now  # after what waits
        if now >= self._next_prune:
            self._next_prune = now + (CHORES_EVERY if self._upkeep.prune() else PRUNE_EVERY)

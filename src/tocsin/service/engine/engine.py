"""The thread that scores, and what can be asked of it."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin.service.audit import carried
from tocsin.service.config import Settings
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.idempotency import noted, recalled
from tocsin.service.engine.imported_history import HistoryLearner
from tocsin.service.engine.inbox import Command, Inbox, Waiting, complete, fail
from tocsin.service.engine.incident_changes import IncidentChanges
from tocsin.service.engine.ingest import Ingest
from tocsin.service.engine.maintenance import MaintenanceChanges
from tocsin.service.engine.pending_imports import Progress
from tocsin.service.engine.recovery import StoppedError
from tocsin.service.engine.signal_changes import SignalChanges
from tocsin.service.engine.status import SignalStatus
from tocsin.service.engine.trials import Trials
from tocsin.service.engine.upkeep import SystemClock, Upkeep
from tocsin.service.errors import MonitorError, RefusedError, UnfitError
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.observations import Batch, Outcome, Status
from tocsin.service.store import Refused, Store, StoreError, StoreWriter, codec

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("tocsin.engine")
T = TypeVar("T")

CHORES_EVERY = 1.0
PRUNE_EVERY = 600.0
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0
# In seconds: the unit that stops the monitor waits for a minute.
TIME_TO_SAVE, TIME_TO_STOP, TIME_TO_CUT = 20.0, 35.0, 5.0
# A turn that takes longer is waiting for the store, or learns very much.
STALLED = 10.0


class Engine:
    """Takes batches of observations and changes from any thread, and does them one after the other on its own.

    An outcome is given only when it is durable. When the store fails, everything in memory is forgotten, and built anew
    from the store once it is back; batches that were waiting are taken then.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self._state = EngineState(settings, store, hub, metrics)
        self._inbox = Inbox(settings.engine.max_waiting, metrics)
        self._metrics = metrics
        self._thread = threading.Thread(target=self._run, name="tocsin-engine", daemon=True)
        self._next_chores = self._next_prune = 0.0
        self._turn_began: float | None = None
        self.clock = SystemClock()
        self._ingest = Ingest(self._state)
        self._upkeep = Upkeep(self._state, self.clock)
        self._learner = HistoryLearner(self._state, self._inbox.ask)
        #: What people change.
        self.signals = SignalChanges(self._state, self._inbox.ask)
        self.incidents = IncidentChanges(self._state, self._inbox.ask)
        self.maintenance = MaintenanceChanges(self._state, self._inbox.ask)
        #: What other settings would have found.
        self.trials = Trials(self._state)

    @property
    def ready(self) -> bool:
        """Whether it takes observations."""
        return self._inbox.open

    @property
    def stalled(self) -> bool:
        """Whether a turn takes so long that the store seems to hang: nothing is taken until it is over."""
        began = self._turn_began
        return began is not None and time.monotonic() - began > STALLED

    @property
    def progress(self) -> str:
        """What it does when it is not ready."""
        return "waiting for the store" if self.stalled else self._inbox.progress

    @property
    def waiting(self) -> int:
        """Observations that wait to be scored."""
        return self._inbox.waiting

    def start(self) -> None:
        """Begin: first comes what the store has."""
        self._thread.start()
        self._learner.start()

    def stop(self) -> None:
        """Take what is waiting, store what was learned, and end; without that if the store does not answer in time."""
        self.trials.stop()
        self._learner.stop(TIME_TO_CUT)
        self._inbox.stop()
        if self._thread.ident is not None:
            self._thread.join(TIME_TO_STOP)
            if self._thread.is_alive():
                log.error("the store does not answer: what was not stored by now is left")
                self._state.store.cut()
                self._thread.join(TIME_TO_CUT)
        self._state.pool.shutdown(wait=not self._thread.is_alive(), cancel_futures=True)

    def submit(self, batch: Batch) -> "Future[list[Outcome]]":
        """Have a batch taken; the outcomes come in the order of its observations, when they are durable."""
        return self._inbox.submit(batch)

    def puts_together(self, name: str) -> tuple[float, str] | None:
        """Every how many seconds a signal of this name is judged, and by what it puts together; None for neither."""
        known = self._state.signals.get(name) or self._state.aside.get(name)
        of = self._state.settings.template_for(name) if known is None else known.row
        return None if of is None or of.every is None else (of.every, of.aggregate)

    def imports(self) -> list[Progress]:
        """How far imported history is judged, the newest first."""
        return self._state.pending_imports.all_progress()

    def overview(self) -> list[SignalStatus]:
        """How all signals are doing."""
        return self._state.overview()

    def status(self, name: str) -> SignalStatus:
        """How one is doing."""
        return self._state.status(name)

    def write(self, change: Callable[[StoreWriter], T]) -> "Future[T]":
        """Any other change of the store, in a transaction of its own."""

        def call() -> T:
            try:
                with self._state.store.transaction() as writer:
                    return change(writer)
            except UnfitError as error:
                raise RefusedError(str(error)) from error  # nothing but the store was to change, and it has not

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
                log.warning("everything is read anew after what the store refuses: %s", error)
                wait = 0.0
                self._falter("reading anew what is stored")
            except StoreError as error:
                log.error("the store fails, everything is read anew when it is back: %s", error)
                wait = min(LONGEST_WAIT, max(SHORTEST_WAIT, 2 * wait))
                self._falter("waiting for the store")
            except Exception as error:
                log.exception("the engine failed, everything is read anew")
                wait = min(LONGEST_WAIT, max(SHORTEST_WAIT, 2 * wait))
                self._falter(f"starting again after a failure: {error}")

    def _recover(self, wait: float) -> None:
        self._inbox.pause(wait)
        self._state.recover(self._report)
        self._inbox.unlock()
        self._state.hub.publish("status", {"ready": True})

    def _report(self, done: int, total: int) -> None:
        if self._inbox.stopping:
            raise StoppedError
        self._inbox.leave_ajar(f"rebuilding signals: {done} of {total}")
        self._take_rebuilt()

    def _take_rebuilt(self) -> None:
        """Take what has come for signals that are rebuilt already; the rest goes on waiting."""
        batches = self._inbox.next_batches(self._state.rebuilding)
        if batches:
            self._take(batches)

    def _falter(self, progress: str) -> None:
        self._inbox.lock(progress)
        self._state.hub.publish("status", {"ready": False})

    def _turn(self) -> bool:
        """Do what waits, and the chores; false when it is time to stop."""
        if not self._inbox.wait(CHORES_EVERY):
            return False
        self._turn_began = time.monotonic()
        try:
            self._work_once()
        finally:
            self._turn_began = None
        return True

    def _work_once(self) -> None:
        for command in self._inbox.take_commands():
            self._obey(command)
        batches = self._inbox.next_batches()
        if batches:
            self._take(batches)
        self._upkeep.save_due_states()
        self._do_chores()

    def _obey(self, command: Command[Any]) -> None:
        if not self._inbox.start(command):
            return
        try:
            command.done.set_result(command.call())
        except Exception as error:
            command.done.set_exception(error)
            if not isinstance(error, MonitorError) or isinstance(error, StoreError):
                raise  # nobody knows what was done of it: everything is read anew

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
            raise  # they stay where they are, and are taken again when the store is back
        except Exception as error:
            if len(batches) == 1:
                self._inbox.drop(batches)
                fail(batches[0].done, error)
            for waiting in batches:
                waiting.alone = True
            raise
        self._settle(batches, outcomes)

    def _narrow_down(self, batches: list[Waiting], error: UnfitError) -> None:
        """Find out, with fewer observations at each turn, which one the store refuses for good; then go on without it.

        What could not be stored is listed, so that somebody can see it.
        """
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
        log.error("an observation of %r is refused for good: %s", one.signal, error)
        moment = now if one.time is None else one.time
        row = Refused(one.signal, moment, codec.values_to_text(one.values), source, str(error), now)
        with self._state.store.transaction() as writer:
            writer.refuse([row])
        self._metrics.refused_observations.inc()
        self._settle(batches, [[Outcome(one.signal, moment, Status.REFUSED, message=str(error))]])

    def _settle(self, batches: list[Waiting], outcomes: Sequence[Sequence[Outcome | None]]) -> None:
        """Let those know who wait, and have the rest wait for another turn."""
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
        self._upkeep.notice_jump()
        self._upkeep.notice_silence()
        if now >= self._next_prune:
            self._next_prune = now + (CHORES_EVERY if self._upkeep.prune() else PRUNE_EVERY)

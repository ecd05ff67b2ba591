"""Rebuilds the engine's state from the store: after a start, or after the store failed."""

import ctypes
import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field

from tocsin.detection import arrays_from_bytes
from tocsin_monitor.engine.block import ROWS, Allocation, SignalBlock
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import close_incident
from tocsin_monitor.engine.replay import replay
from tocsin_monitor.engine.signals import MonitoredSignal, QuarantinedSignal, save_states
from tocsin_monitor.errors import StoreError
from tocsin_monitor.store import (
    DamagedError,
    IncidentRow,
    MaintenanceRow,
    ReferenceRow,
    SignalRow,
    StateRow,
    Store,
    StoreReader,
    TemplateRow,
)

log = logging.getLogger("tocsin.engine")

# Seconds after which a recovery yields, rebuilt signals or not, so that its caller can do other work.
YIELD_EVERY = 0.1
# Seconds between two log messages about progress.
LOG_EVERY = 5.0


class StoppedError(Exception):
    """The engine is stopping, so the rest need not be rebuilt."""


@dataclass(frozen=True)
class StoredSignals:
    """What the store knows about signals, except observations and states."""

    signals: Sequence[SignalRow]
    templates: Sequence[TemplateRow]
    windows: list[MaintenanceRow]
    references: Mapping[int, ReferenceRow]
    #: The open incidents, by signal.
    incidents: Mapping[int, Sequence[IncidentRow]]
    #: The removed signals that are still stored.
    leaving: set[int]

    @classmethod
    def read(cls, reader: StoreReader) -> "StoredSignals":
        """Read it from the store."""
        incidents: dict[int, list[IncidentRow]] = {}
        for one in reader.open_incidents():
            incidents.setdefault(one.signal, []).append(one)
        references = {one.signal: one for one in reader.references()}
        rows = reader.signals(), reader.templates(), reader.maintenance()
        return cls(*rows, references, incidents, reader.leaving())

    def quarantine(self, row: SignalRow, error: Exception) -> QuarantinedSignal:
        """Quarantine a signal that cannot be rebuilt."""
        log.error("signal %r is quarantined, because its detector fails: %s", row.name, error)
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        return QuarantinedSignal(row, reason, self.references.get(row.id), tuple(self.incidents.get(row.id, ())))


@dataclass
class Rebuilt:
    """Signals that were rebuilt together, with their block; or one that could not be rebuilt."""

    block: SignalBlock | None = None
    signals: list[MonitoredSignal] = field(default_factory=list)
    quarantined: list[QuarantinedSignal] = field(default_factory=list)
    #: The number of observations judged again.
    replayed: int = 0
    #: Signals whose state could not be used, so that their detectors learned anew; with the time of that state.
    renewed: dict[MonitoredSignal, int | None] = field(default_factory=dict)


class Recovery:
    """Rebuilds all signals of a store, those with the same settings together, on all threads of a pool."""

    def __init__(self, store: Store, places: Allocation, known: StoredSignals) -> None:
        self._store, self._places, self._known = store, places, known
        self._stopping = threading.Event()

    def run(self, pool: Executor) -> Generator[Rebuilt, None, None]:
        """Yield signals as they are rebuilt, and an empty result now and then. Closing the generator stops it."""
        futures = [pool.submit(self.rebuild, piece) for piece in self._pieces()]
        left = set(futures)
        try:
            while left:
                done, left = wait(left, timeout=YIELD_EVERY, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
                if not done:
                    yield Rebuilt()
        finally:
            self._end(futures)

    def _end(self, futures: Sequence["Future[list[Rebuilt]]"]) -> None:
        self._stopping.set()
        for future in futures:
            if not future.cancel():
                future.exception()  # wait for it: nothing may use the store afterwards

    def _pieces(self) -> Iterator[list[SignalRow]]:
        """The signals in groups that can share a block."""
        groups: dict[str, list[SignalRow]] = {}
        for row in self._known.signals:
            groups.setdefault(json.dumps([row.features, row.settings], sort_keys=True), []).append(row)
        for rows in groups.values():
            yield from (rows[first : first + ROWS] for first in range(0, len(rows), ROWS))

    def rebuild(self, rows: Sequence[SignalRow]) -> list[Rebuilt]:
        """Rebuild signals in one block. If that fails, try each half, until only the ones that fail are quarantined.

        An unreachable store is not a reason to quarantine a signal.
        """
        try:
            return self._rebuild_together(rows)
        except StoppedError:
            raise
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, DamagedError):
                raise
            if len(rows) == 1:
                return [Rebuilt(quarantined=[self._known.quarantine(rows[0], error)])]
        half = len(rows) // 2
        return [*self.rebuild(rows[:half]), *self.rebuild(rows[half:])]

    def _rebuild_together(self, rows: Sequence[SignalRow]) -> list[Rebuilt]:
        self._check()
        if rows[0].damage is not None:
            raise DamagedError(rows[0].damage)
        block = self._places.make(rows[0].features, rows[0].settings, len(rows))
        try:
            some = rows[: block.rows]
            rebuilt = Rebuilt(block)
            with self._store.reading() as reader:
                self._place_all(reader, some, rebuilt)
                rebuilt.replayed = replay(reader, block, rebuilt.signals, rebuilt.renewed, self._check)
        except BaseException:
            self._places.drop(block)
            raise
        # A block may be too small for all signals if they are large.
        return [rebuilt, *(self.rebuild(rows[len(some) :]) if len(some) < len(rows) else ())]

    def _place_all(self, reader: StoreReader, rows: Sequence[SignalRow], rebuilt: Rebuilt) -> None:
        """Give signals their places and states: all at once, or one by one if a state cannot be used."""
        block = rebuilt.block
        if block is None:
            raise RuntimeError(f"no block for {rows[0].name!r}")
        stored = reader.states([row.id for row in rows])
        places: dict[int, int] = {}
        with suppress(ValueError):  # `_place` finds out which one it is
            states = [arrays_from_bytes(state.state) for state in stored.values()]
            if states:
                places = dict(zip(stored, block.take_all(states), strict=True))
        for row in rows:
            self._place(block, row, stored.get(row.id), places.get(row.id), rebuilt)

    def _place(
        self, block: SignalBlock, row: SignalRow, stored: StateRow | None, place: int | None, rebuilt: Rebuilt
    ) -> None:
        """Give a signal its place and state, unless it has them already.

        If another release wrote the state, the detector learns anew, together with the others of its block: after an
        update, that may be all signals.
        """
        reference = self._known.references.get(row.id)
        renewed = False
        if place is None:
            try:
                place = block.take(None if stored is None else arrays_from_bytes(stored.state))
            except ValueError as error:
                log.warning("the stored state of %r cannot be used, so its detector learns anew: %s", row.name, error)
                place, renewed = block.take(None), True
        last = None if stored is None else stored.time
        signal = MonitoredSignal(row, block, place, reference, last_time=None if renewed else last)
        if renewed:
            rebuilt.renewed[signal] = last
        for incident in self._known.incidents.get(row.id, ()):
            signal.remember(incident)
        rebuilt.signals.append(signal)

    def _check(self) -> None:
        if self._stopping.is_set():
            raise StoppedError


def recover(state: EngineState, progress: Callable[[int, int], None]) -> None:
    """Clear the state and rebuild it from the store. `progress` gets the number of signals rebuilt, and of all."""
    state.store.regain()  # before reading: nobody else writes from here on
    state.clear()
    with state.store.reading() as reader:
        known = StoredSignals.read(reader)
        state.events.recover(reader, time.time_ns())
    state.windows, state.leaving = known.windows, known.leaving
    state.use_templates(known.templates)  # before the first new signal
    state.rebuilding = {row.name for row in known.signals}
    total, replayed, logged = len(known.signals), 0, time.monotonic()
    with closing(Recovery(state.store, state.places, known).run(state.pool)) as recovery:
        for rebuilt in recovery:
            _add(state, rebuilt)
            replayed += rebuilt.replayed
            done = len(state.signals) + len(state.quarantined)
            progress(done, total)
            if time.monotonic() - logged > LOG_EVERY:
                log.info("%d of %d signals rebuilt", done, total)
                logged = time.monotonic()
    state.rebuilding.clear()
    give_back_freed_memory()
    with state.lock:
        state.signals = dict(sorted(state.signals.items(), key=lambda item: item[1].row.id))
    with state.store.reading() as reader:
        state.budgets.recover(reader, state.signals.values())
        state.pending_imports.recover(reader, state.signals.values())
    log.info("%d signals rebuilt, %d observations judged again", len(state.signals), replayed)


def _add(state: EngineState, rebuilt: Rebuilt) -> None:
    """Add rebuilt signals to the state, where others can see them."""
    if rebuilt.renewed:
        _store_renewed(state, list(rebuilt.renewed))
    now = time.time_ns()
    for signal in rebuilt.signals:
        signal.last_arrival = signal.zero_since = now  # nobody knows how long it was silent before
        signal.count()
    with state.lock:
        if rebuilt.block is not None:
            state.places.enter(rebuilt.block)
        state.signals.update((signal.name, signal) for signal in rebuilt.signals)
        state.quarantined.update((quarantined.name, quarantined) for quarantined in rebuilt.quarantined)
        state.rebuilding.difference_update(state.signals.keys() | state.quarantined.keys())
    state.metrics.replayed_observations.inc(rebuilt.replayed)
    state.count()


def _store_renewed(state: EngineState, renewed: Sequence[MonitoredSignal]) -> None:
    """Store the detectors that learned anew, and close the incidents that their predecessors had found."""
    now = time.time_ns()
    with state.store.transaction() as writer:
        for signal in renewed:
            row = None if signal.alarm_incident is None else writer.incident(signal.alarm_incident)
            if row is not None:
                close_incident(writer, state.events, signal, row, "relearned", now)
            signal.alarm_incident = None
            if signal.reference is None:
                writer.remove_reference(signal.row.id)
    save_states(state.store, renewed)


def give_back_freed_memory() -> None:
    """Let the system have the pages that nothing uses anymore.

    glibc keeps them for the process: after the states of all signals have been loaded, that is a sixth of its memory.
    Other C libraries have no such function.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

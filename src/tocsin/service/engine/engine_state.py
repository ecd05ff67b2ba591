"""What the engine owns: all signals in their places, and what else one turn leaves to the next."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

from tocsin.service.as_json import incident_json
from tocsin.service.config import Settings
from tocsin.service.engine.allocation import Allocation, Arrays
from tocsin.service.engine.block import SignalBlock, load_kernels
from tocsin.service.engine.budgets import Budgets
from tocsin.service.engine.detector_states import save_states
from tocsin.service.engine.incidents import close_incident, put_incident
from tocsin.service.engine.new_signals import row_of_first
from tocsin.service.engine.pending_imports import PendingImports
from tocsin.service.engine.recovery import Known, Rebuilt, Recovery
from tocsin.service.engine.signals import AsideSignal, MonitoredSignal
from tocsin.service.engine.stages import JudgedObservation, Received
from tocsin.service.engine.status import SignalStatus
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.observations import Observation
from tocsin.service.store import IncidentFacts, IncidentRow, MaintenanceRow, SignalRow, Store, StoreWriter

log = logging.getLogger("tocsin.engine")

# How often a start says how far it is, in seconds.
TELL_EVERY = 5.0


class EngineState:
    """All signals with their detectors, and the store that they can be rebuilt from at any moment.

    One thread changes it. Others may look at signals, which are as they were after the last commit: while `lock` is
    held, what can be seen of them does not change.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self.settings, self.store, self.hub, self.metrics = settings, store, hub, metrics
        self.sinks = [sink for _, sink in settings.sinks.each()]
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="tocsin-score")
        self.places = self._new_places()
        self.signals: dict[str, MonitoredSignal] = {}
        self.aside: dict[str, AsideSignal] = {}
        #: The names of stored signals that are not there yet, while they are being rebuilt.
        self.rebuilding: set[str] = set()
        self.windows: list[MaintenanceRow] = []
        self.budgets = Budgets(settings.budgets)
        #: What was imported and is not judged yet.
        self.pending_imports = PendingImports()
        self.lock = threading.Lock()
        #: The signals whose detectors' states are due to be stored.
        self.due: set[MonitoredSignal] = set()

    def _new_places(self) -> Allocation:
        return Allocation(self.settings.engine.max_signal_bytes, self.settings.most_detector_bytes)

    def recover(self, progress: Callable[[int, int], None]) -> None:
        """Forget everything and build it anew from the store."""
        with self.lock:
            self.signals, self.aside, self.places, self.due = {}, {}, self._new_places(), set()
        with self.store.reading() as reader:
            known = Known.read(reader)
        self.windows = known.windows
        self.rebuilding = {row.name for row in known.signals}
        total, replayed, told = len(known.signals), 0, time.monotonic()
        with closing(Recovery(self.store, self.places, known).run(self.pool)) as rebuilding:
            for rebuilt in rebuilding:
                self._settle(rebuilt)
                replayed += rebuilt.replayed
                there = len(self.signals) + len(self.aside)
                progress(there, total)
                if time.monotonic() - told > TELL_EVERY:
                    log.info("%d of %d signals rebuilt", there, total)
                    told = time.monotonic()
        self.rebuilding.clear()
        if not replayed:
            load_kernels(self.places.settings(("value",), self.settings.detector))
        with self.lock:
            self.signals = dict(sorted(self.signals.items(), key=lambda item: item[1].row.id))
        with self.store.reading() as reader:
            self.budgets.recover(reader, self.signals.values())
            self.pending_imports.recover(reader, self.signals.values())
        log.info("%d signals, %d observations scored again", len(self.signals), replayed)

    def _settle(self, rebuilt: Rebuilt) -> None:
        """Take over signals that were rebuilt: from now on they can be seen."""
        if rebuilt.renewed:
            self._renew(list(rebuilt.renewed))
        now = time.time_ns()
        for signal in rebuilt.signals:
            signal.last_arrival = now  # how long it was silent before nobody knows
            signal.count()
        with self.lock:
            if rebuilt.block is not None:
                self.places.enter(rebuilt.block)
            self.signals.update((signal.name, signal) for signal in rebuilt.signals)
            self.aside.update((aside.name, aside) for aside in rebuilt.aside)
            self.rebuilding.difference_update(self.signals.keys() | self.aside.keys())
        self.metrics.replayed_observations.inc(rebuilt.replayed)
        self.count()

    def _renew(self, renewed: Sequence[MonitoredSignal]) -> None:
        """Make it last that these detectors learned anew: the incidents that those before had found are over."""
        now = time.time_ns()
        with self.store.transaction() as writer:
            for signal in renewed:
                row = None if signal.alarm_incident is None else writer.incident(signal.alarm_incident)
                if row is not None:
                    close_incident(writer, self.sinks, signal, row, "relearned", now)
                signal.alarm_incident = None
                if signal.reference is None:
                    writer.remove_reference(signal.row.id)
        save_states(self.store, renewed)

    def put_alarm(self, writer: StoreWriter, signal: MonitoredSignal, facts: IncidentFacts, now: int) -> int:
        """Store an incident of alarms as it now is, and what people are to be told of it; returns its number."""

        def withholds(number: int) -> bool:
            return self.budgets.withholds(signal, number, facts, self.signals.keys())

        return put_incident(writer, self.sinks, signal, facts, now, withholds)

    def signal(self, name: str) -> MonitoredSignal:
        """The signal of this name."""
        if name in self.aside:
            raise RefusedError(self.aside[name].told)
        try:
            return self.signals[name]
        except KeyError:
            raise UnknownError(f"there is no signal {name!r}") from None

    def by_id(self, number: int) -> MonitoredSignal | AsideSignal:
        """The signal with this number in the store. It looks through all: only what people do asks for it."""
        everything: tuple[MonitoredSignal | AsideSignal, ...] = (*self.signals.values(), *self.aside.values())
        return next(signal for signal in everything if signal.row.id == number)

    def latest(self, now: int) -> int:
        """The latest time that an observation may have now."""
        return now + round(self.settings.engine.future_tolerance * 1e9)

    def status(self, name: str) -> SignalStatus:
        """How one signal is doing; from any thread."""
        with self.lock:
            return self.aside[name].status() if name in self.aside else self.signal(name).status()

    def appear(self, firsts: Iterable[Observation]) -> dict[str, str]:
        """Make the signals of which these are the first observations; returns why, for those that cannot be."""
        refused: dict[str, str] = {}
        rows: list[SignalRow] = []
        for first in firsts:
            try:
                if not self.settings.engine.auto_create:
                    raise RefusedError(f"there is no signal {first.signal!r}, and none is made by its observations")
                self._check_room(len(rows) + 1)
                rows.append(row_of_first(self.settings, first))
            except RefusedError as error:
                refused[first.signal] = str(error)
        return refused | self.add(rows)

    def _check_room(self, more: int) -> None:
        if len(self.signals) + len(self.aside) + more > self.settings.engine.max_signals:
            raise RefusedError(f"there are {self.settings.engine.max_signals} signals already, as max_signals allows")

    def add(self, rows: Sequence[SignalRow]) -> dict[str, str]:
        """Give new signals places, and store them; returns why, for those that cannot be."""
        refused: dict[str, str] = {}
        if not rows:
            return refused
        self._check_room(len(rows))
        stored = []
        with ExitStack() as stack:
            # What is stored has its place already: one for which there is no room must not be asked for at each start.
            placed = {}
            for row in rows:
                try:
                    placed[row.name] = stack.enter_context(self.placed(row))
                except RefusedError as error:
                    refused[row.name] = str(error)
            with self.store.transaction() as writer:
                stored = [
                    writer.add_signal(
                        name=row.name, features=row.features, settings=row.settings, silent_after=row.silent_after,
                        unit=row.unit, template=row.template, created=row.created, every=row.every,
                        aggregate=row.aggregate,
                    )
                    for row in rows
                    if row.name in placed
                ]  # fmt: skip
        now = time.time_ns()
        for row in stored:
            with self.lock:
                self.signals[row.name] = MonitoredSignal(row, *placed[row.name], last_arrival=now)
            self.hub.publish("signal", {"name": row.name, "change": "created"})
        self.count()
        return refused

    @contextmanager
    def placed(self, row: SignalRow, state: Arrays | None = None) -> Iterator[tuple[SignalBlock, int]]:
        """A place for a signal, which is given back where what is done meanwhile fails."""
        place = self.places.take(row.features, row.settings, state)
        try:
            yield place
        except BaseException:
            self.places.release(*place)
            raise

    def note(
        self,
        fresh: Mapping[MonitoredSignal, Sequence[JudgedObservation]],
        incidents: Iterable[tuple[MonitoredSignal, IncidentRow]],
        now: int,
    ) -> None:
        """Keep in mind what was just stored."""
        every = self.settings.engine.snapshot_every
        with self.lock:
            for signal, judged in fresh.items():
                for one in judged:
                    signal.note(one.received.time, one.verdict)
                signal.last_arrival, signal.live = now, True
                signal.count()
                signal.unsaved += len(judged)
                # Signals that began together do not all become due at once.
                if signal.unsaved >= every - signal.row.id % (every // 2 + 1):
                    self.due.add(signal)
            for signal, row in incidents:
                signal.remember(row)

    def note_parts(self, signals: Sequence[MonitoredSignal], now: int) -> None:
        """Keep in mind that these send, though nothing of them may be whole yet."""
        with self.lock:
            for signal in signals:
                signal.last_arrival = now

    def note_history(self, past: Sequence[Received]) -> None:
        """Keep in mind what was just stored of the past: what comes from now on is new only if it is after that."""
        if not past:
            return
        with self.lock:
            for one in past:
                if isinstance(one.signal, MonitoredSignal):
                    one.signal.note_past(one.time)
        self.pending_imports.note(past)
        self.count()

    def tell(self, incidents: Sequence[tuple[MonitoredSignal, IncidentRow]]) -> None:
        """Publish incidents that changed; only after they are stored."""
        for signal, row in incidents:
            self.hub.publish("incident", incident_json(row, signal.name))
            if row.kind == "silence":
                self.hub.publish("signal", {"name": signal.name, "change": "silent" if row.open else "sending"})
        if incidents:
            self.count()

    def forget(self, signal: MonitoredSignal | AsideSignal) -> None:
        """A signal is gone, with its place."""
        self.pending_imports.forget(signal.row.id)
        with self.lock:
            if isinstance(signal, AsideSignal):
                del self.aside[signal.name]
            else:
                del self.signals[signal.name]
                self.due.discard(signal)
                self.places.release(signal.block, signal.place)
        self.count()

    def overview(self) -> list[SignalStatus]:
        """How all signals are doing; from any thread."""
        with self.lock:
            watched = [signal.status() for signal in self.signals.values()]
            return [*watched, *(signal.status() for signal in self.aside.values())]

    def count(self) -> None:
        """Let the metrics know how many there are."""
        signals = self.signals.values()
        silent = sum(signal.silence_incident is not None for signal in signals)
        self.metrics.signals.set(len(signals))
        self.metrics.signals_silent.set(silent)
        self.metrics.signals_aside.set(len(self.aside))
        self.metrics.incidents_open.labels(kind="silence").set(silent)
        self.metrics.signals_learning.set(len(self.pending_imports))
        self.metrics.incidents_open.labels(kind="alarm").set(
            sum(signal.alarm_incident is not None for signal in signals)
        )

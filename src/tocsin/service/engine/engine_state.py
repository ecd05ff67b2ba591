"""What the engine owns: all signals in their places, and what else one turn leaves to the next."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tocsin.service.as_json import incident_json
from tocsin.service.config import Settings
from tocsin.service.engine.allocation import Allocation, Arrays
from tocsin.service.engine.block import SignalBlock
from tocsin.service.engine.budgets import Budgets
from tocsin.service.engine.incidents import put_incident
from tocsin.service.engine.pending_imports import PendingImports
from tocsin.service.engine.signals import AsideSignal, MonitoredSignal
from tocsin.service.engine.stages import JudgedObservation, Received
from tocsin.service.engine.status import SignalStatus
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.store import IncidentFacts, IncidentRow, MaintenanceRow, SignalRow, Store, StoreWriter


class EngineState:
    """All signals with their detectors, and the store that they can be rebuilt from at any moment.

    One thread changes it. Others may look at signals, which are as they were after the last commit: while `lock` is
    held, what can be seen of them does not change.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self.settings, self.store, self.hub, self.metrics = settings, store, hub, metrics
        self.sinks = [sink for _, sink in settings.sinks.each()]
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="tocsin-score")
        self.lock = threading.Lock()
        self.clear()
        #: The names of stored signals that are not there yet, while they are being rebuilt.
        self.rebuilding: set[str] = set()
        self.windows: list[MaintenanceRow] = []
        self.budgets = Budgets(settings.budgets)
        #: What was imported and is not judged yet.
        self.pending_imports = PendingImports()

    def clear(self) -> None:
        """Forget all signals."""
        engine = self.settings.engine
        with self.lock:
            self.signals: dict[str, MonitoredSignal] = {}
            self.aside: dict[str, AsideSignal] = {}
            #: The signals whose detectors' states are due to be stored.
            self.due: set[MonitoredSignal] = set()
            self.places = Allocation(engine.max_signal_bytes, self.settings.most_detector_bytes)

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

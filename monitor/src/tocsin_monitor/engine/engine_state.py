"""The engine's state between turns: all signals with their detectors, and what else it has to remember."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import attrgetter
from typing import get_args

from tocsin_monitor.as_json import incident_json
from tocsin_monitor.config import Settings, SignalTemplate
from tocsin_monitor.engine.block import Allocation, Arrays, SignalBlock
from tocsin_monitor.engine.events import Events
from tocsin_monitor.engine.incidents import Budgets, put_incident
from tocsin_monitor.engine.pending_imports import PendingImports
from tocsin_monitor.engine.signal_templates import in_force
from tocsin_monitor.engine.signals import STATES_AT_ONCE, AnySignal, MonitoredSignal, QuarantinedSignal, SignalStatus
from tocsin_monitor.engine.stages import JudgedObservation, Received
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.store import (
    IncidentFacts,
    IncidentRow,
    Kind,
    MaintenanceRow,
    SignalRow,
    Store,
    StoreWriter,
    TemplateRow,
)


class EngineState:
    """All signals with their detectors, and the store from which they can be rebuilt at any time.

    Only the engine's thread changes the state. Other threads may read it while they hold `lock`; they see signals as of
    the last commit.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self.store, self.hub, self.metrics = store, hub, metrics
        self._given = settings
        self.use_templates(())
        self.events = Events(settings.events, [sink for _, sink in settings.sinks.each()], settings.budgets)
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="tocsin-score")
        self.lock = threading.Lock()
        self.clear()
        #: The names of stored signals that are still being rebuilt.
        self.rebuilding: set[str] = set()
        self.windows: list[MaintenanceRow] = []
        self.budgets = Budgets(settings.budgets)
        #: Imported observations that are not judged yet.
        self.pending_imports = PendingImports()

    def clear(self) -> None:
        engine = self.settings.engine
        with self.lock:
            self.signals: dict[str, MonitoredSignal] = {}
            self.quarantined: dict[str, QuarantinedSignal] = {}
            #: The numbers of removed signals that are still stored, because sinks are to hear that incidents ended.
            self.leaving: set[int] = set()
            #: The signals whose detector states are due to be stored.
            self.due: set[MonitoredSignal] = set()
            self.places = Allocation(engine.max_signal_bytes, self.settings.most_detector_bytes)

    def use_templates(self, rows: Sequence[TemplateRow]) -> None:
        """Let these stored templates be in force, with those of the settings file."""
        #: The settings of the file with all templates in force, and how these are listed.
        self.settings, self.templates = in_force(self._given, rows)

    def use_settings(self, given: Settings) -> None:
        """Let other settings be in force, with the stored templates."""
        self._given = given
        self.use_templates([known.stored for known in self.templates if known.stored is not None])

    def settings_with(self, template: SignalTemplate) -> Settings:
        """What the settings would be if this template were stored."""
        stored = [known.template for known in self.templates if known.stored and known.problem is None]
        return self._given.with_templates([*stored, template])

    def rows(self) -> list[SignalRow]:
        """The rows of all signals; from any thread."""
        with self.lock:
            return [one.row for one in self.signals.values()] + [one.row for one in self.quarantined.values()]

    def put_alarm(self, writer: StoreWriter, signal: MonitoredSignal, facts: IncidentFacts, now: int) -> int:
        """Store an alarm incident as it is now, and queue messages about it; returns its number."""

        def withholds(number: int) -> bool:
            joins = self.events.joins(signal, facts)
            return self.budgets.withholds(writer, signal, number, facts, self.signals.keys(), joins=joins)

        return put_incident(writer, self.events, signal, facts, now, withholds)

    def signal(self, name: str) -> MonitoredSignal:
        if name in self.quarantined:
            raise RefusedError(self.quarantined[name].message)
        try:
            return self.signals[name]
        except KeyError:
            raise UnknownError(f"there is no signal {name!r}") from None

    def by_id(self, number: int) -> AnySignal:
        """The signal with this id. It searches all signals, which is fast enough for what people do."""
        everything: tuple[AnySignal, ...] = (
            *self.signals.values(),
            *self.quarantined.values(),
        )
        found = next((signal for signal in everything if signal.row.id == number), None)
        if found is None:
            raise UnknownError("the signal of this incident was removed")
        return found

    def latest(self, now: int) -> int:
        """The latest time that an observation may have now."""
        return now + round(self.settings.engine.future_tolerance * 1e9)

    def status(self, name: str) -> SignalStatus:
        """The status of one signal; from any thread."""
        with self.lock:
            return self.quarantined[name].status() if name in self.quarantined else self.signal(name).status()

    @contextmanager
    def placed(self, row: SignalRow, state: Arrays | None = None) -> Iterator[tuple[SignalBlock, int]]:
        """A place for a signal. It is freed again if the block raises."""
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
        arrived: int | None,
    ) -> None:
        """Remember what was just stored, and when it arrived, unless it was made here."""
        every = self.settings.engine.snapshot_every
        with self.lock:
            for signal, judged in fresh.items():
                for one in judged:
                    signal.note(one.received.time, one.verdict)
                if arrived is not None:
                    signal.last_arrival, signal.live = arrived, True
                signal.count()
                signal.unsaved += len(judged)
                # Spread by id, so that signals that started together do not become due together; but a few of one
                # block do, whose states are cheaper together.
                if signal.unsaved >= every - signal.row.id // STATES_AT_ONCE % (every // 2 + 1):
                    self.due.add(signal)
            for signal, row in incidents:
                signal.remember(row)

    def note_parts(self, signals: Sequence[MonitoredSignal], now: int) -> None:
        """Remember that these signals send, even if no aggregate of them is complete yet."""
        with self.lock:
            for signal in signals:
                signal.last_arrival = now

    def note_history(self, past: Sequence[Received]) -> None:
        """Remember the imported observations just stored. Later observations are new only if they are after these."""
        if not past:
            return
        with self.lock:
            for one in past:
                if isinstance(one.signal, MonitoredSignal):
                    one.signal.note_past(one.time)
        self.pending_imports.note(past)
        self.count()

    def tell(self, incidents: Sequence[tuple[MonitoredSignal, IncidentRow]]) -> None:
        """Publish changed incidents. Call this only after they are stored."""
        for signal, row in incidents:
            self.hub.publish("incident", incident_json(row, signal.name))
            if row.kind == "silence":
                self.hub.publish("signal", {"name": signal.name, "change": "silent" if row.open else "sending"})
        for number in sorted({row.event for _, row in incidents if row.event is not None}):
            self.hub.publish("event", {"id": number})
        if incidents:
            self.count()

    def forget(self, signal: AnySignal) -> None:
        """Forget a removed signal and free its place."""
        self.pending_imports.forget(signal.row.id)
        with self.lock:
            if isinstance(signal, QuarantinedSignal):
                del self.quarantined[signal.name]
            else:
                del self.signals[signal.name]
                self.due.discard(signal)
                self.places.release(signal.block, signal.place)
        self.count()

    def overview(self) -> list[SignalStatus]:
        """The status of all signals; from any thread."""
        with self.lock:
            watched = [signal.status() for signal in self.signals.values()]
            return [*watched, *(signal.status() for signal in self.quarantined.values())]

    def expected_false(self, sees: Callable[[str], bool]) -> tuple[float, float]:
        """The false incidents to expect per second, and how many of them budgets let through; from any thread."""
        with self.lock:
            rates = {
                one.name: one.block.fleet.alarm_rate / pace
                for one in self.signals.values()
                if one.silence_incident is None and sees(one.name) and (pace := one.block.fleet.interval or one.pace)
            }
        return sum(rates.values()), self.budgets.reported(rates)

    def count(self) -> None:
        """Update the metrics that count signals and incidents."""
        signals = self.signals.values()
        opened = {}
        for kind in get_args(Kind):  # several times as fast as a look at one signal after the other
            numbers = list(map(attrgetter(f"{kind}_incident"), signals))
            opened[kind] = len(numbers) - numbers.count(None)
            self.metrics.incidents_open.labels(kind=kind).set(opened[kind])
        self.metrics.signals.set(len(signals))
        self.metrics.signals_silent.set(opened["silence"])
        self.metrics.signals_quarantined.set(len(self.quarantined))
        self.metrics.signals_learning.set(len(self.pending_imports))

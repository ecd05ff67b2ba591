"""What the engine's thread works on: the signals in their places. Nothing here knows of threads or queues."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

from tocsin.service.as_json import incident_json
from tocsin.service.config import Settings
from tocsin.service.engine.allocation import Allocation, Arrays
from tocsin.service.engine.aside import Aside
from tocsin.service.engine.block import SignalBlock, load_kernels
from tocsin.service.engine.budgets import Budgets
from tocsin.service.engine.histories import Histories
from tocsin.service.engine.incidents import close_incident, put_incident, silence_facts
from tocsin.service.engine.new_signals import row_of_first
from tocsin.service.engine.recovery import Known, Rebuilt, Recovery
from tocsin.service.engine.requests import forget_requests
from tocsin.service.engine.rules import Arrival, in_maintenance
from tocsin.service.engine.states import save_states
from tocsin.service.engine.status import SignalStatus
from tocsin.service.engine.watched import Watched
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.observations import Observation
from tocsin.service.store import IncidentFacts, IncidentRow, MaintenanceRow, SignalRow, Store, StoreWriter

log = logging.getLogger("tocsin.engine")

# So many states are stored in one turn: more would let observations wait.
STATES_AT_ONCE = 8
# When the monitor stops, states with fewer observations behind are left: to take those again is quicker.
WORTH_SAVING = 100
# How often a start says how far it is, in seconds.
TELL_EVERY = 5.0


class Core:
    """All signals with their detectors, and the store that they can be rebuilt from at any moment.

    One thread changes it. Others may look at signals, which are as they were after the last commit: while `lock` is
    held, what can be seen of them does not change.
    """

    def __init__(self, settings: Settings, store: Store, hub: Hub, metrics: Metrics) -> None:
        self.settings, self.store, self.hub, self.metrics = settings, store, hub, metrics
        self.sinks = [sink for _, sink in settings.sinks.each()]
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="tocsin-score")
        self.places = self._new_places()
        self.signals: dict[str, Watched] = {}
        self.aside: dict[str, Aside] = {}
        #: The names of stored signals that are not there yet, while they are being rebuilt.
        self.rebuilding: set[str] = set()
        self.windows: list[MaintenanceRow] = []
        self.budgets = Budgets(settings.budgets)
        #: What was imported and is not judged yet.
        self.histories = Histories()
        self.lock = threading.Lock()
        self._due: set[Watched] = set()

    def _new_places(self) -> Allocation:
        return Allocation(self.settings.engine.max_signal_bytes, self.settings.most_detector_bytes)

    def recover(self, progress: Callable[[int, int], None]) -> None:
        """Forget everything and build it anew from the store."""
        with self.lock:
            self.signals, self.aside, self.places, self._due = {}, {}, self._new_places(), set()
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
            self.histories.recover(reader, self.signals.values())
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

    def _renew(self, renewed: Sequence[Watched]) -> None:
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

    def put_alarm(self, writer: StoreWriter, signal: Watched, facts: IncidentFacts, now: int) -> int:
        """Store an incident of alarms as it now is, and what people are to be told of it; returns its number."""

        def withholds(number: int) -> bool:
            return self.budgets.withholds(signal, number, facts, self.signals.keys())

        return put_incident(writer, self.sinks, signal, facts, now, withholds)

    def signal(self, name: str) -> Watched:
        """The signal of this name."""
        if name in self.aside:
            raise RefusedError(self.aside[name].told)
        try:
            return self.signals[name]
        except KeyError:
            raise UnknownError(f"there is no signal {name!r}") from None

    def by_id(self, number: int) -> Watched | Aside:
        """The signal with this number in the store. It looks through all: only what people do asks for it."""
        everything: tuple[Watched | Aside, ...] = (*self.signals.values(), *self.aside.values())
        return next(signal for signal in everything if signal.row.id == number)

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
                self.signals[row.name] = Watched(row, *placed[row.name], last_arrival=now)
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
        fresh: Mapping[Watched, Sequence[Arrival]],
        incidents: Iterable[tuple[Watched, IncidentRow]],
        now: int,
    ) -> None:
        """Keep in mind what was just stored."""
        every = self.settings.engine.snapshot_every
        with self.lock:
            for signal, arrivals in fresh.items():
                for arrival in arrivals:
                    if arrival.outcome is not None and arrival.outcome.judged is not None:
                        signal.note(arrival.time, arrival.outcome.judged)
                signal.last_arrival, signal.live = now, True
                signal.count()
                signal.unsaved += len(arrivals)
                # Signals that began together do not all become due at once.
                if signal.unsaved >= every - signal.row.id % (every // 2 + 1):
                    self._due.add(signal)
            for signal, row in incidents:
                signal.remember(row)

    def note_parts(self, signals: Sequence[Watched], now: int) -> None:
        """Keep in mind that these send, though nothing of them may be whole yet."""
        with self.lock:
            for signal in signals:
                signal.last_arrival = now

    def note_history(self, late: Sequence[Arrival]) -> None:
        """Keep in mind what was just stored of the past: what comes from now on is new only if it is after that."""
        past = [arrival for arrival in late if arrival.history]
        if not past:
            return
        with self.lock:
            for arrival in past:
                if isinstance(arrival.signal, Watched):
                    arrival.signal.note_past(arrival.time)
        self.histories.note(past)
        self.count()

    def tell(self, incidents: Sequence[tuple[Watched, IncidentRow]]) -> None:
        """Publish incidents that changed; only after they are stored."""
        for signal, row in incidents:
            self.hub.publish("incident", incident_json(row, signal.name))
            if row.kind == "silence":
                self.hub.publish("signal", {"name": signal.name, "change": "silent" if row.open else "sending"})
        if incidents:
            self.count()

    def forget(self, signal: Watched | Aside) -> None:
        """A signal is gone, with its place."""
        self.histories.forget(signal.row.id)
        with self.lock:
            if isinstance(signal, Aside):
                del self.aside[signal.name]
            else:
                del self.signals[signal.name]
                self._due.discard(signal)
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
        self.metrics.signals_learning.set(len(self.histories))
        self.metrics.incidents_open.labels(kind="alarm").set(
            sum(signal.alarm_incident is not None for signal in signals)
        )

    def save_due_states(self) -> None:
        """Store the states that are due, a few of them, those first that have waited longest."""
        if self._due:
            self._save(sorted(self._due, key=lambda signal: -signal.unsaved)[:STATES_AT_ONCE])

    def save_all_states(self, until: float) -> None:
        """Store as many states as can be until a moment of the monotonic clock, so that the next start is quick."""
        left = [signal for signal in self.signals.values() if signal.unsaved >= WORTH_SAVING]
        left.sort(key=lambda signal: -signal.unsaved)
        while left and time.monotonic() < until:
            self._save(left[:STATES_AT_ONCE])
            left = left[STATES_AT_ONCE:]

    def _save(self, signals: Sequence[Watched]) -> None:
        with self.metrics.snapshot_seconds.time():
            save_states(self.store, signals)
        self._due.difference_update(signals)

    def notice_silence(self) -> None:
        """Open an incident for each signal that has stopped sending."""
        now = time.time_ns()
        silent = [
            (signal, silence_facts(signal, signal.last_time, now))
            for signal in self.signals.values()
            if signal.last_time is not None
            and signal.is_overdue(now)
            and not in_maintenance(self.windows, signal.name, now)
        ]
        if not silent:
            return
        with self.store.transaction() as writer:
            numbers = [put_incident(writer, self.sinks, signal, facts, now) for signal, facts in silent]
            rows = [writer.incident(number) for number in numbers]
        changed = [(signal, row) for (signal, _), row in zip(silent, rows, strict=True) if row is not None]
        self.note({}, changed, now)
        self.tell(changed)

    def prune(self) -> bool:
        """Remove a piece of what is older than it is kept; true if there is more to remove."""
        now, storage = time.time_ns(), self.settings.storage
        before = now - round(storage.keep_observations * 1e9)
        more = self._save_held_back(before)
        with self.store.transaction() as writer:
            pruned = writer.prune(
                observations_before=before,
                incidents_before=now - round(storage.keep_incidents * 1e9),
                # What is to be judged yet is not removed before.
                keep_after={
                    number: time for number, time in writer.states_times().items() if number not in self.histories
                },
            )
            forget_requests(writer, now)
        return pruned.more or more

    def _save_held_back(self, before: int) -> bool:
        """Store states without which nothing of a signal could be removed, some of them; true if there are more.

        A signal that sends rarely, or no more, would otherwise keep all that is not in a state for ever.
        """
        old = [
            signal
            for signal in self.signals.values()
            if signal.unsaved and min(signal.row.created, signal.last_time or signal.row.created) < before
        ]
        if not old:
            return False
        with self.store.reading() as reader:
            times = reader.states_times()
        held = [signal for signal in old if (time := times.get(signal.row.id)) is None or time < before]
        if held:
            self._save(held[:STATES_AT_ONCE])
        return len(held) > STATES_AT_ONCE

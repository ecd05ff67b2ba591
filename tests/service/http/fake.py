"""A monitor without a detector: it keeps to what the engine promises, and every verdict is the same."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.service.helpers import sqlite_store
from tocsin.detection import Audit
from tocsin_monitor.as_json import incident_json
from tocsin_monitor.config import ServerSettings, Settings
from tocsin_monitor.engine import Point, SignalDetails, SignalStatus
from tocsin_monitor.engine.pending_imports import Progress
from tocsin_monitor.engine.upkeep import SystemClock
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.http.monitor_access import Figures
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Observation, Outcome, Status, StoredVerdict
from tocsin_monitor.rules import NO_RULES
from tocsin_monitor.schedules import Schedule
from tocsin_monitor.store import (
    IncidentFacts,
    IncidentRow,
    MaintenanceRow,
    ObservationRow,
    ReferenceRow,
    Store,
    StoreWriter,
)

NAN = math.nan


def at_once(call: Callable[[], Any]) -> "Future[Any]":
    future: Future[Any] = Future()
    try:
        future.set_result(call())
    except Exception as error:
        future.set_exception(error)
    return future


def judged(values: tuple[float, ...], alarm: bool = False) -> StoredVerdict:
    count = len(values)
    return StoredVerdict(
        values, (1.0,) * count, (-math.inf,) * count, (2.5,) * count, 0.001 if alarm else 0.25, 0.2, (0.25,) * count,
        alarm=alarm, warm=True,
    )  # fmt: skip


class FakeMaintenance:
    def __init__(self, store: Store) -> None:
        self.store = store

    def add(
        self, pattern: str, start: int, end: int, reason: str = "", by: str = "", recurs: Schedule | None = None
    ) -> "Future[MaintenanceRow]":
        def call() -> MaintenanceRow:
            with self.store.transaction() as writer:
                number = writer.add_maintenance(pattern, start, end, reason, by, recurs)
                return next(row for row in writer.maintenance() if row.id == number)

        return at_once(call)

    def remove(self, number: int) -> "Future[None]":
        def call() -> None:
            with self.store.transaction() as writer:
                writer.remove_maintenance(number)

        return at_once(call)


class FakeEngine:
    def __init__(self, store: Store, hub: Hub) -> None:
        self.store, self.hub = store, hub
        self.ready, self.stalled, self.progress, self.waiting = True, False, "ready", 0
        self.clock = SystemClock()
        self.statuses: dict[str, SignalStatus] = {}
        self.submitted: list[Batch] = []
        self.refusal: Exception | None = None
        self.held: list[Future[list[Outcome]]] | None = None
        # It is what changes signals and incidents, too.
        self.signals = self.incidents = self
        self.maintenance = FakeMaintenance(store)
        self.templates = SimpleNamespace(known=())

    def submit(self, batch: Batch) -> "Future[list[Outcome]]":
        if self.refusal is not None:
            raise self.refusal
        self.submitted.append(batch)
        if self.held is not None:
            self.held.append(Future())
            return self.held[-1]
        return at_once(lambda: self._take(batch))

    def _take(self, batch: Batch) -> list[Outcome]:
        with self.store.transaction() as writer:
            return [self._one(writer, observation) for observation in batch.observations]

    def _one(self, writer: StoreWriter, observation: Observation) -> Outcome:
        moment = time.time_ns() if observation.time is None else observation.time
        name, values = observation.signal, observation.values
        if name not in self.statuses:
            features = observation.features or tuple(f"feature {i}" for i in range(1, len(values) + 1))
            self._add(writer, name, features)
        status = self.statuses[name]
        if len(values) != len(status.features):
            message = f"{name!r} has {len(status.features)} features, got {len(values)} values"
            return Outcome(name, moment, Status.REFUSED, message=message)
        there = writer.observations_at([(status.id, moment)]).get((status.id, moment))
        if there is not None:
            return Outcome(name, moment, Status.DUPLICATE, there.judged)
        verdict = judged(values, alarm=values[0] > 100)
        writer.add_observations([ObservationRow(status.id, moment, Status.SCORED, verdict)])
        point = Point(moment, values[0], verdict.p, verdict.alarm)
        self.statuses[name] = replace(
            status, last_time=moment, last_arrival=moment, value=values, p=verdict.p, alarm=verdict.alarm,
            observations=status.observations + 1, recent=(*status.recent, point)[-60:],
        )  # fmt: skip
        return Outcome(name, moment, Status.SCORED, verdict)

    def _add(self, writer: StoreWriter, name: str, features: tuple[str, ...], unit: str | None = None) -> None:
        row = writer.add_signal(name, features, {}, unit=unit, created=time.time_ns())
        self.statuses[name] = SignalStatus(
            row.id, name, features, unit, None, 0.001, "incidents", None, None, (NAN,) * len(features), NAN, NAN, False,
            False, 0, 500, 1500, False, None, (), None,
        )  # fmt: skip

    def overview(self) -> list[SignalStatus]:
        return list(self.statuses.values())

    def imports(self) -> list[Progress]:
        return []

    def expected_false(self, sees: Callable[[str], bool]) -> tuple[float, float]:
        return 0.0, 0.0

    def status(self, name: str) -> SignalStatus:
        if name not in self.statuses:
            raise UnknownError(f"there is no signal {name!r}")
        return self.statuses[name]

    def create(
        self, name: str, *, features: Any, detector: Any, silent_after: Any, unit: Any, rules: Any
    ) -> "Future[Any]":
        def call() -> None:
            if detector and "nonsense" in detector:
                raise RefusedError("a detector has no setting nonsense")
            with self.store.transaction() as writer:
                self._add(writer, name, tuple(features or ["value"]), unit)

        return at_once(call)

    def configure(
        self, name: str, *, features: Any, detector: Any, silent_after: Any, unit: Any, rules: Any, keep: bool = False
    ) -> "Future[Any]":
        def call() -> None:
            self.statuses[name] = replace(self.status(name), unit=unit or self.statuses[name].unit)

        return at_once(call)

    def reset(self, name: str) -> "Future[Any]":
        return at_once(lambda: self.status(name))

    def remove(self, name: str) -> "Future[None]":
        def call() -> None:
            with self.store.transaction() as writer:
                writer.remove_signal(self.status(name).id)
            del self.statuses[name]

        return at_once(call)

    def state(self, name: str) -> "Future[bytes]":
        return at_once(lambda: self.status(name).name.encode())

    def restore(self, name: str, state: bytes) -> "Future[Any]":
        def call() -> SignalStatus:
            if state != name.encode():
                raise RefusedError("this is no state of a detector")
            return self.status(name)

        return at_once(call)

    def put_reference(self, name: str, start: int, end: int, by: str) -> "Future[ReferenceRow]":
        def call() -> ReferenceRow:
            status = self.status(name)
            if start > end:
                raise RefusedError("start must not be after end")
            reference = ReferenceRow(status.id, start, end, 7, time.time_ns(), by)
            self.statuses[name] = replace(status, reference=reference)
            return reference

        return at_once(call)

    def remove_reference(self, name: str) -> "Future[None]":
        def call() -> None:
            if self.status(name).reference is None:
                raise UnknownError(f"signal {name!r} has no reference")
            self.statuses[name] = replace(self.status(name), reference=None)

        return at_once(call)

    def details(self, name: str) -> "Future[SignalDetails]":
        def call() -> SignalDetails:
            audit = Audit(0.001, 0, 0, 1.0, 0.99, 0.0, 1.0)
            weights = [[0.25] * 4 for _ in self.status(name).features]
            return SignalDetails(weights, audit, "holds", {"alarm_rate": 0.001}, None, NO_RULES, 1000)

        return at_once(call)

    def open_incident(self, name: str) -> int:
        now = time.time_ns()
        with self.store.transaction() as writer:
            return writer.put_incident(
                IncidentFacts(
                    signal=self.statuses[name].id, kind="alarm", start=now, end=now, peak=now, alarms=1, duration=1,
                    p=0.001, severity=3.0, return_period=1000.0, view="movement",
                    explanation="b: has not moved for 32 observations",
                    direction="above", deviation=NAN, contributions={"a": 1.0, "b": 3.0}, alike="movement · b",
                    open=True, opened=now, closed=None, ended=None,
                )
            )  # fmt: skip

    def close_incident(self, number: int) -> None:
        self._change(number, open=False, closed=time.time_ns(), ended="returned").result()

    def _change(self, number: int, **fields: Any) -> "Future[dict[str, Any]]":
        def call() -> dict[str, Any]:
            with self.store.transaction() as writer:
                row = self._incident(writer, number)
                writer.change_incident(number, **{name: one for name, one in fields.items() if one is not ...})
                row = self._incident(writer, number)
            name = next(status.name for status in self.statuses.values() if status.id == row.signal)
            return incident_json(row, name)

        return at_once(call)

    def _incident(self, writer: StoreWriter, number: int) -> IncidentRow:
        row = writer.incident(number)
        if row is None:
            raise UnknownError(f"there is no incident {number}")
        return row

    def acknowledge(self, number: int, by: str | None, note: str | None = None) -> "Future[dict[str, Any]]":
        given = ... if note is None else note
        return self._change(number, acknowledged=time.time_ns() if by else None, acknowledged_by=by, note=given)

    def snooze(self, number: int, until: int | None) -> "Future[dict[str, Any]]":
        return self._change(number, snoozed_until=until)

    def label(
        self, number: int, label: str | None, exclude: bool | None, note: str | None, hold: bool
    ) -> "Future[dict[str, Any]]":
        given = ... if note is None else note
        return self._change(number, label=label, excluded=... if exclude is None else exclude, note=given, holds=hold)

    def write(self, change: Callable[[StoreWriter], Any]) -> "Future[Any]":
        def call() -> Any:
            with self.store.transaction() as writer:
                return change(writer)

        return at_once(call)


@dataclass
class FakeHealth:
    last_success: int | None = None
    last_error: str | None = None
    last_error_time: int | None = None
    received: int = 0
    skipped: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass
class FakeNeighbour:
    name: str
    health: FakeHealth = field(default_factory=FakeHealth)

    async def test(self) -> str | None:
        return None


class FakeMonitor:
    def __init__(self, folder: Path, **server: Any) -> None:
        self.settings = Settings(server=ServerSettings(**server))
        self.store = sqlite_store(folder)
        self.hub, self.metrics = Hub(pace=0.05), Metrics()
        self.engine = FakeEngine(self.store, self.hub)
        self.figures, self.read_turns = Figures(self.store), asyncio.Semaphore(2)
        self.sources = [FakeNeighbour("broker", FakeHealth(time.time_ns(), "it went away", time.time_ns()))]
        self.sinks = [FakeNeighbour("pager")]
        self.started = time.time_ns()

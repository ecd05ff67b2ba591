"""An engine to try things on, stores that fail, and what a detector by itself would say."""

import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.service.helpers import sqlite_store
from tocsin.detection import Detector, Verdict
from tocsin.detection.incidents.verdict import verdict_on
from tocsin_monitor.config import Settings
from tocsin_monitor.engine import Engine
from tocsin_monitor.errors import StoreError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Observation, Outcome, Status, StoredVerdict
from tocsin_monitor.store import IncidentRow, ObservationRow, OutboxRow, Store, StoreWriter

SECOND = 10**9
#: A whole second, not long ago: nothing of a test is in the future, and nothing is pruned.
START = 1_700_000_000 * SECOND
NAN = float("nan")
#: A detector that is quick to run, warm after few observations, and alarms often, however incidents are decided.
QUICK: dict[str, Any] = {
    "forecaster": "last-value", "views": ["error"], "promise": "observations", "alarm_rate": 0.1,
    "window": 250, "gap": 3,
}  # fmt: skip
#: Nobody waits that long but on a machine that is busy with something else.
DEADLINE = 120.0


def settings_of(**given: Any) -> Settings:
    """Settings of an engine with quick detectors; nothing is ever too old."""
    engine = {"threads": 2, **given.pop("engine", {})}
    storage = {"keep_observations": 1e10, "keep_incidents": 1e10}
    return Settings.model_validate({"detector": QUICK, "storage": storage, **given, "engine": engine})


class Rig:
    """An engine on a store in a folder, which can be ended in many ways and started again."""

    def __init__(self, folder: Path, settings: Settings | None = None, store: Store | None = None) -> None:
        self.folder, self.settings = folder, settings or settings_of()
        self.store = store or sqlite_store(folder)
        self.hub, self.metrics = Hub(), Metrics()
        self.events: list[tuple[str, dict[str, Any]]] = []
        publish = self.hub.publish

        def listen(kind: str, data: dict[str, Any]) -> str:
            self.events.append((kind, data))
            return publish(kind, data)

        self.hub.publish = listen  # type: ignore[method-assign]
        self.engine = Engine(self.settings, self.store, self.hub, self.metrics)
        self.state, self.upkeep = self.engine._state, self.engine._upkeep
        self.engine.start()
        until(lambda: self.engine.ready, 6 * DEADLINE)  # it may have to compile

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'tocsin.db'}"

    def take(self, *observations: Observation) -> list[Outcome]:
        """What becomes of one batch."""
        return self.engine.submit(Batch(observations)).result(DEADLINE)

    def feed(self, name: str, values: Sequence[Any], start: int = START, step: int = SECOND) -> list[Outcome]:
        """What becomes of these values, one batch."""
        return self.take(*(one(name, start + number * step, value) for number, value in enumerate(values)))

    def stored(self, name: str) -> list[ObservationRow]:
        with self.store.reading() as reader:
            row = reader.signal(name)
            return [] if row is None else reader.observations(row.id, limit=10**6)

    def incidents(self, **which: Any) -> list[IncidentRow]:
        """The incidents, the oldest first."""
        with self.store.reading() as reader:
            return reader.incidents(limit=10**6, **which)[::-1]

    def outbox(self, sink: str) -> list[OutboxRow]:
        with self.store.reading() as reader:
            firing = reader.outbox_due(sink, 2**62, 10**6)
        with self.store.transaction() as writer:
            writer.mark_delivered([row.id for row in firing], 1)
        with self.store.reading() as reader:
            return firing + [row for row in reader.outbox_due(sink, 2**62, 10**6) if row not in firing]

    @contextmanager
    def held(self) -> Iterator[None]:
        """The engine does nothing meanwhile, so that what comes waits together."""
        begun, over = threading.Event(), threading.Event()

        def hold(_: StoreWriter) -> None:
            begun.set()
            over.wait(DEADLINE)

        done = self.engine.write(hold)
        begun.wait(DEADLINE)
        try:
            yield
        finally:
            over.set()
            done.result(DEADLINE)

    def sample(self, name: str, **labels: str) -> float:
        """A number of the metrics."""
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def crash(self, settings: Settings | None = None) -> "Rig":
        """End without a word: nothing more is stored; then start again."""
        self.upkeep.save_all_states = lambda until: None  # type: ignore[method-assign]
        return self.restart(settings)

    def crash_leaving(self, signal: int, last: int, state: bytes) -> "Rig":
        """The same, but the stored state of a signal is this one: the engine cannot store another after it any more."""
        self.upkeep.save_all_states = lambda until: None  # type: ignore[method-assign]
        self.engine.stop()
        with self.store.transaction() as writer:
            writer.put_state(signal, last, 0, state)
        self.store.close()
        return Rig(self.folder, self.settings)

    def restart(self, settings: Settings | None = None) -> "Rig":
        self.close()
        return Rig(self.folder, settings or self.settings)

    def close(self) -> None:
        self.engine.stop()
        self.store.close()


@contextmanager
def rig(folder: Path, settings: Settings | None = None, **given: Any) -> Iterator[Rig]:
    made = Rig(folder, settings or settings_of(**given))
    try:
        yield made
    finally:
        made.close()


def one(name: str, moment: int | None, value: Any, features: tuple[str, ...] | None = None) -> Observation:
    return Observation(name, moment, tuple(value) if isinstance(value, (tuple, list)) else (float(value),), features)


def until(condition: Callable[[], Any], seconds: float = DEADLINE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def oracle(features: Sequence[str] = ("value",), **settings: Any) -> Detector:
    return Detector(list(features), **{**QUICK, **settings})


def expected(detector: Detector, moment: int, value: Any) -> StoredVerdict:
    """What a detector by itself says."""
    return _stored(detector.update(value, np.datetime64(moment, "ns")))


def expected_all(
    detector: Detector, values: Sequence[Any], start: int = START, step: int = SECOND
) -> list[StoredVerdict]:
    """The same of many observations, one a step."""
    return expected_at(detector, [start + number * step for number in range(len(values))], values)


def expected_at(detector: Detector, moments: Sequence[int], values: Sequence[Any]) -> list[StoredVerdict]:
    """The same of observations at these times: at once, which is much faster, unless gaps are to be filled."""
    if detector.fleet.interval is not None:
        return [expected(detector, moment, value) for moment, value in zip(moments, values, strict=True)]
    table = np.array(values, dtype=np.float64).reshape(len(moments), len(detector.features))
    found = detector.run(table, np.array(moments, dtype="datetime64[ns]")).kept_verdicts
    fleet, features = detector.fleet, detector.features
    return [_stored(verdict_on(found, at, 0, None, fleet.views, features)) for at in range(len(moments))]


def _stored(verdict: Verdict) -> StoredVerdict:
    def numbers(given: Any) -> tuple[float, ...]:
        return tuple(np.atleast_1d(given).tolist())

    return StoredVerdict(
        numbers(verdict.value), numbers(verdict.forecast), numbers(verdict.low), numbers(verdict.high), verdict.p,
        verdict.merged, numbers(verdict.feature_p), verdict.alarm, verdict.warm,
    )  # fmt: skip


def bits(judged: StoredVerdict | None) -> tuple[Any, ...]:
    """A verdict with its numbers bit by bit; every NaN is the same."""
    assert judged is not None
    groups = (judged.value, judged.forecast, judged.low, judged.high, judged.feature_p, (judged.p, judged.merged))
    packed = tuple(tuple(struct.pack("<d", NAN if one != one else one) for one in group) for group in groups)
    return packed, judged.alarm, judged.warm


def same(found: Sequence[StoredVerdict | None], wanted: Sequence[StoredVerdict | None]) -> bool:
    return [bits(one) for one in found] == [bits(one) for one in wanted]


def verdicts(outcomes: Sequence[Outcome]) -> list[StoredVerdict | None]:
    return [outcome.judged for outcome in outcomes]


def statuses(outcomes: Sequence[Outcome]) -> list[Status]:
    return [outcome.status for outcome in outcomes]


def noise(seed: int, count: int, features: int = 1) -> list[Any]:
    """Values with some that are missing and some that are strange."""
    source = np.random.default_rng(seed)
    values = np.round(source.normal(size=(count, features)), 3)
    values[source.random(count) < 0.03] += 8
    values[source.random(count) < 0.02] = np.nan
    return values[:, 0].tolist() if features == 1 else [tuple(row) for row in values.tolist()]


class FailingStore(Store):
    """A store that fails when it is told to: `plan` says of each transaction "before", "after" its commit, or ""."""

    plan: Callable[[], str] = staticmethod(lambda: "")
    reading_fails: Callable[[], bool] = staticmethod(lambda: False)
    failures = 0

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        how = self.plan()
        with super().transaction() as writer:
            yield writer
            if how == "before":
                self.failures += 1
                raise StoreError("the store failed before the commit")
        if how == "after":
            self.failures += 1
            raise StoreError("the store failed after the commit")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        if self.reading_fails():
            self.failures += 1
            raise StoreError("the store cannot be read")
        with super().reading() as reader:
            yield reader

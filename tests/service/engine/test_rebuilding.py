"""While signals are rebuilt, those that are can be seen, and take observations."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import DEADLINE, SECOND, START, Rig, noise, one, rig, settings_of, until
from tocsin_monitor.engine import Engine, recovery
from tocsin_monitor.errors import NotReadyError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Status
from tocsin_monitor.store import Store


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Signals with another forecaster than the first are not rebuilt before this is set."""
    event, replay = threading.Event(), recovery.replay

    def wait(reader: Any, block: Any, signals: Any, *others: Any) -> int:
        if signals[0].name == "slow":
            event.wait(DEADLINE)
        return replay(reader, block, signals, *others)

    monkeypatch.setattr(recovery, "replay", wait)
    yield event
    event.set()


def test_signals_are_ready_one_by_one(tmp_path: Path, held: threading.Event) -> None:
    with rig(tmp_path) as made:
        made.engine.signals.create("slow", detector={"gap": 7}).result(DEADLINE)
        for name in ("slow", "quick"):
            made.feed(name, noise(1, 50))
        made.close()
        store = Store.open(made.url)
        engine = Engine(made.settings, store, Hub(), Metrics())
        engine.start()
        try:
            until(lambda: [one.name for one in engine.overview()] == ["quick"])
            assert not engine.ready
            until(lambda: engine.progress == "rebuilding signals: 1 of 2")
            first = engine.submit(
                Batch((one("slow", START + 100 * SECOND, 1.0), one("quick", START + 100 * SECOND, 1.0)))
            )
            overtaking = engine.submit(Batch((one("quick", START + 101 * SECOND, 1.0),)))
            alone = engine.submit(Batch((one("new", START, 1.0),)))
            with pytest.raises(NotReadyError):
                engine.signals.reset("quick")
            held.set()
            assert alone.result(DEADLINE)[0].status is Status.SCORED
            assert [outcome.status for outcome in first.result(DEADLINE)] == [Status.SCORED] * 2
            assert overtaking.result(DEADLINE)[0].status is Status.SCORED
            until(lambda: engine.ready)
        finally:
            engine.stop()
            store.close()


def test_what_is_for_signals_that_are_there_does_not_wait_for_others(tmp_path: Path, held: threading.Event) -> None:
    with rig(tmp_path, settings_of(engine={"threads": 3})) as made:
        for number, name in enumerate(("slow", "quick", "third")):
            made.engine.signals.create(name, detector={"gap": 7 + number}).result(DEADLINE)
            made.feed(name, noise(1, 50))
        made.close()
        store = Store.open(made.url)
        engine = Engine(made.settings, store, Hub(), Metrics())
        engine.start()
        try:
            until(lambda: len(engine.overview()) == 2)
            taken = engine.submit(Batch((one("quick", START + 100 * SECOND, 1.0),)))
            until(lambda: engine.waiting == 0)
            assert taken.result(DEADLINE)[0].status is Status.SCORED
            assert not held.is_set()
        finally:
            held.set()
            engine.stop()
            store.close()


def test_a_start_can_be_stopped(tmp_path: Path, held: threading.Event) -> None:
    with rig(tmp_path) as made:
        made.feed("slow", noise(1, 50))
        made.close()
        store = Store.open(made.url)
        engine = Engine(made.settings, store, Hub(), Metrics())
        engine.start()
        threading.Timer(0.2, held.set).start()
        engine.stop()
        store.close()
        assert isinstance(made, Rig)

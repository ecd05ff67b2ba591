"""The queue: how much of it there may be, when it is open, and what becomes of it in the end."""

from pathlib import Path

import pytest

from tests.service.engine.helpers import DEADLINE, SECOND, START, Rig, noise, one, rig, settings_of, statuses, until
from tocsin_monitor.engine import Engine
from tocsin_monitor.errors import NotReadyError, OverloadedError
from tocsin_monitor.hub import Hub
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Cursor, Status
from tocsin_monitor.store import Store


def _batch(at: int, count: int) -> Batch:
    return Batch(tuple(one("a", START + (at + step) * SECOND, 1.0) for step in range(count)))


def test_no_more_wait_than_are_allowed_and_none_of_those_is_lost(tmp_path: Path) -> None:
    with rig(tmp_path, engine={"max_waiting": 10}) as made:
        with made.held():
            taken = [made.engine.submit(_batch(0, 6)), made.engine.submit(_batch(6, 4))]
            assert made.engine.waiting == 10
            assert made.sample("tocsin_waiting_observations") == 10
            for count in (1, 100):
                with pytest.raises(OverloadedError):
                    made.engine.submit(_batch(10, count))
            assert made.sample("tocsin_rejected_total", reason="overloaded") == 2
        assert [len(future.result(DEADLINE)) for future in taken] == [6, 4]
        until(lambda: made.engine.waiting == 0)
        # Nothing waits: then even a batch that is larger than the queue is taken.
        assert statuses(made.engine.submit(_batch(10, 25)).result(DEADLINE)) == [Status.SCORED] * 25
        assert len(made.stored("a")) == 35


def test_an_empty_batch_may_bring_a_cursor(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        assert made.engine.submit(Batch((), Cursor("file", "7"), "file")).result(DEADLINE) == []
        assert made.engine.submit(Batch(())).result(DEADLINE) == []
        with made.store.reading() as reader:
            assert reader.cursor("file") == "7"


def test_nothing_is_taken_before_it_is_ready_and_after_it_stopped(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    engine = Engine(settings_of(), store, Hub(), Metrics())
    with pytest.raises(NotReadyError, match="starting"):
        engine.submit(_batch(0, 1))
    engine.start()
    until(lambda: engine.ready)
    engine.stop()
    assert not engine.ready
    for ask in (lambda: engine.submit(_batch(0, 1)), lambda: engine.signals.reset("a")):
        with pytest.raises(NotReadyError, match="stopped"):
            ask()
    engine.stop()
    store.close()


def test_one_that_was_never_started_can_be_stopped(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    Engine(settings_of(), store, Hub(), Metrics()).stop()
    store.close()


def test_stop_takes_what_waits_and_stores_what_was_learned(tmp_path: Path) -> None:
    made = Rig(tmp_path)
    with made.held():
        futures = [
            made.engine.submit(Batch((one("a", START + at * SECOND, value),))) for at, value in enumerate(noise(1, 150))
        ]
        command = made.engine.maintenance.add("a", START, START + 1)
        made.engine._inbox.stop()
    made.engine.stop()
    assert [statuses(future.result(0)) for future in futures] == [[Status.SCORED]] * 150
    assert command.result(0).pattern == "a"
    with made.store.reading() as reader:
        stored = reader.states([1])[1]
    assert stored.time == START + 149 * SECOND
    made.store.close()


def test_what_is_asked_while_everything_is_read_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.take(*(one(f"signal {number}", START, 1.0) for number in range(20)))
    store = Store.open(made.url)
    engine = Engine(settings_of(), store, Hub(), Metrics())
    engine.start()
    engine.stop()
    assert engine.progress == "stopped"
    store.close()


def test_what_a_turn_takes_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin_monitor.engine.inbox.MOST_AT_ONCE", 10)
    with rig(tmp_path) as made:
        with made.held():
            futures = [made.engine.submit(_batch(at, count)) for at, count in ((0, 4), (4, 6), (10, 1), (11, 30))]
            assert [len(one.batch.observations) for one in made.engine._inbox.next_batches()] == [4, 6]
        assert [len(future.result(DEADLINE)) for future in futures] == [4, 6, 1, 30]
        assert made.sample("tocsin_tick_seconds_count") == 3
        assert made.sample("tocsin_ingest_seconds_count") == 4

"""The store fails, or the scoring: nothing is lost, nothing is doubled, and who waits is answered."""

import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    DEADLINE,
    SECOND,
    START,
    FailingStore,
    Rig,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    statuses,
    until,
    verdicts,
)
from tocsin_monitor.engine import engine as engine_module
from tocsin_monitor.engine.block import SignalBlock
from tocsin_monitor.errors import MonitorError, NotReadyError, StoreError
from tocsin_monitor.observations import Batch, Cursor, Observation, Outcome, Status

if TYPE_CHECKING:
    from concurrent.futures import Future


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(engine_module, "SHORTEST_WAIT", 0.002)
    monkeypatch.setattr(engine_module, "LONGEST_WAIT", 0.01)
    caplog.set_level(logging.CRITICAL)


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Rig]:
    store = FailingStore.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    made = Rig(tmp_path, settings_of(engine={"snapshot_every": 9}), store)
    yield made
    store.plan, store.reading_fails = (lambda: ""), (lambda: False)
    made.close()


def _submitted(made: Rig, *observations: Observation, cursor: Cursor | None = None) -> "Future[list[Outcome]]":
    """As a source does it, which comes again while the engine is not ready."""
    while True:
        try:
            return made.engine.submit(Batch(observations, cursor))
        except NotReadyError:
            until(lambda: made.engine.ready)


#: Enough for a few incidents.
STEPS = 180


@pytest.mark.slow
@pytest.mark.parametrize("how", [full("before"), full("after"), full("reading"), "all"])
def test_failures_at_random_lose_and_double_nothing(failing: Rig, how: str) -> None:
    source = random.Random(how)
    store: Any = failing.store
    if how != "reading":
        kinds = ("before", "after") if how == "all" else (how,)
        store.plan = lambda: source.choice(kinds) if source.random() < 0.3 else ""
    if how in ("reading", "all"):
        store.reading_fails = lambda: source.random() < 0.3
    values = {name: noise(number, STEPS) for number, name in enumerate("abc")}
    futures = []
    for at in range(0, STEPS, 6):
        moments = range(at, at + 6)
        batch = [one(name, START + now * SECOND, values[name][now]) for now in moments for name in "abc"]
        # What is sent again makes the store be read.
        again = [one("a", START, 99.0)] if at else []
        futures.append(_submitted(failing, *batch, *again, cursor=Cursor("file", str(at))))
        if source.random() < 0.7:
            futures[-1].result(DEADLINE)
    outcomes = [outcome for future in futures for outcome in future.result(DEADLINE)]
    assert store.failures > 5
    assert {outcome.status for outcome in outcomes} <= {Status.SCORED, Status.DUPLICATE}
    assert len(outcomes) == 3 * STEPS + STEPS // 6 - 1
    store.plan, store.reading_fails = (lambda: ""), (lambda: False)
    until(lambda: failing.engine.ready)
    for name in "abc":
        wanted = expected_all(oracle(), values[name])
        assert same([row.judged for row in failing.stored(name)], wanted)
        assert same([one.judged for one in outcomes if one.signal == name and one.time > START], wanted[1:])
    incidents = failing.incidents()
    assert len({(row.signal, row.start) for row in incidents}) == len(incidents) > 3
    with failing.store.reading() as reader:
        assert reader.cursor("file") == str(STEPS - 6)
    readiness = [data["ready"] for kind, data in failing.events if kind == "status"]
    assert readiness[0] is True
    assert False in readiness


def test_what_has_no_time_is_not_doubled_when_nobody_knows_of_a_commit(failing: Rig) -> None:
    failing.feed("a", [1.0])
    plans = iter(["after", "before", ""])
    failing.store.plan = lambda: next(plans, "")  # type: ignore[attr-defined]
    (outcome,) = failing.take(one("a", None, 2.0))
    assert outcome.status is Status.DUPLICATE
    assert outcome.judged.value == (2.0,)
    assert [row.judged.value for row in failing.stored("a")] == [(1.0,), (2.0,)]
    assert failing.stored("a")[-1].time == outcome.time


def test_ready_goes_and_comes_again_with_the_store(failing: Rig) -> None:
    failing.feed("a", [1.0])
    store: Any = failing.store
    store.plan = lambda: "before"
    store.reading_fails = lambda: True
    waiting = failing.engine.submit(Batch((one("a", START + SECOND, 2.0),)))
    until(lambda: not failing.engine.ready)
    until(lambda: "waiting for the store" in failing.engine.progress)
    for ask in (
        lambda: failing.engine.submit(Batch((one("a", None, 1.0),))),
        lambda: failing.engine.signals.reset("a"),
    ):
        with pytest.raises(NotReadyError):
            ask()
    assert not waiting.done()
    assert failing.engine.waiting == 1
    store.plan, store.reading_fails = (lambda: ""), (lambda: False)
    assert statuses(waiting.result(DEADLINE)) == [Status.SCORED]
    until(lambda: failing.engine.ready)  # it takes observations a little before it says so
    assert failing.engine.waiting == 0


def test_nothing_can_be_seen_of_what_is_not_stored(failing: Rig) -> None:
    failing.feed("a", noise(21, 400)[:-1])
    before = failing.engine.status("a")
    failing.events.clear()
    seen: list[Any] = []
    store: Any = failing.store

    def look() -> str:
        if len(seen) == 3:
            return ""
        seen.append(failing.engine.status("a"))
        return "before"

    store.plan = look
    (outcome,) = failing.take(one("a", START + 399 * SECOND, 90.0))
    assert outcome.judged.alarm
    assert [replace(status, last_arrival=0) for status in seen] == [replace(before, last_arrival=0)] * 3
    kinds = [kind for kind, _ in failing.events]
    assert kinds.count("incident") == 1
    assert len(kinds[: kinds.index("incident")]) >= 3
    assert set(kinds[: kinds.index("incident")]) == {"status"}
    assert failing.engine.status("a").incident == outcome.incident


def test_commands_that_wait_behind_one_that_fails_are_answered(failing: Rig) -> None:
    failing.feed("a", [1.0])
    store: Any = failing.store
    with failing.held():
        commands = [failing.engine.write(lambda writer: None) for _ in range(5)]
        commands[3].cancel()
        batch = failing.engine.submit(Batch((one("a", None, 1.0),)))
        plans = iter(["", "before"])
        store.plan = lambda: next(plans, "")
    errors = [commands[at].exception(DEADLINE) for at in (0, 1, 2, 4)]
    assert any(isinstance(error, StoreError) for error in errors)
    assert all(error is None or isinstance(error, MonitorError) for error in errors)
    assert statuses(batch.result(DEADLINE)) == [Status.SCORED]


def test_who_gives_up_waiting_disturbs_nobody(failing: Rig) -> None:
    with failing.held():
        futures = [failing.engine.submit(Batch((one("a", START + at * SECOND, at),))) for at in range(4)]
        assert futures[1].cancel()
        command = failing.engine.signals.reset("a")
        assert command.cancel()
    assert [future.result(DEADLINE)[0].status for future in (futures[0], *futures[2:])] == [Status.SCORED] * 3
    assert len(failing.stored("a")) == 4  # it was taken: to cancel only means not to wait


def test_a_detector_that_raises_is_set_aside_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SignalBlock.run

    def break_down(block: SignalBlock, stretches: Any) -> Any:
        judged = run(block, stretches)
        if any((stretch.values == 666.0).any() for stretch in stretches.values()):
            raise ZeroDivisionError("cannot be scored")
        return judged

    monkeypatch.setattr(SignalBlock, "run", break_down)
    values = noise(1, 60)
    with rig(tmp_path) as made:
        made.feed("a", values[:50])
        made.feed("b", values[:50])
        with made.held():
            good = [made.engine.submit(Batch((one("a", START + at * SECOND, values[at]),))) for at in range(50, 55)]
            bad = made.engine.submit(Batch((one("b", START + 50 * SECOND, 666.0),)))
            given_up = made.engine.submit(Batch((one("b", START + 51 * SECOND, 666.0),)))
            given_up.cancel()
            good += [made.engine.submit(Batch((one("a", START + at * SECOND, values[at]),))) for at in range(55, 60)]
        assert statuses(bad.result(DEADLINE)) == [Status.QUARANTINED]
        found = [outcome for future in good for outcome in future.result(DEADLINE)]
        wanted = expected_all(oracle(), values)
        assert same(verdicts(found), wanted[50:])
        assert set(statuses(found)) == {Status.SCORED}
        assert made.engine.ready
        assert not any(kind == "status" for kind, _ in made.events[1:]), "nothing else was rebuilt"
        assert made.engine.status("b").quarantined == "cannot be scored"
        made.engine.signals.reset("b").result(DEADLINE)
        assert same(verdicts(made.feed("b", values, START + 60 * SECOND)), wanted)


def test_a_store_that_never_comes_back_does_not_hold_up_the_end(failing: Rig) -> None:
    store: Any = failing.store
    failing.feed("a", [1.0])
    store.plan = lambda: "before"
    store.reading_fails = lambda: True
    waiting = failing.engine.submit(Batch((one("a", None, 1.0),)))
    until(lambda: not failing.engine.ready)
    failing.engine.stop()
    assert isinstance(waiting.exception(0), NotReadyError)
    assert failing.engine.waiting == 0
    assert failing.engine.progress == "stopped"


@pytest.mark.slow
def test_every_future_ends_whatever_happens_when_it_stops(tmp_path: Path) -> None:
    source = random.Random(5)
    for attempt in range(6):
        store: Any = FailingStore.open(f"sqlite:///{tmp_path / str(attempt)}.db")
        made = Rig(tmp_path, store=store)
        store.plan = lambda: source.choice(["", "", "before", "after"])
        futures: list[Future[Any]] = []
        over = threading.Event()

        def send(futures: list[Any] = futures, over: Any = over, made: Rig = made) -> None:
            while not over.is_set():
                try:
                    futures.append(made.engine.submit(Batch((one("a", None, 1.0),))))
                    futures.append(made.engine.write(lambda writer: None))
                except MonitorError:
                    over.wait(0.0005)

        senders = [threading.Thread(target=send) for _ in range(3)]
        for sender in senders:
            sender.start()
        over.wait(0.05 * attempt)
        made.engine.stop()
        over.set()
        for sender in senders:
            sender.join()
        for future in futures:
            assert future.done()
        store.close()

"""Others look while the engine works: what they see is always what some commit left."""

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import (
    DEADLINE,
    QUICK,
    SECOND,
    START,
    Rig,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    until,
    verdicts,
)
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.observations import Batch


@pytest.fixture(autouse=True)
def _restless() -> Iterator[None]:
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _meanwhile(look: Callable[[], None], work: Callable[[], None]) -> int:
    """Look again and again from two threads while the work is done; how often, or the first thing that went wrong."""
    over, errors, looks = threading.Event(), [], [0, 0]

    def loop(number: int) -> None:
        try:
            while not over.is_set():
                look()
                looks[number] += 1
        except BaseException as error:  # told in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=loop, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return sum(looks)


@pytest.mark.slow
def test_nobody_sees_half_a_turn(tmp_path: Path) -> None:
    steps, names = 40, [f"signal {number}" for number in range(30)]
    values = noise(1, 2 * steps)
    with rig(tmp_path, detector={**QUICK, "alarm_rate": 0.3}) as made:
        made.take(*(one(name, START - SECOND, 0.0) for name in names))

        def look() -> None:
            for status in made.engine.overview():
                if status.last_time is None:
                    continue
                at = (status.last_time - START) // SECOND
                # A turn brings two observations of each signal, at an even second and at the odd one after it.
                assert at % 2 == 1
                assert status.observations == at + 2
                assert status.recent[-1].time == status.last_time
                assert (status.recent[-1].p, status.recent[-1].alarm) == pytest.approx(
                    (status.p, status.alarm), nan_ok=True
                )
                assert len(status.recent) == min(60, at + 2)
                if status.alarm:
                    assert status.incident is not None
            made.engine.status(names[0])

        def work() -> None:
            for at in range(0, 2 * steps, 2):
                pair = (at, at + 1)
                made.take(*(one(name, START + now * SECOND, values[now]) for now in pair for name in names))

        assert _meanwhile(look, work) > 10


@pytest.mark.full
def test_signals_may_come_and_go_meanwhile(tmp_path: Path) -> None:
    with rig(tmp_path) as made:

        def look() -> None:
            for status in made.engine.overview():
                with contextlib.suppress(UnknownError):
                    assert made.engine.status(status.name).name == status.name
            assert made.engine.waiting >= 0

        def work() -> None:
            for turn in range(12):
                made.take(*(one(f"{turn}/{number}", START, 1.0) for number in range(20)))
                made.engine.signals.configure(f"{turn}/0", detector={"gap": 4 + turn % 3}).result(DEADLINE)
                made.engine.signals.reset(f"{turn}/1").result(DEADLINE)
                for number in range(2, 20):
                    made.engine.signals.remove(f"{turn}/{number}").result(DEADLINE)

        assert _meanwhile(look, work) > 10
        assert len(made.engine.overview()) == 24


@pytest.mark.slow
def test_many_senders_at_once(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        found: dict[int, list[Any]] = {}

        def send(number: int) -> None:
            values = noise(number, 40)
            futures = [
                made.engine.submit(Batch((one(f"signal {number}", START + at * SECOND, value),)))
                for at, value in enumerate(values)
            ]
            found[number] = [future.result(DEADLINE)[0] for future in futures]

        senders = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        for number in range(8):
            wanted = expected_all(oracle(), noise(number, 40))
            assert same(verdicts(found[number]), wanted)
            assert same([row.judged for row in made.stored(f"signal {number}")], wanted)


@pytest.mark.slow
@pytest.mark.full
def test_nothing_grows_with_time(tmp_path: Path) -> None:
    def sizes(made: Rig) -> list[int]:
        state = made.state
        watched = state.signal("a")
        block = watched.block
        return [
            len(state.signals), len(state.due), len(state.places.blocks), len(state.places._forecasters),
            len(watched.recent), len(watched.paces), len(block.fleet.log._closed), len(block._free),
        ]  # fmt: skip

    values = noise(2, 200)
    with rig(tmp_path, engine={"snapshot_every": 50}) as made:
        seen = []
        for turn in range(6):
            made.feed("a", values, START + turn * 200 * SECOND)
            made.feed("passing", values[:5], START, SECOND)
            made.engine.signals.configure("passing", detector={"gap": 4 + turn}).result(DEADLINE)
            made.engine.signals.remove("passing").result(DEADLINE)
            until(lambda: not made.state.due)  # what is due alone is stored with the next chores
            gc.collect()
            seen.append(sizes(made))
        assert seen[1:] == seen[1:2] * 5
        assert made.incidents() != []

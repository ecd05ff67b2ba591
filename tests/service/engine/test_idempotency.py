"""A request that is sent again under its key is taken once, also without times."""

import time
from pathlib import Path

from tests.service.engine.helpers import DEADLINE, SECOND, one, rig
from tocsin_monitor.engine.inbox import forget_requests
from tocsin_monitor.observations import Batch, Status


def test_the_same_key_is_taken_once_also_after_a_crash(tmp_path: Path) -> None:
    request = Batch((one("a", None, 1.0), one("b", None, 2.0), one("a", None, 3.0)), key="sender/1")
    with rig(tmp_path) as made:
        first = made.engine.submit(request).result(DEADLINE)
        assert [outcome.status for outcome in first] == [Status.SCORED] * 3
        again = made.engine.submit(request).result(DEADLINE)
        assert [outcome.status for outcome in again] == [Status.DUPLICATE] * 3
        assert [outcome.time for outcome in again] == [outcome.time for outcome in first]
        made = made.crash()
        try:
            after = made.engine.submit(request).result(DEADLINE)
            assert [outcome.time for outcome in after] == [outcome.time for outcome in first]
            assert len(made.stored("a")) == 2
            other = made.engine.submit(Batch(request.observations, key="sender/2")).result(DEADLINE)
            assert [outcome.status for outcome in other] == [Status.SCORED] * 3
            with made.store.transaction() as writer:
                forget_requests(writer, time.time_ns() + 3 * 86400 * SECOND)
            later = made.engine.submit(request).result(DEADLINE)
            assert [outcome.status for outcome in later] == [Status.SCORED] * 3
        finally:
            made.close()


def test_one_that_still_waits_is_not_taken_twice(tmp_path: Path) -> None:
    request = Batch((one("a", None, 1.0),), key="sender/1")
    with rig(tmp_path) as made:
        with made.held():
            both = [made.engine.submit(request) for _ in range(2)]
        assert both[0].result(DEADLINE) == both[1].result(DEADLINE)
        assert len(made.stored("a")) == 1

"""Clocks that were ahead are set right, and jumps of the system's clock are noticed."""

import logging
import time
from pathlib import Path

import pytest

from tests.service.engine.helpers import SECOND, START, expected_all, noise, one, oracle, rig, same, statuses, verdicts
from tocsin_monitor.engine.upkeep import SystemClock, Upkeep
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Status


@pytest.mark.slow
def test_a_signal_that_was_ahead_goes_on_after_one_request(tmp_path: Path) -> None:
    values = noise(7, 300)
    ahead = START + 10**6 * SECOND
    with rig(tmp_path) as made:
        made.feed("a", values[:200])
        made.feed("a", [50.0, 51.0], ahead)
        assert statuses(made.feed("a", values[200:201], START + 200 * SECOND)) == [Status.LATE]
        with pytest.raises(RefusedError, match="to must not be ahead of the clock"):
            made.engine.signals.set_clock("a", time.time_ns() + 10**12).result(20)
        status = made.engine.signals.set_clock("a", START + 199 * SECOND).result(20)
        assert status.last_time == START + 199 * SECOND
        with made.store.reading() as reader:
            listed = reader.refused(limit=10)
        # The newest first; what was late is taken out too, so that it can be sent again.
        assert [row.value for row in listed] == ["[51.0]", "[50.0]", f"[{values[200]}]"]
        assert {row.signal for row in listed} == {"a"}
        taken = made.feed("a", values[200:], START + 200 * SECOND)
        wanted = expected_all(oracle(), values)
        assert same(verdicts(taken), wanted[200:])
        made = made.crash()
        assert [row.time for row in made.stored("a")] == [START + number * SECOND for number in range(300)]
        assert made.engine.status("a").observations == 300
        made.close()


def test_a_signal_is_never_set_back_before_its_reference(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", noise(8, 400))
        made.engine.signals.put_reference("a", START, START + 399 * SECOND).result(20)
        with pytest.raises(RefusedError, match="remove it first"):
            made.engine.signals.set_clock("a", START + 300 * SECOND).result(20)


def test_jumps_of_the_clock_are_noticed_and_silence_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = {"wall": 1000.0, "steady": 0.0}
    clock = SystemClock(lambda: now["wall"], lambda: now["steady"])
    with rig(tmp_path) as made:
        made.take(one("a", START, 1.0), one("b", time.time_ns() + 200 * SECOND, 1.0))
        arrived = made.state.signals["a"].last_arrival
        assert arrived is not None
        now.update(wall=1001.0, steady=1.0)
        Upkeep(made.state, clock).notice_jump()
        assert clock.jumped is None
        now.update(wall=1001.0 - 3600, steady=2.0)
        with caplog.at_level(logging.WARNING, "tocsin.engine"):
            Upkeep(made.state, clock).notice_jump()
        assert "jumped by -3601.0 s" in caplog.text
        assert made.state.signals["a"].last_arrival == arrived - 3601 * SECOND
        assert made.sample("tocsin_clock_jumps_total") == 1
        assert made.sample("tocsin_signals_ahead") == 1

"""Counts: no data means zero."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.helpers import SECOND, Rig, one, rig, settings_of, until
from tocsin_monitor.config import Settings
from tocsin_monitor.engine import engine as engine_module
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Batch, Status

HOUR = 3600 * SECOND


def _settings(**template: Any) -> Settings:
    given = {"match": "count*", "no_data_is_zero": True, "detector": {"interval": "1min"}, **template}
    return settings_of(templates=[given])


def _rows(made: Rig, name: str = "count") -> list[tuple[int, float, Status]]:
    return [(row.time, row.judged.value[0], row.status) for row in made.stored(name)]


class Hours:
    """A clock that stands still, so that intervals are over when a test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time_ns()
        monkeypatch.setattr(engine_module.time, "time_ns", lambda: self.now)

    def pass_by(self, seconds: float, made: Rig) -> None:
        """Let time pass, and the chores with it."""
        with made.held():
            self.now += round(seconds * SECOND)
            made.engine._next_chores = 0.0
        until(lambda: made.engine._next_chores > 0)
        made.engine.write(lambda writer: None).result(9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hours:
    return Hours(monkeypatch)


def test_intervals_that_are_over_count_as_zero_once(tmp_path: Path, clock: Hours) -> None:
    made = Rig(tmp_path, _settings())
    now = time.time_ns()
    made.take(one("count", now, 7), one("other", now, 7))
    clock.pass_by(119, made)
    assert [value for _, value, _ in _rows(made)] == [7]  # the interval of the next is not over yet
    clock.pass_by(1 + 3 * 60, made)
    zeros = [(now + 60 * number * SECOND, 0.0, Status.SCORED) for number in range(1, 5)]
    assert _rows(made) == [(now, 7.0, Status.SCORED), *zeros]
    assert len(_rows(made, "other")) == 1
    # What comes later than that is late, and nothing counts twice.
    assert [outcome.status for outcome in made.take(one("count", now + 70 * SECOND, 3))] == [Status.LATE]
    assert [outcome.status for outcome in made.take(one("count", now + 60 * SECOND, 3))] == [Status.DUPLICATE]
    assert made.state.signals["count"].last_arrival < now + 2 * HOUR
    made = made.crash()
    before = _rows(made)
    clock.pass_by(0, made)
    assert _rows(made) == before
    made.close()


def test_nothing_is_zero_while_the_monitor_does_not_run_and_the_state_is_that_of_the_rows(
    tmp_path: Path, clock: Hours
) -> None:
    made = Rig(tmp_path, _settings())
    now = time.time_ns()
    made.take(*(one("count", now - 60 * SECOND * back, back % 3) for back in range(40, -1, -1)))
    clock.pass_by(5 * 60, made)
    made.close()
    clock.now += HOUR  # it does not run for an hour
    made = Rig(tmp_path, made.settings)
    clock.pass_by(3 * 60, made)
    times = np.array([moment for moment, _, _ in _rows(made)])
    apart = np.diff(times[41:]) // (60 * SECOND)
    assert set(apart.tolist()) == {1, int(apart.max())}
    assert 59 <= apart.max() <= 62
    live = made.engine.signals.state("count").result(9)
    made = made.crash()
    assert made.engine.signals.state("count").result(9) == live
    made.close()


def test_gaps_before_an_observation_are_zeros_too(tmp_path: Path, clock: Hours) -> None:
    with rig(tmp_path, _settings()) as made:
        now = time.time_ns()
        made.take(one("count", now, 1))
        with made.held():  # both wait together, so that the chores have no say
            clock.now += HOUR
            later = (one("count", now + 181 * SECOND, 2), one("count", now + 300 * SECOND, 4))
            waiting = made.engine.submit(Batch(later))
        assert [outcome.status for outcome in waiting.result(9)] == [Status.SCORED] * 2
        found = [((moment - now) // SECOND, value) for moment, value, _ in _rows(made)][:6]
        assert found == [(0, 1), (60, 0), (120, 0), (181, 2), (241, 0), (300, 4)]


def test_sums_are_closed_by_the_clock(tmp_path: Path, clock: Hours) -> None:
    with rig(tmp_path, _settings(every="1min", aggregate="sum", detector={})) as made:
        begin = time.time_ns() // (60 * SECOND) * 60 * SECOND
        made.take(one("count", begin - 60 * SECOND, 1), one("count", begin + 1, 2), one("count", begin + 2, 3))
        assert [row[:2] for row in _rows(made)] == [(begin - 60 * SECOND, 1)]
        clock.pass_by(4 * 60, made)
        assert [row[:2] for row in _rows(made)][:3] == [
            (begin - 60 * SECOND, 1), (begin, 5), (begin + 60 * SECOND, 0),
        ]  # fmt: skip
        count = len(_rows(made))
        clock.pass_by(4 * 60, made)  # nothing is left to be closed
        assert [value for _, value, _ in _rows(made)[count:]] == [0] * 4
        assert _rows(made)[-1][0] <= time.time_ns() - 120 * SECOND


def test_in_maintenance_and_for_history_no_data_is_missing(tmp_path: Path, clock: Hours) -> None:
    with rig(tmp_path, _settings()) as made:
        now = time.time_ns()
        made.take(one("count", now, 1))
        made.engine.maintenance.add("count", now + 90 * SECOND, now + 400 * SECOND).result(9)
        clock.pass_by(300, made)
        assert len(_rows(made)) == 1  # nothing is stored in maintenance
        clock.pass_by(300, made)
        assert [(moment - now) // SECOND for moment, _, _ in _rows(made)] == [0, 60, 420, 480, 540]
        assert all(row.kind != "silence" for row in made.incidents())


def test_it_excludes_silence_and_needs_an_interval(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="never silent"):
        _settings(silent_after="10min")
    for interval in (None, 0.5, "100ms"):
        with pytest.raises(ValueError, match="an interval of at least 1 s"):
            _settings(detector={"interval": interval})
    with rig(tmp_path, _settings()) as made:
        signals = made.engine.signals
        with pytest.raises(RefusedError, match=r"got both \(60 s\)"):
            signals.create("count", silent_after=60.0).result(9)
        with pytest.raises(RefusedError, match="an interval of at least 1 s"):
            signals.create("plain", rules={"no_data_is_zero": True}).result(9)
        signals.create("plain", detector={"interval": 60.0}, silent_after=60.0).result(9)
        with pytest.raises(RefusedError, match="got both"):
            signals.configure("plain", silent_after=60.0, rules={"no_data_is_zero": True}).result(9)
        signals.configure("plain", rules={"no_data_is_zero": True}).result(9)  # it wins over what was set before
        assert signals.details("plain").result(9).silent_after is None
        with pytest.raises(RefusedError, match="got both"):
            signals.configure("plain", silent_after=60.0).result(9)
        signals.configure("plain", silent_after=60.0, rules={"no_data_is_zero": None}).result(9)
        assert signals.details("plain").result(9).silent_after == 60.0

"""Signals that are judged every so often: parts are durable at once, and the whole is judged when it is whole."""

from pathlib import Path

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import QUICK, SECOND, START, noise, one, oracle, rig
from tocsin_monitor.config import Settings
from tocsin_monitor.observations import Batch, Status

MINUTE = 60 * SECOND
BEGIN = START // MINUTE * MINUTE
TOGETHER = {"mean": np.mean, "last": lambda one: one[-1], "max": np.max, "sum": np.sum, "count": len}


def minutely(aggregate: str = "mean") -> dict[str, object]:
    return {"templates": [{"match": "*", "every": "1min", "aggregate": aggregate}]}


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["mean", full("last"), full("max"), "sum", full("count")])
def test_seconds_are_judged_by_the_minute_however_they_come(tmp_path: Path, aggregate: str) -> None:
    values = np.nan_to_num(noise(1, 60 * 40))
    wholes = [TOGETHER[aggregate](minute) for minute in values.reshape(-1, 60)]
    detector = oracle(interval=60)
    expected = [detector.update(value, np.datetime64(BEGIN + n * MINUTE, "ns")).p for n, value in enumerate(wholes)]
    rng = np.random.default_rng(0)
    with rig(tmp_path, **minutely(aggregate)) as made:
        at = 0
        while at < len(values):
            some = int(rng.integers(1, 200))
            batch = [one("a", BEGIN + n * SECOND, values[n]) for n in range(at, min(at + some, len(values)))]
            rng.shuffle(batch)  # type: ignore[arg-type]
            assert {outcome.status for outcome in made.take(*batch)} == {Status.PART}
            at += some
            if at > 1000:
                made = made.crash() if at < 1200 else made
        rows = made.stored("a")
        assert [row.time for row in rows] == [BEGIN + n * MINUTE for n in range(39)]  # the last minute is not over
        assert [row.judged.value[0] for row in rows] == pytest.approx(wholes[:39])
        assert [row.judged.p for row in rows] == pytest.approx(expected[:39], nan_ok=True)
        assert made.engine.status("a").observations == 39
        made.close()


def test_what_is_sent_again_counts_once_and_what_is_late_is_kept(tmp_path: Path) -> None:
    with rig(tmp_path, **minutely("sum")) as made:
        batch = [one("a", BEGIN + n * SECOND, 1.0) for n in range(90)]
        made.take(*batch[:70])
        made = made.crash()
        again = [outcome.status for outcome in made.take(*batch)]
        assert again == [Status.DUPLICATE] * 70 + [Status.PART] * 20
        late = made.take(one("a", BEGIN + SECOND // 2, 5.0))
        assert [outcome.status for outcome in late] == [Status.LATE]
        made.take(one("a", BEGIN + 2 * MINUTE, 1.0))
        assert [row.judged.value for row in made.stored("a")] == [(60.0,), (30.0,)]
        made.close()


def test_history_of_such_a_signal_is_whole_already(tmp_path: Path) -> None:
    with rig(tmp_path, **minutely("count")) as made:
        past = tuple(one("a", BEGIN - n * MINUTE, 60.0) for n in range(1, 30))
        outcomes = made.engine.submit(Batch(past, history=True, whole=True)).result(60)
        assert {outcome.status for outcome in outcomes} == {Status.IMPORTED}
        made.take(*(one("a", BEGIN + n * SECOND, 1.0) for n in range(61)))
        assert [row.judged.value for row in made.stored("a")] == [(60.0,)] * 30


def test_every_is_the_interval() -> None:
    with pytest.raises(ValueError, match=r"every sets the interval: omit detector.interval, got '1h'"):
        Settings.model_validate(
            {"templates": [{"match": "*", "every": "1min", "detector": {"interval": "1h"}}]}
        )  # fmt: skip
    made = Settings.model_validate({"detector": {**QUICK, "interval": 1}, "templates": [{"match": "*", "every": 60}]})
    assert made.detector_for("a")["interval"] == 60

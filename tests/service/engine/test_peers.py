"""Signals of a template that should behave alike: compared an interval later, whoever is late, missing or restarted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.detection.test_peers import compared
from tests.service.engine.helpers import NAN, QUICK, SECOND, START, Rig, bits, one, rig, same, settings_of, statuses
from tocsin.detection import Detector
from tocsin_monitor.engine import peers
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Batch, Observation, Status

TEMPLATE: dict[str, Any] = {"match": "pump/*", "peers": True, "detector": {"interval": "1s"}}
GROUP = {"templates": [TEMPLATE]}
NAMES = [f"pump/{number}" for number in range(4)]


def table(seed: int, times: int) -> np.ndarray:
    """Four pumps under a common load, each with a level of its own."""
    rng = np.random.default_rng(seed)
    return 10 * rng.normal(size=(times, 1)) + rng.normal(size=(times, 4)) + 5 * np.arange(4)


def sent(values: np.ndarray, first: int = 0) -> list[Observation]:
    """What is not NaN, time by time; the pumps send at different moments of a second."""
    return [
        one(name, START + (first + time) * SECOND + number * SECOND // 5, row[number])
        for time, row in enumerate(values)
        for number, name in enumerate(NAMES)
        if row[number] == row[number]
    ]


def distances_of(made: Rig, name: str) -> list[float]:
    return [row.judged.value[1] for row in made.stored(name)]


@pytest.mark.slow
def test_each_comes_with_its_distance_in_the_interval_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the library has it, and judged as by a detector of both features."""
    monkeypatch.setattr(peers, "PEERS_LEARNED", 40)
    values = table(0, 90)
    wanted = compared(values[..., np.newaxis], learned=40)[..., 0]
    with rig(tmp_path, **GROUP) as made:
        outcomes = made.take(*sent(values))
        assert set(statuses(outcomes)) == {Status.SCORED}
        for number, name in enumerate(NAMES):
            found = distances_of(made, name)
            np.testing.assert_array_equal(found, [NAN, *wanted[:-1, number]])
            detector = Detector(["value", "value against peers"], **QUICK, interval=1)
            both = np.stack([values[:, number], found], axis=1)
            moments = np.array([row.time for row in made.stored(name)], dtype="datetime64[ns]")
            expected = [detector.update(row, time).p for row, time in zip(both, moments, strict=True)]
            np.testing.assert_array_equal([row.judged.p for row in made.stored(name)], expected)
        status = made.engine.status(NAMES[0])
        assert status.features == ("value", "value against peers")


@pytest.mark.slow
def test_crashes_and_the_size_of_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS_LEARNED", 40)
    values = table(1, 90)
    values[np.random.default_rng(2).random(values.shape) < 0.1] = np.nan
    everything = sent(values)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with rig(tmp_path / "a", **GROUP) as whole:
        whole.take(*everything)
        wanted = {name: [row.judged for row in whole.stored(name)] for name in NAMES}
        learned = {name: (peer._level, peer._first) for name in NAMES if (peer := whole.state.signals[name].peer)}
        assert all(len(first) == 40 for _, first in learned.values())
    rng = np.random.default_rng(3)
    made = Rig(tmp_path / "b", settings_of(**GROUP, engine={"snapshot_every": 30}))
    at = 0
    while at < len(everything):
        some = int(rng.integers(1, 60))
        made.take(*everything[at : at + some])
        if rng.random() < 0.4:
            made = made.crash()
            made.take(*everything[max(at - 5, 0) : at + some])  # and they are sent again
        at += some
    for name in NAMES:
        assert same([row.judged for row in made.stored(name)], wanted[name])
        peer = made.state.signals[name].peer
        assert peer is not None
        assert (peer._level, peer._first) == learned[name]
    made.close()


def test_late_and_missing_members_are_left_out(tmp_path: Path) -> None:
    with rig(tmp_path, **GROUP) as made:

        def at(second: int, **values: float) -> list[float]:
            """The distances that come with these."""
            given = [one(f"pump/{name}", START + second * SECOND, value) for name, value in values.items()]
            return [outcome.judged.value[1] for outcome in made.take(*given) if outcome.judged is not None]

        np.testing.assert_array_equal(at(0, a=1, b=2, c=4), [NAN] * 3)
        assert at(1, a=1, b=2) == [-1.0, 0.0]
        # `c` did not send a second ago, and with only two there is nothing to compare.
        np.testing.assert_array_equal(at(2, a=1, b=2, c=9, d=0), [NAN] * 4)
        assert at(3, a=1) == [-0.5]
        assert at(3, c=9) == [7.5]
        # `a` is ahead, and does not change what the others are compared with.
        np.testing.assert_array_equal(at(9, a=1), [NAN])
        assert at(3, b=7) == [0.5]
        made.take(one("pump/a", START + 8 * SECOND, 5.0))  # late: stored, and not compared
        assert [row.status for row in made.stored("pump/a")][-2:] == [Status.LATE, Status.SCORED]
        np.testing.assert_array_equal([row.judged.value[1] for row in made.stored("pump/a")][-2:], [NAN, NAN])


def test_others_and_maintenance_are_not_compared(tmp_path: Path) -> None:
    given = [TEMPLATE | {"valid_range": [0, 100]}, {"match": "*"}]
    with rig(tmp_path, templates=given) as made:
        for second in range(2):
            values = {"pump/a": 1, "pump/b": 2, "pump/c": 500 if second == 0 else 3, "fan": 7}
            outcomes = made.take(*(one(name, START + second * SECOND, value) for name, value in values.items()))
        assert [len(outcome.judged.value) for outcome in outcomes if outcome.judged] == [2, 2, 2, 1]
        np.testing.assert_array_equal(distances_of(made, "pump/c"), [NAN, NAN])  # a value out of range is none
        np.testing.assert_array_equal(distances_of(made, "pump/a"), [NAN, NAN])
        past = tuple(one("pump/a", START - n * SECOND, 1.0) for n in range(1, 5))
        imported = made.engine.submit(Batch(past, history=True)).result(60)
        assert set(statuses(imported)) == {Status.IMPORTED}


def test_several_features_and_aggregates_are_compared_as_they_are_sent(tmp_path: Path) -> None:
    several = {"match": "pump/*", "peers": True, "every": "1min", "features": ["flow [l/s]", "heat"]}
    with rig(tmp_path, templates=[several]) as made:
        minute = 60 * SECOND
        begin = START // minute * minute
        for second in range(0, 240, 20):
            made.take(*(one(name, begin + second * SECOND, (n**2, -n)) for n, name in enumerate(NAMES)))
        rows = made.stored(NAMES[3])
        assert [row.judged.value[:2] for row in rows] == [(9.0, -3.0)] * 3
        np.testing.assert_array_equal([row.judged.value[2:] for row in rows], [(NAN, NAN)] + [(6.5, -1.5)] * 2)
        assert made.engine.status(NAMES[0]).features[2:] == ("flow against peers [l/s]", "heat against peers")
        (refused,) = made.take(one(NAMES[0], begin + 300 * SECOND, (1.0, 2.0, 3.0, 4.0)))
        assert refused.status is Status.REFUSED
        made.engine.signals.configure(NAMES[0], features=["flow [l/s]", "heat"], unit="l/s").result(60)
        with pytest.raises(RefusedError, match="cannot change"):
            made.engine.signals.configure(NAMES[0], features=["flow [l/s]"]).result(60)
        made.engine.signals.configure(NAMES[0], detector={"alarm_rate": 0.2}).result(60)
        before = [bits(row.judged) for row in made.stored(NAMES[1])]
        made.engine.signals.remove(NAMES[0]).result(60)
        made = made.crash()
        assert [bits(row.judged) for row in made.stored(NAMES[1])] == before
        with made.store.reading() as reader:
            assert set(reader.cursors("peers/")) == {
                peers.cursor_of(made.state.signals[one].row.id) for one in NAMES[1:]
            }
        made.close()


def test_peers_need_an_interval() -> None:
    with pytest.raises(ValueError, match=r"peers needs an interval.*detector\.interval, or every"):
        settings_of(templates=[{"match": "*", "peers": True}])
    settings_of(detector={"interval": "1s"}, templates=[{"match": "*", "peers": True}])

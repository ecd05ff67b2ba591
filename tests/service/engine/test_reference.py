"""A signal is compared with a stretch that was good: as a detector by itself would be, and whatever happens."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import (
    NAN,
    QUICK,
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
from tocsin.detection import Detector
from tocsin_monitor.errors import RefusedError, StoreError, UnknownError
from tocsin_monitor.observations import Status

VALUES = noise(21, 400)
AFTER = START + 400 * SECOND
GOOD = range(50, 250)


def _mark(made: Rig, good: range = GOOD, name: str = "a") -> Any:
    return made.engine.signals.put_reference(name, _at(good[0]), _at(good[-1]), "ada").result(20)


def _at(number: int) -> int:
    return START + number * SECOND


def _detector(values: list[Any] = VALUES, good: range = GOOD, **settings: Any) -> Detector:
    """What the detector is to be: it has learned the stretch, and has seen what came after."""
    detector = oracle(**settings)
    detector.learn_reference([values[number] for number in good])
    expected_all(detector, values[good.stop :], _at(good.stop))
    return detector


def _rest(made: Rig, detector: Detector, start: int = AFTER) -> bool:
    """Whether the signal goes on as this detector does, also after a start without warning."""
    values = noise(22, 60)
    wanted = expected_all(detector, values, start)
    found = verdicts(made.feed("a", values[:30], start))
    made.__dict__.update(made.crash().__dict__)
    found += verdicts(made.feed("a", values[30:], start + 30 * SECOND))
    return same(found, wanted)


@pytest.mark.slow
def test_a_signal_is_compared_with_its_reference(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        reference = _mark(made)
        assert (reference.start, reference.end, reference.observations) == (_at(50), _at(249), 200)
        assert made.engine.status("a").reference == reference
        assert made.engine.status("a").observations == 350
        assert ("signal", {"name": "a", "change": "reference"}) in made.events
        assert _rest(made, _detector())
        assert made.engine.status("a").reference == reference


@pytest.mark.slow
def test_what_goes_on_for_long_becomes_its_past_but_never_its_reference(tmp_path: Path) -> None:
    louder = [*VALUES[:300], *(5 * value for value in noise(23, 700))]
    with rig(tmp_path) as made:
        made.feed("a", louder)
        made.feed("b", louder)
        _mark(made)
        compared, moved = (
            [outcome.judged for outcome in made.feed(name, [4.0, -4.0] * 20, _at(1000))] for name in ("a", "b")
        )
        assert max(one.severity for one in moved) < 1 < min(one.severity for one in compared)


@pytest.mark.slow
def test_what_was_not_good_of_it_is_left_out(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.engine.maintenance.add("a", _at(100), _at(110)).result(9)
        made.feed("a", VALUES)
        made.take(one("a", START + SECOND // 2 + 60 * SECOND, 100.0))  # late
        fault = next(row for row in made.incidents() if _at(120) < row.start < row.end < _at(240))
        made.engine.incidents.label(fault.id, "fault", exclude=True).result(9)
        _mark(made)
        gone = [
            NAN if 100 <= number < 110 or fault.start <= _at(number) <= fault.end else value
            for number, value in enumerate(VALUES)
        ]
        assert _rest(made, _detector(gone))


@pytest.mark.slow
def test_steps_that_are_left_out_of_it_are_missing(tmp_path: Path) -> None:
    settings = {**QUICK, "interval": 1.0}
    with rig(tmp_path, detector=settings) as made:
        there = [number for number in range(400) if not 80 <= number < 90]
        made.take(*(one("a", _at(number), VALUES[number]) for number in there))
        _mark(made)
        gone = [NAN if 80 <= number < 90 else value for number, value in enumerate(VALUES)]
        assert _rest(made, _detector(gone, interval=1.0))


@pytest.mark.slow
def test_another_reference_replaces_it(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        _mark(made)
        _mark(made, range(300))
        assert made.engine.status("a").reference.observations == 300
        assert _rest(made, _detector(good=range(300)))


@pytest.mark.slow
def test_without_it_the_signal_learns_from_its_past_again(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        with pytest.raises(UnknownError, match="'a' has no reference"):
            made.engine.signals.remove_reference("a").result(9)
        _mark(made)
        made.engine.signals.remove_reference("a").result(9)
        assert made.engine.status("a").reference is None
        detector = oracle()
        expected_all(detector, VALUES)
        assert _rest(made, detector)
        assert made.engine.status("a").reference is None


@pytest.mark.slow
def test_it_stays_after_a_reset_and_with_other_settings(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        _mark(made)
        made.engine.signals.reset("a").result(9)
        assert made.engine.status("a").reference is not None
        assert made.engine.status("a").observations == 200
        detector = oracle()
        detector.learn_reference([VALUES[number] for number in GOOD])
        assert _rest(made, detector)
        made.engine.signals.configure("a", detector={"gap": 7}).result(9)
        detector = oracle(gap=7)
        detector.learn_reference([VALUES[number] for number in GOOD])
        expected_all(detector, [*VALUES[GOOD.stop :], *noise(22, 60)], _at(GOOD.stop))
        assert _rest(made, detector, AFTER + 60 * SECOND)


@pytest.mark.slow
def test_it_outlives_the_observations_that_it_was_made_of(tmp_path: Path) -> None:
    settings = settings_of(engine={"snapshot_every": 30}, storage={"keep_observations": 1e10, "keep_incidents": 1e10})
    made = Rig(tmp_path, settings)
    try:
        made.feed("a", VALUES[:250])
        _mark(made)
        made.feed("a", VALUES[250:], _at(250))
        with made.store.transaction() as writer:
            writer.prune(_at(250), 0, {1: AFTER})
        assert made.stored("a")[0].time == _at(250)
        made = made.crash_leaving(1, AFTER - SECOND, b"of another release")
        assert _rest(made, _detector())
    finally:
        made.close()


@pytest.mark.slow
def test_one_that_a_release_cannot_learn_any_more_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = Rig(tmp_path)
    try:
        made.feed("a", VALUES)
        _mark(made, range(51 + 10))
        longer = property(lambda fleet: 100)
        monkeypatch.setattr("tocsin.detection.fleet.Fleet.least_reference", longer)
        made = made.crash_leaving(1, AFTER - SECOND, b"of another release")
        assert "the reference of 'a' is removed" in caplog.text
        assert made.engine.status("a").reference is None
        with made.store.reading() as reader:
            assert reader.references() == []
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        (9, 8, "start must not be after end, got start 2023-11-14T22:13:29.000Z and end 2023-11-14T22:13:28.000Z"),
        (0, 3, "a reference of 'a' must have at least 6 observations with a value, got 4 from start 2023"),
        (1000, 2000, "at least 6 observations with a value, got 0 from start"),
    ],
)
def test_what_cannot_be_a_reference_is_refused(tmp_path: Path, start: int, end: int, told: str) -> None:
    with rig(tmp_path) as made:
        values = [1.0, *VALUES[1:]] if VALUES[0] != VALUES[0] else VALUES
        made.feed("a", [value if value == value else 0.0 for value in values])
        with pytest.raises(RefusedError) as refused:
            made.engine.signals.put_reference("a", _at(start), _at(end)).result(9)
        assert told in str(refused.value)
        assert made.engine.ready
        assert made.engine.status("a").reference is None
        with pytest.raises(UnknownError, match="no signal 'b'"):
            made.engine.signals.put_reference("b", _at(start), _at(end)).result(9)


def test_too_many_observations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin_monitor.engine.signal_changes.MOST_OBSERVATIONS", 199)
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        with pytest.raises(RefusedError, match="at most 199 observations, got more from start"):
            _mark(made)
        _mark(made, range(50, 249))


def test_other_changes_that_do_not_fit_it_are_refused(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        _mark(made, range(51 + 10))
        with pytest.raises(RefusedError, match="a reference of 'a' must have at least"):
            made.engine.signals.configure("a", detector={"views": ["shape"]}).result(9)
        with pytest.raises(RefusedError, match="'a' has a reference"):
            made.engine.signals.restore("a", made.engine.signals.state("a").result(9)).result(9)
        assert made.engine.signals.details("a").result(9).settings == QUICK
        assert statuses(made.take(one("a", AFTER, 1.0))) == [Status.SCORED]


def test_the_incident_before_it_is_over(tmp_path: Path) -> None:
    with rig(tmp_path, detector={**QUICK, "gap": 50}) as made:
        made.feed("a", [*VALUES[:-1], 60.0])
        (going_on,) = made.incidents(open=True)
        _mark(made)
        assert made.incidents(open=True) == []
        (outcome,) = made.take(one("a", AFTER, -300.0))
        assert outcome.judged.alarm
        assert outcome.incident != going_on.id


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_it_is_there_as_a_whole_or_not_at_all(tmp_path: Path, when: str) -> None:
    store = FailingStore.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    made = Rig(tmp_path, settings_of(engine={"snapshot_every": 10**6}), store)  # no state is stored meanwhile
    try:
        made.feed("a", VALUES)
        plans = iter([when])
        store.plan = lambda: next(plans, "")  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            _mark(made)
        until(lambda: made.events.count(("status", {"ready": True})) == 2)  # it began, and began again
        until(lambda: made.engine.ready)
        assert store.failures == 1
        assert (made.engine.status("a").reference is not None) == (when == "after")
        detector = oracle()
        if when == "after":
            detector = _detector()
        else:
            expected_all(detector, VALUES)
        assert _rest(made, detector)
    finally:
        made.close()

"""What people change about signals, and that it lasts."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import (
    DEADLINE,
    QUICK,
    SECOND,
    START,
    Rig,
    bits,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    statuses,
    verdicts,
)
from tocsin.detection import Detector
from tocsin.forecasting.embedded.weights import SHIPPED
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import Status

VALUES = noise(11, 400)
AFTER = START + 400 * SECOND


def _rest(made: Rig, detector: Detector, start: int = AFTER) -> bool:
    """Whether the signal goes on as this detector does, also after a start without warning."""
    values = noise(12, 60)
    wanted = expected_all(detector, values, start)
    found = verdicts(made.feed("a", values[:30], start))
    again = made.crash()
    found += verdicts(again.feed("a", values[30:], start + 30 * SECOND))
    made.__dict__.update(again.__dict__)
    return same(found, wanted)


def test_create(tmp_path: Path) -> None:
    with rig(tmp_path, templates=[{"match": "t/*", "unit": "C", "silent_after": 9}]) as made:
        status = made.engine.signals.create("a", ("x", "y"), {"gap": 2}, 5.0, "mm").result(9)
        assert (status.features, status.unit, status.observations) == (("x", "y"), "mm", 0)
        assert made.engine.signals.details("a").result(9).silent_after == 5.0
        found = verdicts(made.feed("a", noise(1, 50, features=2)))
        assert same(found, expected_all(oracle(("x", "y"), gap=2), noise(1, 50, features=2)))
        assert made.engine.signals.create("t/1").result(9).unit == "C"
        assert ("signal", {"name": "a", "change": "created"}) in made.events


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("a", {}, "already"),
        ("b ", {}, "name"),
        ("b/-/c", {}, "/-/"),
        ("b", {"features": ()}, "features"),
        ("b", {"features": ("x", "x")}, "different"),
        ("b", {"features": ("x", "y\n")}, "a feature's name"),
        ("b", {"detector": {"horizon": 3}}, "horizon"),
        ("b", {"detector": {"alarm_rate": 2}}, "alarm_rate"),
        ("b", {"detector": {"gap": {1}}}, "JSON"),
        ("b", {"silent_after": 0.0}, "silent_after"),
        ("b", {"silent_after": float("nan")}, "silent_after"),
        ("b", {"unit": "\0"}, "unit"),
    ],
)
def test_what_cannot_be_created_is_refused(tmp_path: Path, name: str, given: dict[str, Any], told: str) -> None:
    with rig(tmp_path) as made:
        made.engine.signals.create("a").result(9)
        with pytest.raises(RefusedError, match=told):
            made.engine.signals.create(name, **given).result(9)
        assert [status.name for status in made.engine.overview()] == ["a"]
        assert made.engine.ready


@pytest.mark.slow
def test_configure_without_other_settings_leaves_the_detector(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        status = made.engine.signals.configure("a", unit="mm", silent_after=7.0, detector=dict(QUICK)).result(9)
        assert status.unit == "mm"
        assert made.engine.signals.configure("a", features=("value",)).result(9).unit == "mm"
        with pytest.raises(RefusedError, match="features"):
            made.engine.signals.configure("a", features=("other",)).result(9)
        with pytest.raises(UnknownError):
            made.engine.signals.configure("b").result(9)
        detector = oracle()
        expected_all(detector, VALUES)
        assert _rest(made, detector)
        assert made.engine.signals.details("a").result(9).silent_after == 7.0


@pytest.mark.slow
def test_configure_with_other_settings_learns_anew_from_the_store(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.engine.maintenance.add("a", START + 50 * SECOND, START + 70 * SECOND).result(9)
        made.feed("a", VALUES)
        made.take(one("a", START + SECOND // 2, 100.0))  # late: not learned from
        new = {"gap": 5, "nonconformity": "high"}
        with pytest.raises(RefusedError):
            made.engine.signals.configure("a", detector={"gap": -1}).result(9)
        made.engine.signals.configure("a", detector=new).result(9)
        detector = oracle(**new)
        expected_all(detector, [*VALUES[:50], *[float("nan")] * 20, *VALUES[70:]])
        assert _rest(made, detector)
        assert made.engine.signals.details("a").result(9).settings == {**QUICK, **new}
        assert len(made.state.places.blocks) == 1


@pytest.mark.slow
def test_reset_forgets_all_but_what_is_stored(tmp_path: Path) -> None:
    settings = {**QUICK, "interval": 1.0}
    with rig(tmp_path, detector=settings) as made:
        made.feed("a", [*VALUES[:-1], 60.0])
        (going_on,) = made.incidents(open=True)
        made.engine.signals.reset("a").result(9)
        assert made.engine.status("a").observations == 0
        assert made.engine.status("a").incident is None
        assert not next(row for row in made.incidents() if row.id == going_on.id).open
        assert statuses(made.take(one("a", START, 1.0))) == [Status.DUPLICATE]
        assert statuses(made.take(one("a", START - 1, 1.0))) == [Status.LATE]
        assert _rest(made, Detector(["value"], **settings), AFTER + 50 * SECOND)


@pytest.mark.slow
def test_remove_and_make_again(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        made.feed("b", VALUES)
        number = made.engine.status("a").id
        made.engine.signals.remove("a").result(9)
        for ask in (
            made.engine.signals.remove,
            made.engine.signals.reset,
            made.engine.signals.state,
            made.engine.signals.details,
        ):
            with pytest.raises(UnknownError):
                ask("a").result(9)
        with pytest.raises(UnknownError):
            made.engine.status("a")
        assert made.stored("a") == []
        assert made.incidents(signal_id=number) == []
        again = made.crash()
        made.__dict__.update(again.__dict__)
        assert [status.name for status in made.engine.overview()] == ["b"]
        found = verdicts(made.feed("a", VALUES))
        assert same(found, expected_all(oracle(), VALUES))
        assert made.engine.status("a").id > number
        made.engine.signals.remove("a").result(9)
        assert same(verdicts(made.feed("a", VALUES)), found)
        made.engine.signals.remove("a").result(9)
        made.engine.signals.remove("b").result(9)
        assert made.state.places.blocks == []
        assert made.sample("tocsin_signals") == 0


@pytest.mark.slow
def test_state_and_restore(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES[:300])
        state = made.engine.signals.state("a").result(9)
        by_itself = Detector.from_bytes(state)
        made.feed("a", VALUES[300:], START + 300 * SECOND)
        made.engine.signals.restore("a", state).result(9)
        assert made.engine.status("a").observations == 300
        assert _rest(made, by_itself)


@pytest.mark.slow
def test_an_incident_in_a_restored_state_is_over(tmp_path: Path) -> None:
    with rig(tmp_path, detector={**QUICK, "gap": 50}) as made:
        made.feed("a", [*VALUES[:-1], 60.0])
        (going_on,) = made.incidents(open=True)
        made.engine.signals.restore("a", made.engine.signals.state("a").result(9)).result(9)
        assert made.incidents(open=True) == []
        (outcome,) = made.take(one("a", AFTER, -300.0))
        assert outcome.judged.alarm
        (new,) = made.incidents(open=True)
        assert (new.start, outcome.incident) == (AFTER, new.id)
        assert new.id > going_on.id


@pytest.mark.slow
def test_restore_after_a_while_counts_that_as_missing(tmp_path: Path) -> None:
    with rig(tmp_path, detector={**QUICK, "interval": 1.0}) as made:
        made.feed("a", VALUES[:300])
        state = made.engine.signals.state("a").result(9)
        made.feed("a", VALUES[300:], START + 300 * SECOND)
        made.engine.signals.restore("a", state).result(9)
        assert _rest(made, Detector.from_bytes(state))


@pytest.mark.slow
def test_restore_of_a_state_that_is_ahead(tmp_path: Path) -> None:
    ahead = oracle()
    expected_all(ahead, VALUES)
    with rig(tmp_path) as made:
        made.feed("a", VALUES[:100])
        made.engine.signals.restore("a", ahead.to_bytes()).result(9)
        again = made.crash()
        made.__dict__.update(again.__dict__)
        assert statuses(made.feed("a", VALUES[100:], START + 100 * SECOND)) == [Status.LATE] * 300
        assert made.engine.status("a").last_time == AFTER - SECOND
        assert _rest(made, ahead)


@pytest.mark.slow
def test_a_state_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        numbered = oracle()
        numbered.update(1.0, 5)
        future = oracle()
        future.update(1.0, "2200-01-01")
        bad = [
            future.to_bytes(),
            b"",
            b"nonsense",
            oracle(gap=2).to_bytes(),
            oracle(("x", "y")).to_bytes(),
            numbered.to_bytes(),
        ]
        for state in bad:
            with pytest.raises(RefusedError):
                made.engine.signals.restore("a", state).result(9)
        assert made.engine.ready
        detector = oracle()
        expected_all(detector, VALUES)
        assert bits(made.stored("a")[-1].judged) == bits(expected_all(oracle(), VALUES)[-1])
        assert _rest(made, detector)


@pytest.mark.slow
def test_a_longer_memory_is_rebuilt_from_more_observations(tmp_path: Path) -> None:
    values = noise(13, 5600)
    with rig(tmp_path) as made:
        for at in range(0, 5600, 1400):
            made.feed("a", values[at : at + 1400], START + at * SECOND)
        rare = {"alarm_rate": 0.004, "window": 2600}
        made.engine.signals.configure("a", detector=rare).result(20)
        detector = oracle(**rare)
        sizes = detector.fleet.settings.sizes
        remembered = detector.fleet.least_reference + sizes.window + max(sizes.final, sizes.block * sizes.blocks)
        assert 5000 < remembered < 5600, remembered
        assert made.engine.status("a").observations == remembered


@pytest.mark.slow
def test_details(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        details = made.engine.signals.details("a").result(9)
        detector = oracle()
        expected_all(detector, VALUES)
        assert details.audit == detector.audit
        assert details.guarantee == detector.guarantee
        assert details.weights == detector.weights.mean(axis=1).astype(float).tolist()
        assert details.memory_bytes > 0
        assert settings_of().detector == details.settings


def test_options_name_files_only_in_the_folder_of_models(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    copy = models / "own.npz"
    copy.write_bytes(SHIPPED.read_bytes())
    with rig(tmp_path, engine={"models": str(models)}) as made:
        signals, options = made.engine.signals, {"forecaster": "embedded", "forecaster_options": {"weights": "own.npz"}}
        signals.create("a", detector=options).result(DEADLINE)
        stored = made.state.signals["a"].row.settings["forecaster_options"]
        assert stored == {"weights": str(copy)}
        # What is there already may be sent back.
        signals.configure("a", detector={**options, "forecaster_options": stored, "gap": 4}).result(DEADLINE)
        for other in (str(SHIPPED), "../models/own.npz", "gone.npz"):
            given = {"forecaster": "embedded", "forecaster_options": {"weights": other}}
            with pytest.raises(RefusedError, match=r"forecaster_options.weights must be one of own.npz, since"):
                signals.create("b", detector=given).result(DEADLINE)

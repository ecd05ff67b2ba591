"""Stored templates: they take the place of the file's, survive every end, and change signals only when asked."""

from pathlib import Path
from typing import Any

import pytest

from tests.cases import full
from tests.service.engine.helpers import QUICK, SECOND, START, Rig, one, rig, settings_of
from tests.service.engine.test_trials import finished_many, strange
from tocsin_monitor.config import SignalTemplate
from tocsin_monitor.engine.signal_changes import MOST_TEMPLATES
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.store import TemplateRow

FILE = [{"match": "pump/*", "unit": "bar", "detector": {"gap": 4}}, {"match": "*", "detector": {"gap": 7}}]


def template(match: str, **given: Any) -> SignalTemplate:
    return SignalTemplate.model_validate({"match": match, **given})


def made_by(made: Rig, name: str) -> tuple[str | None, int, str | None]:
    """A new signal's template, a setting of its detector, and its unit."""
    made.take(one(name, START, 1.0))
    row = made.state.signals[name].row
    return row.template, row.settings["gap"], row.unit


def put(made: Rig, match: str, **given: Any) -> Any:
    return made.engine.templates.put(template(match, **given), "ada").result(60)


@pytest.mark.slow
@pytest.mark.parametrize("end", [full("stop"), "crash"])
def test_stored_templates_are_in_force_at_once_and_after_every_end(tmp_path: Path, end: str) -> None:
    made = Rig(tmp_path, settings_of(templates=FILE))
    try:
        assert made_by(made, "pump/1") == ("pump/*", 4, "bar")
        put(made, "pump/*", unit="psi", detector={"gap": 5})
        put(made, "pump/3/*", detector={"gap": 6})
        put(made, "*[0-9]", detector={"gap": 8})
        for number in (2, 3):
            assert made_by(made, f"pump/{number}") == ("pump/*", 5, "psi")
            assert made_by(made, f"pump/3/{number}") == ("pump/3/*", 6, None)
            assert made_by(made, f"door {number}") == ("*[0-9]", 8, None)
            assert made_by(made, f"door of {number} pumps") == ("*", 7, None)
            assert made.engine.status("pump/1").unit == "bar"  # signals that exist stay as they are
            known = [(one.template.match, one.stored and one.stored.changed_by) for one in made.engine.templates.known]
            assert known == [("pump/3/*", "ada"), ("pump/*", "ada"), ("*[0-9]", "ada"), ("*", None)]
            made = made.crash() if end == "crash" else made.restart()
        made.engine.templates.remove("pump/*").result(60)
        assert made_by(made, "pump/4") == ("pump/*", 4, "bar")  # the file's again
        made = made.restart()
        assert made_by(made, "pump/5") == ("pump/*", 4, "bar")
        with pytest.raises(UnknownError, match=r"there is no stored template 'pump/\*'"):
            made.engine.templates.remove("pump/*").result(60)
    finally:
        made.close()


@pytest.mark.slow
def test_a_changed_template_tells_the_signals_it_applies_to_and_they_follow_when_asked(tmp_path: Path) -> None:
    with rig(tmp_path, templates=FILE) as made:
        for name in ("pump/1", "pump/2", "pump/3", "door"):
            made.feed(name, strange(300))
        made.engine.signals.configure("pump/2", detector={"gap": 9}).result(60)
        found = put(made, "pump/*", unit="psi", silent_after="10min", detector={"gap": 5, "alarm_rate": 0.05})
        assert (found.signals, found.own) == (("pump/1", "pump/3"), ("pump/2",))
        assert made.state.signals["pump/1"].row.settings["gap"] == 4
        for name in found.signals:
            made.engine.signals.follow_template(name).result(60)
        rows = {name: made.state.signals[name].row for name in ("pump/1", "pump/2")}
        wanted = {**QUICK, "gap": 5, "alarm_rate": 0.05}
        first = rows["pump/1"]
        assert (first.settings, first.unit, first.silent_after) == (wanted, "psi", 600.0)
        assert (rows["pump/2"].settings["gap"], rows["pump/2"].unit) == (9, "bar")
        found = made.engine.templates.remove("pump/*").result(60)
        assert (found.signals, found.own) == (("pump/1", "pump/3"), ("pump/2",))
        made.engine.signals.follow_template("pump/1").result(60)
        first = made.state.signals["pump/1"].row
        assert (first.settings, first.unit, first.silent_after) == ({**QUICK, "gap": 4}, "bar", None)
        with made.store.reading() as reader:
            assert reader.signal("pump/1") == first
        found = put(made, "d*", detector={"gap": 2})
        assert found.signals == ("door",)
        made.engine.signals.follow_template("door").result(60)
        assert made.engine.status("door").template == "d*"


def test_a_template_never_changes_how_observations_are_aggregated(tmp_path: Path) -> None:
    fast = {"match": "fast", "every": 60, "aggregate": "max"}
    with rig(tmp_path, templates=[fast]) as made:
        made.take(one("fast", START, 1.0), one("slow", START, 1.0))
        found = put(made, "fast", every=10, detector={"gap": 5})
        assert found.signals == ("fast",)
        put(made, "slow", every=10)
        for name in ("fast", "slow"):
            made.engine.signals.follow_template(name).result(60)
        row = made.state.signals["fast"].row
        assert (row.every, row.aggregate, row.settings) == (60.0, "max", {**QUICK, "gap": 5, "interval": 60.0})
        row = made.state.signals["slow"].row
        assert (row.every, row.settings) == (None, QUICK)


@pytest.mark.slow
def test_a_trial_of_a_template_tries_what_applying_it_does(tmp_path: Path) -> None:
    with rig(tmp_path, templates=FILE) as made:
        names = ["pump/1", "pump/2", "pump/3"]
        for number, name in enumerate((*names, "door")):
            made.feed(name, strange(900, seed=number), step=SECOND)
        made.engine.signals.configure("pump/2", detector={"gap": 9}).result(60)
        new = template("pump/*", detector={"alarm_rate": 0.01})
        start = made.engine.trials.start_template
        every = finished_many(made, start(new, [*names, "door"], by="ada"))
        assert (every.signals, {one.signal for one in every.found}) == (3, set(names))
        some = finished_many(made, start(new, [*names, "door"], own=False, by="ada"))
        assert {one.signal for one in some.found} == {"pump/1", "pump/3"}
        assert made.engine.templates.known[0].stored is None  # nothing is stored
        put(made, "pump/*", detector={"alarm_rate": 0.01})
        for name in names:
            made.engine.signals.follow_template(name).result(60)
        again = finished_many(made, made.engine.trials.start_change(names, {}, "ada"))
        assert again.found == every.found  # what was tried is what the signals now have
        assert sum(one.incidents for one in every.found) < sum(one.raised for one in every.found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("match", "given", "said"),
    [
        ("a*", {"detector": {"alarm_rate": 7}}, "detector: alarm_rate must be .*, got 7"),
        ("a*", {"detector": {"nonsense": 1}}, "detector: a detector has no setting nonsense; it has "),
        ("a*", {"detector": {"alarm_rate": "1/day"}}, "detector: .*interval"),
        ("a*", {"detector": {"alarm_rate": float("nan")}}, "alarm_rate"),
        ("a*", {"unit": "x" * 201}, "unit must be text of at most 200 characters"),
        ("a*", {"features": ["a\0"]}, "a feature's name must be"),
        ("a*", {"features": ["a", "a"]}, "features"),
        ("a/../b", {}, "match must not have '.', '..' or '-' alone between slashes, got 'a/../b'"),
        ("x" * 201, {}, "match must be 1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(
    tmp_path: Path, match: str, given: dict[str, Any], said: str
) -> None:
    with rig(tmp_path) as made:
        with pytest.raises(RefusedError, match=said):
            put(made, match, **given)
        with pytest.raises(RefusedError, match=said):
            made.engine.trials.start_template(template(match, **given), ["a"])
        assert made.engine.templates.known == ()
        with made.store.reading() as reader:
            assert reader.templates() == []


@pytest.mark.full
def test_there_may_not_be_any_number_of_templates(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        with made.store.transaction() as writer:
            for number in range(MOST_TEMPLATES):
                writer.put_template(TemplateRow(f"{number}", {}, 1, "ada"))
        put(made, "0", unit="bar")  # in place of another
        with pytest.raises(RefusedError, match="at most 500 templates"):
            put(made, "one more")


def test_a_stored_template_that_cannot_be_used_is_listed_and_left_out(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings_of(templates=FILE, detector={**QUICK, "interval": "10s"}))
    put(made, "pump/*", detector={"alarm_rate": "20/hour"})
    with made.store.transaction() as writer:
        writer.put_template(TemplateRow("door", {"colour": "red"}, 1, "ada"))
    made = made.restart(settings_of(templates=FILE))  # a budget needs the interval, which is no longer in the file
    try:
        problems = {one.template.match: one.problem for one in made.engine.templates.known if one.problem}
        assert made.engine.templates.known[-1].template.detector == {"alarm_rate": "20/hour"}  # to mend it
        assert "colour" in problems["door"]
        assert "interval" in problems["pump/*"]
        assert made_by(made, "door")[:2] == ("*", 7)
        assert made_by(made, "pump/1") == ("pump/*", 4, "bar")  # the file's, which it would replace
        for match in problems:
            made.engine.templates.remove(match).result(60)
        assert [one.template.match for one in made.engine.templates.known] == ["pump/*", "*"]
    finally:
        made.close()

"""Values that a signal cannot have: told at once, and not learned."""

from pathlib import Path
from typing import Any

import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    SECOND,
    START,
    Rig,
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
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Status
from tocsin_monitor.rules import SignalRules

HOOK = {"webhook": [{"name": "hook", "url": "https://example.com", "min_severity": 5.0}]}
TEMPLATES = [{"match": "*", "unit": "bar", "valid_range": [-20, 20]}]
OUT = Status.OUT_OF_RANGE


def _ranges(made: Rig) -> list[Any]:
    return made.incidents(kind="range")


def test_the_first_value_outside_opens_an_incident_and_the_next_valid_one_ends_it(tmp_path: Path) -> None:
    with rig(tmp_path, events={"enabled": False}, sinks=HOOK, templates=TEMPLATES) as made:
        found = made.feed("a", [1.0, 21.0, 50.0, -30.0, NAN])
        assert statuses(found) == [Status.SCORED, OUT, OUT, OUT, Status.SCORED]
        (row,) = _ranges(made)
        assert (row.start, row.end, row.peak) == tuple(START + at * SECOND for at in (1, 3, 2))
        assert (row.duration, row.deviation, row.direction, row.open) == (3, 30.0, "above", True)
        assert row.explanation == "50 bar, valid is -20 to 20 bar"
        assert made.engine.status("a").incident == row.id
        assert made.sample("tocsin_incidents_open", kind="range") == 1
        made.feed("a", [22.0], start=START + 5 * SECOND)
        assert [(one.id, one.duration, one.deviation) for one in _ranges(made)] == [(row.id, 4, 30.0)]
        made.feed("a", [20.0, -21.0, 0.0], start=START + 6 * SECOND)
        first, second = _ranges(made)
        assert (first.ended, first.end, second.start, second.ended) == (
            "returned", START + 5 * SECOND, START + 7 * SECOND, "returned",
        )  # fmt: skip
        told = [(one.incident, one.status) for one in made.outbox("hook")]
        assert sorted(told) == sorted(
            (number, word) for number in (first.id, second.id) for word in ("firing", "resolved")
        )


@pytest.mark.parametrize("end", ["crash", full("restart")])
def test_what_is_outside_is_missing_for_the_detector_before_and_after_a_crash(tmp_path: Path, end: str) -> None:
    values = noise(1, 300)
    for place in (40, 41, 120, 200, 250):
        values[place] = 1e6
    learned = [NAN if value > 20 else value for value in values]
    wanted = expected_all(oracle(), learned)
    made = Rig(tmp_path, settings_of(templates=TEMPLATES, engine={"snapshot_every": 30}))
    found = made.feed("a", values[:201])
    (open_one,) = (row for row in _ranges(made) if row.open)
    made = made.crash() if end == "crash" else made.restart()
    assert made.engine.status("a").incident == open_one.id
    found += made.feed("a", values[201:], start=START + 201 * SECOND)
    places = [number for number, value in enumerate(values) if not value > 20]
    assert same([found[at].judged for at in places], [wanted[at] for at in places])
    assert [row.duration for row in _ranges(made)] == [2, 1, 1, 1]
    assert not any(row.open for row in _ranges(made))
    # A new detector learns the same from what is stored.
    made.engine.signals.configure("a", detector={"gap": 4}).result(99)
    more = noise(2, 50)
    asked = oracle(gap=4)
    expected_all(asked, learned)
    again = made.feed("a", more, start=START + 300 * SECOND)
    assert same(verdicts(again), expected_all(asked, more, start=START + 300 * SECOND))
    made.close()


def test_maintenance_hides_it_and_late_and_imported_values_open_nothing(tmp_path: Path) -> None:
    with rig(tmp_path, templates=TEMPLATES) as made:
        made.engine.maintenance.add("a", START, START + 5 * SECOND).result(9)
        assert statuses(made.feed("a", [99.0])) == [Status.MAINTENANCE]
        made.feed("a", [1.0], start=START + 10 * SECOND)
        assert statuses(made.take(one("a", START + 6 * SECOND, 99.0))) == [Status.LATE]
        assert _ranges(made) == []


def test_each_feature_has_its_range_and_the_rest_of_the_settings_stays(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        signals = made.engine.signals
        signals.create("a", features=["t", "v"], rules={"valid_range": {"t": [0, None]}}).result(9)
        assert statuses(made.feed("a", [(1.0, -5.0), (-1.0, 5.0)])) == [Status.SCORED, OUT]
        assert _ranges(made)[0].explanation == "t -1, valid is at least 0"
        signals.configure("a", rules={"min_deviation": 2.0}).result(9)
        assert made.engine.signals.details("a").result(9).rules == SignalRules(
            valid_range={"t": (0.0, None)}, min_deviation=2.0
        )
        signals.configure("a", rules={"valid_range": None}).result(9)
        assert statuses(made.feed("a", [(-1.0, 5.0)], start=START + 5 * SECOND)) == [Status.SCORED]
        assert not _ranges(made)[0].open
        made = made.restart()
        with made.store.reading() as reader:
            row = reader.signal("a")
        assert row is not None
        assert row.rules == SignalRules(min_deviation=2.0)
        for wrong, problem in (
            ({"valid_range": {"x": [0, 1]}}, "for the features t, v, got x"),
            ({"valid_range": [3, 1]}, "the first less than the second"),
            ({"valid_range": [None, None]}, "least, greatest"),
            ({"min_deviation": 0}, "min_deviation"),
        ):
            with pytest.raises(RefusedError, match=problem):
                made.engine.signals.configure("a", rules=wrong).result(9)
        made.close()

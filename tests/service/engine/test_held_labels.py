"""Labels that hold for the next incidents like the one that got them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, Rig, rig, settings_of
from tocsin_monitor.store import IncidentRow

DETECTOR = {**QUICK, "promise": "incidents", "alarm_rate": 0.01}
HOOK = {"webhook": [{"name": "hook", "url": "https://example.com"}]}
QUIET, BETWEEN = 700, 60
#: Where the spike of each number is.
AT = [QUIET + number * BETWEEN for number in range(8)]


def spikes(*sizes: float, seed: int = 3) -> list[float]:
    """Quiet noise with a spike every so often."""
    values = np.random.default_rng(seed).uniform(-1, 1, size=QUIET + BETWEEN * len(sizes))
    values[AT[: len(sizes)]] = sizes
    return values.tolist()


class Story:
    """A signal that is fed up to one spike after another."""

    def __init__(self, made: Rig, values: list[float]) -> None:
        self.made, self.values, self.at = made, values, 0

    def until(self, spike: int) -> IncidentRow:
        """The incident of the spike with this number, once it is over."""
        end = AT[spike] + BETWEEN // 2
        self.made.feed("a", self.values[self.at : end], START + self.at * SECOND)
        self.at = end
        return next(row for row in self.made.incidents() if row.start == START + AT[spike] * SECOND)

    def label(self, row: IncidentRow, label: str | None, **more: Any) -> dict[str, Any]:
        return self.made.engine.incidents.label(row.id, label, **more).result(9)

    def told(self) -> set[int]:
        return {row.incident for row in self.made.outbox("hook")}


def settings(**more: Any) -> dict[str, Any]:
    return {"detector": DETECTOR, "sinks": HOOK, "events": {"enabled": False}, **more}


def test_incidents_like_each_other_are_numbered(tmp_path: Path) -> None:
    with rig(tmp_path, **settings()) as made:
        made.feed("a", spikes(30, -30, 30, 30))
        rows = made.incidents()
        spiked = [row for row in rows if row.start in {START + at * SECOND for at in AT}]
        assert [row.alike for row in spiked] == [f"error · value · {row.direction}" for row in spiked]
        assert [row.direction for row in spiked] == ["above", "below", "above", "above"]
        for row in rows:
            before = [one for one in rows if one.alike == row.alike and one.start < row.start]
            like = [one.start for one in before if row.severity <= 2 * one.severity]
            assert (row.occurrence, row.first_alike) == (1 + len(like), min(like, default=None))
        assert [row.occurrence for row in spiked] == [1, 1, 2, 3]


@pytest.mark.parametrize("label", ["expected", "not interesting", "fault"])
def test_a_label_holds_until_it_is_withdrawn(tmp_path: Path, label: str) -> None:
    story = Story(Rig(tmp_path, settings_of(**settings())), spikes(30, 30, -30, 30, 30))
    try:
        first = story.until(0)
        assert story.label(first, label)["holds"]
        second, below = (story.until(spike) for spike in (1, 2))
        quiet = label != "fault"
        assert (second.label, second.label_of, second.suppressed) == (label, first.id, quiet)
        assert second.given_back is None  # only people say that something was a fault
        assert (below.label, below.suppressed) == (None, False)
        story.made = story.made.crash()
        next_one = story.until(3)
        assert (next_one.label, next_one.label_of, next_one.suppressed) == (label, first.id, quiet)
        shape = story.label(next_one, None)
        assert (shape["label"], shape["label_of"], shape["suppressed"]) == (None, None, quiet)
        assert story.until(4).label is None
        rows = {row.id: row for row in story.made.incidents()}
        assert not rows[first.id].holds
        assert rows[first.id].label == label
        suppressed = {row.id for row in story.made.incidents(suppressed=True)}
        assert {second.id, next_one.id} <= suppressed if quiet else not suppressed
        assert all(rows[number].alike == first.alike for number in suppressed)
        assert story.told() == rows.keys() - suppressed
    finally:
        story.made.close()


def test_what_is_much_more_severe_is_told_of_all_the_same(tmp_path: Path) -> None:
    with rig(tmp_path, **settings()) as made:
        story = Story(made, spikes(4, 40, 4))
        first = story.until(0)
        story.label(first, "expected")
        worse = story.until(1)
        assert worse.severity > 2 * first.severity
        assert (worse.label, worse.suppressed) == (None, False)
        assert story.until(2).suppressed


def test_a_label_of_one_incident_alone_and_a_false_alarm_do_not_hold(tmp_path: Path) -> None:
    with rig(tmp_path, **settings()) as made:
        story = Story(made, spikes(30, 30, 30))
        assert not story.label(story.until(0), "expected", hold=False)["holds"]
        second = story.until(1)
        assert second.label is None
        assert not story.label(second, "false alarm")["holds"]
        assert story.until(2).label is None


def test_the_newest_label_that_holds_is_the_only_one(tmp_path: Path) -> None:
    with rig(tmp_path, **settings()) as made:
        story = Story(made, spikes(30, 30, 30, 30))
        first = story.until(0)
        story.label(first, "expected")
        second = story.until(1)
        shape = story.label(second, "fault")
        assert (shape["label"], shape["holds"], shape["label_of"]) == ("fault", True, None)
        third = story.until(2)
        assert (third.label, third.label_of, third.suppressed) == ("fault", second.id, False)
        story.label(second, None)
        assert story.until(3).label is None

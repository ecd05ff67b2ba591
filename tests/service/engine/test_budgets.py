"""Signals that share a budget: which incidents sinks are told of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.helpers import SECOND, START, Rig, one, rig, settings_of

SINK = {"webhook": [{"name": "desk", "url": "https://example.com"}]}
DETECTOR = {"forecaster": "last-value", "views": ["error"], "alarm_rate": 0.02, "window": 250, "interval": "1s"}
LENGTH = 1500


def _noise(signals: int, length: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(length, signals))


def _send(made: Rig, values: Any, first: int = 0) -> None:
    for at in range(0, len(values), 50):
        piece = values[at : at + 50]
        made.take(
            *(
                one(f"pump/{signal}", START + (first + at + step) * SECOND, value)
                for step, row in enumerate(piece)
                for signal, value in enumerate(row)
            )
        )


def _withheld(made: Rig) -> dict[int, bool]:
    """Which incidents were withheld; exactly the others belong to events, of which sinks are told."""
    found = {row.id: row.withheld for row in made.incidents(kind="alarm")}
    assert {row.id: row.event is None for row in made.incidents(kind="alarm")} == found
    return found


@pytest.mark.slow
def test_the_rarest_are_told_and_a_start_changes_nothing(tmp_path: Path) -> None:
    """At 12 in an hour, 5 in the 25 minutes. Each signal by itself has 30."""
    settings = settings_of(detector=DETECTOR, sinks=SINK, budgets=[{"match": "pump/*", "incidents": "12/hour"}])
    values = _noise(4, LENGTH)
    values[-40:-30, 2] += 60
    made = Rig(tmp_path, settings)
    _send(made, values)
    found = _withheld(made)
    told = len(found) - sum(found.values())
    assert len(found) > 60
    assert 2 <= told <= 10
    fault = max(made.incidents(kind="alarm"), key=lambda row: row.severity)
    assert not fault.withheld
    made = made.restart()
    assert _withheld(made) == found
    _send(made, _noise(4, 300, seed=2), LENGTH)
    more = _withheld(made)
    assert len(more) - len(found) > 0
    assert sum(not more[number] for number in more.keys() - found.keys()) <= 4
    made.close()


def test_other_signals_are_always_told(tmp_path: Path) -> None:
    with rig(
        tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"match": "other/*", "incidents": "1/week"}]
    ) as made:  # fmt: skip
        _send(made, _noise(1, 600))
        found = _withheld(made)
        assert found
        assert not any(found.values())


@pytest.mark.slow
def test_an_incident_is_told_once_it_is_rare_enough(tmp_path: Path) -> None:
    values = _noise(1, LENGTH)
    values[-30:, 0] += np.cumsum(np.full(30, 3.0)) * (-1) ** np.arange(30)
    with rig(tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"incidents": "1/hour"}]) as made:
        _send(made, values[:-30])
        for step, row in enumerate(values[-30:]):
            _send(made, row[np.newaxis], LENGTH - 30 + step)
            newest = made.incidents(kind="alarm")[-1]
            if newest.open and newest.withheld:
                break
        else:
            pytest.fail("it was told at once")
        _send(made, values[-30 + step + 1 :], LENGTH - 30 + step + 1)
        (same,) = [row for row in made.incidents(kind="alarm") if row.id == newest.id]
        assert not same.withheld
        _withheld(made)


def test_expected_false_incidents_know_of_shared_budgets(tmp_path: Path) -> None:
    """By hand: 3 signals at 1/day share 7/week, and 2 at 1/week share more than they open."""
    templates = [
        {"match": "pump/*", "detector": {"alarm_rate": "1/day", "interval": "1min"}},
        {"match": "fan/*", "detector": {"alarm_rate": "1/week", "interval": "1h"}},
    ]
    budgets = [{"match": "pump/*", "incidents": "7/week"}, {"match": "fan/*", "incidents": "10/week"}]
    with rig(tmp_path, detector={"promise": "incidents"}, templates=templates, budgets=budgets) as made:
        for name in ("pump/1", "pump/2", "pump/3", "fan/1", "fan/2", "no pace yet"):
            made.engine.signals.create(name).result(9)
        week = 7 * 86400
        opened, reported = made.engine.expected_false(lambda name: True)
        assert (opened * week, reported * week) == pytest.approx((21 + 2, 7 + 2))
        opened, reported = made.engine.expected_false(lambda name: name == "pump/1")
        assert (opened * week, reported * week) == pytest.approx((7, 7))


@pytest.mark.parametrize("budget", ["5/fortnight", "often", "0/day"])
def test_what_is_no_budget_is_refused(budget: str) -> None:
    with pytest.raises(ValueError, match="incidents must be a budget such as '1/day'"):
        settings_of(budgets=[{"incidents": budget}])

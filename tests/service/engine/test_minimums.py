"""Alarms that nobody is told of, because they do not go far enough; and maintenance that recurs."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import SECOND, START, Rig, one, rig, settings_of, statuses
from tocsin_monitor.observations import Status
from tocsin_monitor.schedules import Schedule

HOOK = {"webhook": [{"name": "hook", "url": "https://example.com"}]}
CYCLE = [0.1 * number for number in range(7)]
CALM = {"detector": {"alarm_rate": 0.02}}


def _fed(made: Rig, *jumps: float) -> list[Any]:
    """Feed a calm signal with jumps of one observation, far from each other; returns the incidents."""
    values = CYCLE * 43
    for number, jump in enumerate(jumps):
        values[120 + 60 * number] += jump
    made.feed("a", values)
    return made.incidents(kind="alarm")


@pytest.mark.parametrize(
    ("rules", "jumps", "told"),
    [
        ({}, (3.0, 50.0), [True, True]),
        ({"min_deviation": 10.0}, (3.0, 50.0), [False, True]),
        ({"min_level": 20.0}, (3.0, -50.0), [False, False]),
        ({"min_level": 20.0}, (3.0, 50.0), [False, True]),
    ],
)
def test_nobody_is_told_of_what_does_not_go_far_enough(
    tmp_path: Path, rules: dict[str, Any], jumps: tuple[float, ...], told: list[bool]
) -> None:
    with rig(tmp_path, events={"enabled": False}, sinks=HOOK, templates=[{"match": "*", **CALM, **rules}]) as made:
        found = [
            row for row in _fed(made, *jumps) if any(row.start <= START + at * SECOND <= row.end for at in (120, 180))
        ]
        assert [row.below_minimum for row in found] == [not said for said in told]
        assert [row.event is not None for row in found] == told
        sent = {row.incident for row in made.outbox("hook")}
        assert [row.id in sent for row in found] == told


def test_an_incident_that_goes_further_is_told_then_and_stays_told(tmp_path: Path) -> None:
    templates = [{"match": "*", "min_deviation": 10.0, "detector": {"alarm_rate": 0.02, "gap": 60}}]
    made = Rig(tmp_path, settings_of(events={"enabled": False}, sinks=HOOK, templates=templates))
    made.feed("a", CYCLE * 28)
    made.feed("a", [3.0, *CYCLE, *CYCLE], start=START + 200 * SECOND)
    (row,) = [row for row in made.incidents(kind="alarm") if row.open]
    assert (row.below_minimum, row.event) == (True, None)
    made = made.crash()
    made.feed("a", [60.0, *CYCLE, 3.0], start=START + 240 * SECOND)
    (row,) = [row for row in made.incidents(kind="alarm") if row.open]
    assert not row.below_minimum
    assert row.event is not None
    assert [message.incident for message in made.outbox("hook")] == [row.id]
    made.close()


def test_maintenance_recurs_and_survives_a_restart(tmp_path: Path) -> None:
    """By a template's pattern, at the same local time of each day, judged in between."""
    midnight = round(datetime(2023, 11, 20, tzinfo=UTC).timestamp()) * SECOND
    made = Rig(tmp_path)
    schedule = Schedule("0 2 * * mon,wed", "Europe/Vienna", 3600.0)
    made.engine.maintenance.add("a*", midnight, 2**63 - 1, recurs=schedule).result(9)
    made = made.restart()
    hours = [24 * day + hour for day in range(4) for hour in (0, 0.99, 1, 1.99, 2)]
    for name, wanted in (("a1", True), ("b", False)):
        found = statuses(made.take(*(one(name, midnight + round(hour * 3600) * SECOND, 1.0) for hour in hours)))
        expected = [wanted and 1 <= hour % 24 < 2 and hour // 24 in (0, 2) for hour in hours]
        assert [status is Status.MAINTENANCE for status in found] == expected
    now = time.time_ns()
    assert all(window.covers(now) == schedule.covers(now) for window in made.state.windows)
    made.close()

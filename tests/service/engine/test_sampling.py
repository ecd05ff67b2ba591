"""Warnings where the sampling is not what the settings say, and advice where an incident was noticed late."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, Rig, rig, settings_of
from tocsin_monitor.engine.incidents import alarm_facts
from tocsin_monitor.store import ReferenceRow

FAST = (
    "data come every 1 s, but interval is 60 s: gaps go unnoticed. "
    "Set interval to 1 s, or every to 60 s to judge means over that time"
)
SLOW = "data come every 10 min, but interval is 60 s: most observations count as missing. Set interval to 10 min"


@pytest.mark.parametrize(("step", "warning"), [(1, FAST), (30, None), (60, None), (120, None), (600, SLOW)])
def test_data_that_come_at_another_pace_than_interval_says(tmp_path: Path, step: int, warning: str | None) -> None:
    made = Rig(tmp_path, settings_of(detector={**QUICK, "interval": "1min"}))
    try:
        *others, newest = made.feed("a", range(20), step=step * SECOND)
        assert {one.message for one in others} == {None}  # once is enough
        assert newest.message == made.engine.status("a").warning == warning
        made = made.crash()
        assert made.engine.status("a").warning == warning
    finally:
        made.close()


def test_without_an_interval_or_a_pace_there_is_no_warning(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        assert {one.message for one in made.feed("a", range(20))} == {None}
    with rig(tmp_path, detector={**QUICK, "interval": "1min"}) as made:
        assert {one.message for one in made.feed("b", range(5))} == {None}


def test_after_a_drift_that_was_noticed_late_a_reference_is_advised(tmp_path: Path) -> None:
    with rig(tmp_path, detector={**QUICK, "interval": "1s"}) as made:
        made.feed("a", [*np.random.default_rng(1).normal(size=200), 60.0])
        signal = made.state.signals["a"]
        incident = signal.block.fleet.open_incident(signal.place)
        assert incident is not None
        late, soon = (replace(incident, began_latest=incident.start - ago * SECOND) for ago in (600, 60))
        assert alarm_facts(signal, incident, START).advice is None
        assert alarm_facts(signal, soon, START).advice is None
        assert "mark a reference" in (alarm_facts(signal, late, START).advice or "")
        signal.reference = ReferenceRow(1, START, START, 1, START, "ana")
        assert alarm_facts(signal, late, START).advice is None

"""How urgent incidents and events are."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.service.store.helpers import incident
from tocsin.detection import Fleet
from tocsin_monitor.levels import CRITICAL, MANY, WARNING, level_of, level_of_event


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({"severity": WARNING - 0.1, "return_period": 1e9, "seen": 1000}, "info"),
        ({"severity": WARNING, "return_period": 1e9, "seen": 1000}, "warning"),
        # As much has been there before.
        ({"severity": WARNING, "return_period": 900.0, "seen": 1000}, "info"),
        ({"severity": CRITICAL - 0.1, "return_period": 1e9, "seen": 1000}, "warning"),
        ({"severity": CRITICAL, "return_period": 900.0, "seen": 1000}, "critical"),
        ({"kind": "silence", "severity": float("nan")}, "warning"),
        ({"kind": "range", "severity": float("nan")}, "warning"),
        ({"severity": float("nan"), "return_period": float("nan")}, "info"),
    ],
)
def test_the_level_of_an_incident(given: dict[str, Any], level: str) -> None:
    assert level_of(incident(1, 10**18, **given)) == level


@pytest.mark.parametrize(
    ("severity", "signals", "level"),
    [
        (1.0, MANY - 1, "info"),
        (1.0, MANY, "warning"),
        (WARNING, MANY - 1, "warning"),
        (WARNING, MANY, "critical"),
        (CRITICAL, MANY, "critical"),
    ],
)
def test_an_event_of_many_signals_is_more_urgent(severity: float, signals: int, level: str) -> None:
    strongest = SimpleNamespace(incident=incident(1, 10**18, severity=severity, return_period=1e9, seen=1000))
    assert level_of_event(SimpleNamespace(strongest=strongest, signals=signals)) == level


@pytest.mark.slow
def test_an_outage_is_critical_and_a_short_blip_is_not() -> None:
    """Errors of a service in percent, each minute: usually 0.1, now and then up to 0.5."""
    rng = np.random.default_rng(4)
    errors = np.repeat(rng.exponential(0.1, size=(6000, 1)), 2, axis=1)
    errors[5900:5904, 0] = [0.7, 0.9, 0.9, 0.8]
    errors[5900:5930, 1] = rng.uniform(63.0, 92.0, size=30)
    fleet = Fleet(["blip", "outage"], alarm_rate=0.001, interval="1min")
    fleet.run_arrays(errors)
    found = {one.signal: one for one in fleet.incidents() if 5900 <= one.first < 5904}
    levels = {
        name: level_of(incident(1, 1, severity=one.severity, return_period=one.return_period, seen=one.seen))
        for name, one in found.items()
    }
    assert levels.pop("outage") == "critical"
    assert set(levels.values()) <= {"info", "warning"}
    assert levels

"""Signals that share a budget: which incidents sinks are told of."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.service.engine.material import Rig, noise, send_each

MANY, LENGTH = 6, 900
SINK = {"webhook": [{"name": "desk", "url": "http://127.0.0.1:9/"}]}
DETECTOR = {"forecaster": "last-value", "preset": "light", "alarm_rate": 0.02, "interval": "1s"}


def _told(made: Rig) -> dict[int, bool]:
    """Of every incident of alarms: whether it was withheld, and that this is what the outbox has."""
    with made.store.reading() as reader:
        rows = reader.incidents(kind="alarm", limit=1000)
    with made.store.transaction() as writer:
        for row in rows:
            assert bool(writer.sinks_told(row.id)) != row.withheld
    return {row.id: row.withheld for row in rows}


def _send(made: Rig, values: Any, first: int = 0) -> None:
    send_each(made, {f"pump/{k}": values[:, k] for k in range(values.shape[1])}, first)


def test_only_the_rarest_are_told(rig: Callable[..., Rig]) -> None:
    values = noise(MANY, LENGTH)
    values[-20:-10, 2] += 40
    settings = {"detector": DETECTOR, "sinks": SINK, "budgets": [{"match": "pump/*", "incidents": "4/hour"}]}
    with rig(**settings) as made:
        _send(made, values)
        told = _told(made)
        assert 0 < sum(not withheld for withheld in told.values()) < 0.5 * len(told)
        with made.store.reading() as reader:
            fault = max(reader.incidents(kind="alarm", limit=1000), key=lambda row: row.severity)
        assert not fault.withheld
        before = told
    with rig(**settings) as made:  # as after a restart
        assert _told(made) == before
        _send(made, noise(MANY, 30, seed=2), LENGTH)


def test_signals_without_a_budget_are_always_told(rig: Callable[..., Rig]) -> None:
    settings = {"detector": DETECTOR, "sinks": SINK, "budgets": [{"match": "other/*", "incidents": "1/week"}]}
    with rig(**settings) as made:
        _send(made, noise(2, LENGTH))
        told = _told(made)
        assert told
        assert not any(told.values())


def test_an_incident_that_grows_is_told_later(rig: Callable[..., Rig]) -> None:
    values = noise(1, LENGTH + 60)
    values[LENGTH:, 0] += np.minimum(np.arange(60) * 1.5, 30)
    settings = {"detector": DETECTOR, "sinks": SINK, "budgets": [{"incidents": "1/hour"}]}
    with rig(**settings) as made:
        _send(made, values[:LENGTH])
        before = _told(made)
        _send(made, values[LENGTH:], LENGTH)
        after = _told(made)
    assert sum(not withheld for withheld in after.values()) > sum(not withheld for withheld in before.values())

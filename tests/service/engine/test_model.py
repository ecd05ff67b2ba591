"""Whatever comes in whatever order, the engine does what the model says."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import full
from tests.service.engine.helpers import QUICK, SECOND, START, Rig, bits, one, settings_of
from tests.service.engine.model import Model
from tocsin_monitor.observations import Observation, StoredVerdict

NAMES = ("a", "b", "c")

# A step: what it does, and how much of it.
_SEND = st.tuples(st.just("send"), st.integers(1, 60), st.integers(0, 2**32 - 1))
_OTHER = st.tuples(st.sampled_from(["crash", "restart", "maintain", "end maintenance"]), st.just(0), st.just(0))
STEPS = st.lists(st.one_of(_SEND, _SEND, _SEND, _OTHER), min_size=3, max_size=25)


def _batch(source: np.random.Generator, count: int, clock: dict[str, int]) -> list[Observation]:
    """Mostly new ones in order; some of another order, some again, some late, some after a gap."""
    batch = []
    for _ in range(count):
        name = str(source.choice(NAMES))
        kind = source.random()
        clock[name] += 1 if kind < 0.8 else int(source.integers(1, 6))
        step = clock[name]
        if kind < 0.2:
            step = int(source.integers(max(0, step - 12), step + 1))
        value = source.normal() + (9 if source.random() < 0.05 else 0)
        batch.append(one(name, START + step * SECOND, np.nan if source.random() < 0.03 else value))
    if source.random() < 0.5:
        source.shuffle(batch)  # type: ignore[arg-type]
    return batch


def _plain(judged: StoredVerdict | None) -> Any:
    """A verdict, or None for what has none."""
    return None if judged is None or (judged.p != judged.p and not judged.warm and _nothing(judged)) else bits(judged)


def _nothing(judged: StoredVerdict) -> bool:
    return all(number != number for number in (*judged.forecast, *judged.low, *judged.high))


@pytest.mark.slow
@pytest.mark.parametrize("more", [full({}), {"interval": 1.0}])
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_the_engine_does_what_the_model_says(more: dict[str, Any], steps: list[tuple[str, int, int]]) -> None:
    model, clock = Model(more), dict.fromkeys(NAMES, 0)
    windows: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        made = Rig(Path(folder), settings_of(detector={**QUICK, **more}, engine={"snapshot_every": 6}))
        try:
            for what, count, seed in steps:
                if what == "send":
                    batch = _batch(np.random.default_rng(seed), count, clock)
                    wanted = model.take(batch)
                    found = made.take(*batch)
                    assert [outcome.status for outcome in found] == [status for status, _ in wanted]
                    assert [_plain(outcome.judged) for outcome in found] == [_plain(judged) for _, judged in wanted]
                elif what == "maintain" and not windows:
                    newest = START + max(clock.values()) * SECOND
                    windows.append(made.engine.maintenance.add("*", newest, newest + 9 * SECOND).result(9).id)
                    model.windows.append((newest, newest + 9 * SECOND))
                elif what == "end maintenance" and windows:
                    made.engine.maintenance.remove(windows.pop()).result(9)
                    model.windows.clear()
                elif what in ("crash", "restart"):
                    made = made.crash() if what == "crash" else made.restart()
            _compare(made, model)
        finally:
            made.close()


def _compare(made: Rig, model: Model) -> None:
    for name in NAMES:
        rows = made.stored(name)
        wanted = model.stored.get(name, {})
        assert [row.time for row in rows] == sorted(wanted)
        for row in rows:
            status, judged = wanted[row.time]
            assert row.status is status
            assert _plain(row.judged) == _plain(judged)
        if name in model.detectors:
            detector = model.detectors[name]
            assert made.engine.status(name).observations == detector.observations
            signal = made.engine.status(name).id
            starts = [int(incident.start.astype(np.int64)) for incident in detector.incidents]
            assert [row.start for row in made.incidents(signal_id=signal)] == starts
            alarms = [incident.alarms for incident in detector.incidents]
            assert [row.alarms for row in made.incidents(signal_id=signal)] == alarms

"""A start takes over what was forecast, instead of forecasting it again, and goes on with the same numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    SECOND,
    START,
    Rig,
    expected,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
)
from tocsin.arrays import pack_arrays, unpack_arrays
from tocsin.forecasting.embedded.forecaster import load_kernels
from tocsin_monitor.engine import loops
from tocsin_monitor.engine.kept_forecasts import MOST_AT_ONCE, TOGETHER

EMBEDDED = {"forecaster": "embedded", "forecaster_options": {"context_length": 64}}
QUICK = {"views": ["error"], "promise": "observations", "alarm_rate": 0.1, "window": 250, "gap": 3, **EMBEDDED}
SETTINGS = settings_of(detector=QUICK, engine={"snapshot_every": 100_000})
# The forecasters and views of the preset "full": forecasts of both forecasters are kept.
BOTH = {**EMBEDDED, "forecaster": "auto", "views": None}


class Asked:
    """Counts the forecasts that are asked of the network."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.forecasts = 0
        kernels = load_kernels()
        answer = kernels.answer

        def count(weights: Any, memory: Any, patches: Any, asked: Any, *rest: Any) -> None:
            self.forecasts += len(asked)
            answer(weights, memory, patches, asked, *rest)

        patch.setattr(kernels, "answer", count)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    # What is judged to load the loops is not counted.
    monkeypatch.setattr(loops, "judge", lambda detector: None)
    return Asked(monkeypatch)


def _feed(made: Rig, values: list[float], first: int = 0, at_once: int = 10) -> None:
    for at in range(0, len(values), at_once):
        made.feed("a", values[at : at + at_once], START + (first + at) * SECOND)


def _kept(made: Rig) -> int:
    """In how many pieces forecasts are kept."""
    with made.store.reading() as reader:
        return len(reader.kept_forecasts([1])[1])


def _as_if_never_ended(made: Rig, values: list[float], **settings: Any) -> bool:
    return same([row.judged for row in made.stored("a")], expected_all(oracle(**(settings or EMBEDDED)), values))


@pytest.mark.slow
@pytest.mark.parametrize("forecasters", [full(EMBEDDED), BOTH])
def test_a_start_forecasts_only_what_was_not_kept_yet(
    tmp_path: Path, asked: Asked, forecasters: dict[str, Any]
) -> None:
    values = noise(1, 400)
    made = Rig(tmp_path, settings_of(detector={**QUICK, **forecasters}, engine={"snapshot_every": 100_000}))
    try:
        _feed(made, values[:290])
        before = asked.forecasts
        assert before > 250
        made = made.crash()
        assert made.sample("tocsin_replayed_observations_total") == 290
        assert asked.forecasts - before < TOGETHER
        _feed(made, values[290:350], 290)
        made = made.crash()  # what was forecast at the start is kept, too
        between = asked.forecasts
        made = made.crash()
        assert asked.forecasts - between < TOGETHER
        _feed(made, values[350:], 350)
        assert _as_if_never_ended(made, values, **forecasters)
    finally:
        made.close()


@pytest.mark.slow
def test_a_stored_state_takes_the_place_of_what_was_forecast(tmp_path: Path, asked: Asked) -> None:
    values = noise(2, 300)
    made = Rig(tmp_path, SETTINGS)
    try:
        _feed(made, values[:150])
        assert _kept(made) > 5
        made = made.restart()
        assert _kept(made) == 0
        before = asked.forecasts
        _feed(made, values[150:], 150)
        made = made.crash()
        assert asked.forecasts - before < 150 + TOGETHER
        assert _as_if_never_ended(made, values)
    finally:
        made.close()


@pytest.mark.slow
def test_of_very_many_observations_at_once_nothing_is_kept(tmp_path: Path, asked: Asked) -> None:
    values = noise(3, 300)
    made = Rig(tmp_path, SETTINGS)
    try:
        _feed(made, values[:40])
        kept = _kept(made)
        _feed(made, values[40:200], 40, MOST_AT_ONCE + 1)
        _feed(made, values[200:250], 200)
        assert _kept(made) == kept
        before = asked.forecasts
        made = made.crash()
        assert asked.forecasts - before > 200  # but for what was kept before
        _feed(made, values[250:], 250)
        assert _as_if_never_ended(made, values)
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["bytes", full("width"), full("times")])
def test_what_was_forecast_and_cannot_be_used_is_forecast_again(tmp_path: Path, asked: Asked, damage: str) -> None:
    values = noise(4, 200)
    made = Rig(tmp_path, SETTINGS)
    try:
        _feed(made, values[:150])
        with made.store.reading() as reader:
            stored = unpack_arrays(reader.kept_forecasts([1])[1][0])
        wrong = {
            "bytes": b"nonsense",
            "width": pack_arrays({**stored, "kept_forecasts": stored["kept_forecasts"][..., :3]}),
            "times": pack_arrays({**stored, "times": stored["times"] - 7}),
        }
        made.engine.write(lambda writer: writer.add_kept_forecasts([(1, START, wrong[damage])])).result(9)
        made = made.crash()
        before = asked.forecasts
        _feed(made, values[150:], 150)
        made = made.crash()
        assert asked.forecasts - before >= 150
        assert _as_if_never_ended(made, values)
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize("forecasters", [full(EMBEDDED), BOTH])
def test_gaps_and_maintenance_are_taken_as_they_were(tmp_path: Path, forecasters: dict[str, Any]) -> None:
    """What is missing before an observation is filled, and what comes in a window is missing."""
    settings = settings_of(detector={**QUICK, **forecasters, "interval": 1.0}, engine={"snapshot_every": 100_000})
    values = noise(5, 240)
    times = START + SECOND * np.cumsum([80 if at in (50, 200) else 5 if at == 90 else 1 for at in range(len(values))])
    detector = oracle(interval=1.0, **forecasters)
    window = int(times[100]), int(times[130])
    made = Rig(tmp_path, settings)
    try:
        made.engine.signals.create("a").result(9)
        made.engine.maintenance.add("a", *window).result(9)
        for at, (moment, value) in enumerate(zip(times.tolist(), values, strict=True)):
            made.take(one("a", moment, value))
            made = made.crash() if at in (60, 110, 205) else made
        for row, value in zip(made.stored("a"), values, strict=True):
            wanted = expected(detector, row.time, NAN if window[0] <= row.time < window[1] else value)
            assert window[0] <= row.time < window[1] or same([row.judged], [wanted])
    finally:
        made.close()


def test_forecasts_that_cost_nothing_are_not_kept(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        _feed(made, noise(6, 60))
        assert _kept(made) == 0

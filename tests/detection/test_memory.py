"""What a detector takes is known before it is made."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from tocsin.detection import DetectorSettings, Fleet
from tocsin.detection.state.memory import memory_bytes

ROWS = 32


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"features": 16},
        {"preset": "light"},
        {"views": "error", "features": 3, "window": 5000},
        {"forecaster": None},
        {"promise": "observations", "alarm_rate": 0.0005, "forecaster": "last-value"},
        {"forecaster": "seasonal-naive", "forecaster_options": {"search": 50_000}, "features": 4},
        {"forecaster": "seasonal-naive", "forecaster_options": {"period": 20_000}},
        {"forecaster": "autoregression", "forecaster_options": {"lags": 300}, "refresh": 60},
        {"forecaster_options": {"context_length": 500}, "scaled": True, "refresh": 4},
    ],
)
def test_what_is_known_before_is_what_is_taken(given: dict[str, Any]) -> None:
    settings = DetectorSettings(**given)
    Fleet.of(1, settings).update(np.zeros((1, len(settings.feature_names))))  # loads what fleets share
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fleet = Fleet.of(ROWS, settings)
        # A network keeps nothing before the first observation.
        fleet.update(np.zeros((ROWS, len(settings.feature_names))))
        taken = (tracemalloc.get_traced_memory()[0] - before) / ROWS
    finally:
        tracemalloc.stop()
    assert memory_bytes(settings) == pytest.approx(taken, rel=0.15)


def test_settings_that_ask_for_terabytes_are_not_tried() -> None:
    options = {"search": 2**20}
    settings = DetectorSettings(features=64, forecaster="seasonal-naive", forecaster_options=options, window=2**16)
    tracemalloc.start()
    try:
        known = memory_bytes(settings)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert known > 64 * 2**20 * 8
    assert most < 2**26

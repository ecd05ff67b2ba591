"""Observations taken again with what was forecast after them: the same numbers, and nothing is forecast."""

import numpy as np
import pytest

from tests.detection.helpers import SMALL, MovingMean, hard_values, same_verdicts
from tocsin.detection import Fleet
from tocsin.forecasting.embedded import kernels

STEPS, SIGNALS = 400, 3
# Observations up to `KNOWN` were taken before, with forecasts; then those up to `AGAIN` are taken again.
KNOWN, AGAIN = 150, 350


def asked_for_nothing(weights, memory, patches, asked, quantiles):
    assert len(patches) == 0
    assert len(asked) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "settings"),
    [
        (1, {}),
        (2, {"nonconformity": "high"}),
        (1, {"refresh": 4, "views": ["error", "movement"]}),
        (1, {"scaled": True}),
        (1, {"forecaster": MovingMean(), "scaled": True}),
        (1, {"forecaster": "seasonal-naive"}),
    ],
)
def test_kept_forecasts_are_not_made_again(features, settings, monkeypatch):
    values = np.stack([hard_values(seed, STEPS, features) for seed in range(SIGNALS)], axis=1)
    values[200:290, 1] = np.nan  # within a long gap nothing is forecast
    names = [f"feature {number}" for number in range(features)]
    whole, again = (Fleet(SIGNALS, names, **{**SMALL, **settings}) for _ in range(2))
    whole.run_arrays(values[:KNOWN])
    pieces = []
    expected = whole.run_arrays(values[KNOWN:AGAIN], on_forecast=pieces.append)
    kept_forecasts = np.concatenate(pieces)
    assert kept_forecasts.shape == (AGAIN - KNOWN, SIGNALS, features, whole.forecast_width)
    again.run_arrays(values[:KNOWN])
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "answer", asked_for_nothing)
        same_verdicts(again.run_arrays(values[KNOWN:AGAIN], kept_forecasts=kept_forecasts), expected)
    same_verdicts(again.run_arrays(values[AGAIN:]), whole.run_arrays(values[AGAIN:]))
    wanted, found = whole.state(), again.state()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def test_signals_are_taken_again_one_by_one():
    values = np.stack([hard_values(seed, STEPS) for seed in range(SIGNALS)], axis=1)
    whole, again = (Fleet(SIGNALS, **SMALL) for _ in range(2))
    pieces = []
    whole.run_arrays(values[:AGAIN], on_forecast=pieces.append)
    kept_forecasts = np.concatenate(pieces)
    for row in (2, 0, 1):
        again.run_arrays(values[:AGAIN, [row]], rows=[row], kept_forecasts=kept_forecasts[:, [row]])
    same_verdicts(again.run_arrays(values[AGAIN:]), whole.run_arrays(values[AGAIN:]))


def test_kept_forecasts_of_something_else_are_refused():
    with pytest.raises(ValueError, match=r"kept_forecasts must have shape \(3, 2, 1, 16\), got shape \(3, 2, 1, 15\)"):
        Fleet(2).run_arrays(np.zeros((3, 2)), kept_forecasts=np.zeros((3, 2, 1, 15)))

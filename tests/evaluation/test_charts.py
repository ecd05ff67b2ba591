"""Charts against slow versions, one observation at a time."""

import numpy as np
import pytest

from tocsin.evaluation import charts

VALUES = np.random.default_rng(0).normal(size=(80, 3))


def one_by_one(judge):
    """What a chart says that is asked anew after every observation: nothing of the future can be in it."""
    return np.array([[judge(VALUES[: t + 1, k]) for k in range(3)] for t in range(80)])


def slow_ewma(past):
    mean = 0.0
    for value in past:
        mean = 0.9 * mean + 0.1 * value
    return abs(mean)


def slow_cusum(past):
    high = low = 0.0
    for value in past:
        high, low = max(0.0, high + value - 0.5), max(0.0, low - value - 0.5)
    return max(high, low)


def slow_rolling_z(past):
    if len(past) <= 10:
        return np.nan
    before = past[-11:-1]
    return abs(past[-1] - before.mean()) / before.std()


def slow_movement(past):
    return np.nan if len(past) <= 10 else np.mean([abs(past[-n] - past[-n - 1]) for n in range(1, 11)])


@pytest.mark.parametrize(
    ("chart", "slow"),
    [
        (lambda values: charts.ewma(values, 0.1), slow_ewma),
        (lambda values: charts.cusum(values, 0.5), slow_cusum),
        (lambda values: charts.rolling_z(values, 10), slow_rolling_z),
        (lambda values: charts.movement(values, 10), slow_movement),
    ],
)
def test_charts(chart, slow):
    np.testing.assert_allclose(chart(VALUES), one_by_one(slow), rtol=1e-9)


def test_small_spreads_at_high_levels():
    high = charts.rolling_z(1e9 + VALUES, 10)
    np.testing.assert_allclose(high, charts.rolling_z(VALUES, 10), rtol=1e-4)


def test_signals_that_stand_still_and_those_that_are_short():
    still = np.full((30, 1), 2.0)
    still[20] = 3
    z = charts.rolling_z(still, 5, floor=0.1)
    assert (z[19, 0], z[20, 0]) == (0, 10)
    assert np.isnan(charts.rolling_z(still[:5], 5)).all()
    assert np.isnan(charts.movement(still[:5], 5)).all()


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="weight must be a number > 0 and <= 1, got 0"):
        charts.ewma(VALUES, 0)
    with pytest.raises(ValueError, match="window must be an integer >= 2, got 1"):
        charts.rolling_z(VALUES, 1)
    with pytest.raises(TypeError, match="window must be an integer >= 1"):
        charts.movement(VALUES, 2.5)

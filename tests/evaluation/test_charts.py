"""Charts against slow versions, one observation at a time."""

import numpy as np
import pytest

from tocsin_bench import charts

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


def slow_glr(past):
    full = [size for size in (2, 5, 30) if len(past) >= size]
    return max((abs(past[-size:].sum()) / size**0.5 for size in full), default=np.nan)


def slow_mean_square(past):
    return np.nan if len(past) < 10 else np.mean([value**2 for value in past[-10:]])


def slow_ar_residual(past):
    """The fit uses the first 20 values; before, it looks ahead, as every chart's history does."""
    if len(past) < 2:
        return np.nan
    first = next(VALUES[:20, k] for k in range(3) if VALUES[0, k] == past[0])
    centred = first - first.mean()
    slope = np.dot(centred[1:], centred[:-1]) / np.dot(centred[:-1], centred[:-1])
    return past[-1] - first.mean() - slope * (past[-2] - first.mean())


def slow_profile_residual(past):
    return np.nan if len(past) <= 21 else past[-1] - np.median([past[-1 - 7 * lag] for lag in (1, 2, 3)])


def slow_holt_winters(past, period=7):
    level, season = past[:period].mean(), list(past[:period] - past[:period].mean())
    error = np.nan
    for value in past[period:]:
        error = value - (level + season[0])
        level, season = level + 0.02 * error, [*season[1:], season[0] + 0.2 * error]
    return error


def slow_smoothing(past):
    level, error = past[0], np.nan
    for value in past[1:]:
        error = value - level
        level += 0.02 * error
    return error


@pytest.mark.parametrize(
    ("chart", "slow"),
    [
        (lambda values: charts.ewma(values, 0.1), slow_ewma),
        (lambda values: charts.cusum(values, 0.5), slow_cusum),
        (lambda values: charts.rolling_z(values, 10), slow_rolling_z),
        (lambda values: charts.movement(values, 10), slow_movement),
        (lambda values: charts.glr(values, (2, 5, 30)), slow_glr),
        (lambda values: charts.mean_square(values, 10), slow_mean_square),
        (lambda values: charts.ar_residuals(values, 20), slow_ar_residual),
        (lambda values: charts.profile_residuals(values, 7, 3), slow_profile_residual),
        (lambda values: charts.holt_winters_residuals(values, 7), slow_holt_winters),
        (lambda values: charts.holt_winters_residuals(values, None), slow_smoothing),
    ],
)
def test_charts(chart, slow):
    np.testing.assert_allclose(chart(VALUES), one_by_one(slow), rtol=1e-9, atol=1e-12)


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
    assert np.isnan(charts.profile_residuals(still, 10, 3)).all()
    assert np.isnan(charts.holt_winters_residuals(still, 40)).all()


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="weight must be a number > 0 and <= 1, got 0"):
        charts.ewma(VALUES, 0)
    with pytest.raises(ValueError, match="window must be an integer >= 2, got 1"):
        charts.rolling_z(VALUES, 1)
    with pytest.raises(TypeError, match="window must be an integer >= 1"):
        charts.movement(VALUES, 2.5)

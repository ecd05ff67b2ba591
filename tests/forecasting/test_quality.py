"""How good the autoregression's forecasts are, beside the last value, with stated error levels and fixed seeds."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tests.bands import certainly_less, margin
from tests.cases import full
from tocsin.forecasting import Autoregression, LastValue, SeasonalNaive

SIGNALS, STEPS, WARM = 16, 2000, 800


def noise(seed):
    return np.random.default_rng(seed).normal(size=(STEPS, SIGNALS))


def wave(period):
    phase = np.random.default_rng(99).uniform(0, 2 * np.pi, size=SIGNALS)
    return np.sin(2 * np.pi * np.arange(STEPS)[:, np.newaxis] / period + phase)


def errors(forecaster, values, horizon=3, warm=WARM):
    """Mean absolute error of each signal, over all steps of the horizon."""
    median = forecaster.open(values.shape[1], horizon).run(values).median
    return np.mean(
        [np.abs(median[warm : -step - 1, :, step] - values[warm + step + 1 :]).mean(axis=0) for step in range(horizon)],
        axis=0,
    )


GAINS = {
    # (values, the least share by which the last value's error is undercut)
    "white noise": (lambda: noise(0), 0.2),
    "AR(1), 0.5": (lambda: lfilter([1], [1, -0.5], noise(1), axis=0), 0.12),
    "AR(1), -0.8": (lambda: lfilter([1], [1, 0.8], noise(2), axis=0), 0.25),
    "period below lags": (lambda: 5 * wave(12) + noise(3), 0.6),
    "period above lags": (lambda: 5 * wave(60) + noise(4), 0.25),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "gain"), GAINS.values(), ids=GAINS.keys())
def test_it_beats_the_last_value_where_there_is_something_to_learn(make, gain):
    """Paired over 16 independent signals, by the stated share; error level 1e-4."""
    values = make()
    assert certainly_less(errors(Autoregression(), values), (1 - gain) * errors(LastValue(), values))


@pytest.mark.slow
@pytest.mark.parametrize("period", [full(12), 50])
def test_a_period_searched_is_as_good_as_one_given(period):
    """Within 3% over 16 signals, error level 1e-3; and 3% better than the last period again, error level 1e-4."""
    values = 10.0 * (wave(period) > 0.8) + noise(6)
    searched, given = errors(Autoregression(), values), errors(Autoregression(period=period), values)
    difference = searched / given - 1
    assert difference.mean() < 0.03 + margin(difference, 1e-3)
    assert certainly_less(searched, 0.97 * errors(SeasonalNaive(period), values))
    assert certainly_less(searched, 0.65 * errors(LastValue(), values))


@pytest.mark.slow
@pytest.mark.parametrize("period", [None, full(0), full(50)])
def test_it_costs_little_on_a_random_walk(period):
    """Nothing can beat the last value there: at most 4% worse over 16 walks, error level 1e-3."""
    values = np.cumsum(noise(7), axis=0)
    excess = errors(Autoregression(period=period), values) / errors(LastValue(), values) - 1
    assert excess.mean() + margin(excess, 1e-3) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "size", "loss"),
    [
        full(5, 100, 0.15),
        (33, 100, 0.15),
        full(40, 100, 0.1),
        full(500, 100, 0.03),
        full(1500, 100, 0.03),
        (1500, 1e4, 0.03),
    ],
)
def test_a_spike_in_the_past_does_not_ruin_what_follows(at, size, loss):
    """100 deviations or more, once: from 100 steps on at most that much worse, over 16 signals; error level 1e-3."""
    values = lfilter([1], [1, -0.5], noise(8), axis=0)
    spiked = values.copy()
    spiked[at] += size * values.std()
    warm = max(WARM // 2, at + 100)
    forecaster = Autoregression()
    excess = errors(forecaster, spiked, warm=warm) / errors(forecaster, values, warm=warm) - 1
    assert excess.mean() + margin(excess, 1e-3) < loss


@pytest.mark.slow
def test_a_spike_does_not_hide_the_period():
    values = 5 * wave(60) + noise(9)
    plain = errors(Autoregression(), values)
    values[100] += 1000
    spiked = errors(Autoregression(), values)
    assert (spiked / plain).mean() < 1.05


@pytest.mark.slow
def test_missing_values_cost_little():
    """A tenth of the values missing: the known ones are forecast at most 15% worse, error level 1e-3."""
    values = 5 * wave(12) + noise(10)
    holes = np.where(np.random.default_rng(0).random(values.shape) < 0.1, np.nan, values)
    forecaster = Autoregression()
    median = forecaster.open(SIGNALS, 1).run(holes).median[WARM:-1, :, 0]
    excess = np.abs(median - values[WARM + 1 :]).mean(axis=0) / errors(forecaster, values, horizon=1) - 1
    assert excess.mean() + margin(excess, 1e-3) < 0.15


def test_a_long_standstill_does_not_stop_it_from_learning():
    """A signal that rested for a month of minutes and came back as another one is learned like a new one."""
    rest = np.zeros((45_000, SIGNALS))
    values = lfilter([1], [1, 0.8], noise(11), axis=0)
    changed = np.concatenate([lfilter([1], [1, -0.5], noise(12), axis=0), rest, values])
    forecaster = Autoregression(8, period=0, memory=500)
    after = errors(forecaster, changed, warm=changed.shape[0] - STEPS + WARM)
    assert (after / errors(forecaster, values)).mean() < 1.02

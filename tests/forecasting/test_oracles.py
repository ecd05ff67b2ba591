"""The compiled forecasters against their slow, obvious versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.cases import full
from tests.forecasting import oracles
from tocsin.forecasting import Autoregression, ExponentialSmoothing, LastValue, SeasonalNaive, find_period
from tocsin.forecasting.simple import FORGET, RATES

# Few different values, so that ties and constants come up; many gaps, also at the beginning and the end.
histories = hnp.arrays(
    float, st.integers(1, 60), elements=st.one_of(st.just(np.nan), st.floats(-3, 3), st.integers(-1, 1).map(float))
)


def prefixes(history):
    return [history[: end + 1] for end in range(history.size)]


def run(forecaster, history, horizon):
    return forecaster.open(1, horizon).run(history[:, np.newaxis]).median[:, 0]


def signal(kind, seed, steps=700):
    """Signals with gaps long and short, a spike, a constant stretch, and a late start."""
    rng = np.random.default_rng(seed)
    time = np.arange(steps)
    values = {
        "noise": lambda: rng.normal(size=steps),
        "walk": lambda: np.cumsum(rng.normal(size=steps)),
        "wave": lambda: 5 * np.sin(2 * np.pi * time / 17) + rng.normal(size=steps),
        "pulses": lambda: 5.0 * (time % 23 < 4) + 0.3 * rng.normal(size=steps),
        "steps": lambda: np.round(np.cumsum(0.4 * rng.normal(size=steps))),
    }[kind]()
    values[200:215] = np.nan
    values[430:432] = np.nan
    values[300:360] = values[299]
    values[rng.random(steps) < 0.04] = np.nan
    values[rng.integers(0, steps, 3)] += 100
    values[: seed % 5] = np.nan
    return values


@given(history=histories, horizon=st.integers(1, 4))
def test_last_value(history, horizon):
    expected = [oracles.last_value(part, horizon) for part in prefixes(history)]
    np.testing.assert_array_equal(run(LastValue(), history, horizon), expected)


@given(history=histories, horizon=st.integers(1, 9), period=st.sampled_from([0, 2, 3, 5, 11, 30]))
def test_seasonal_naive(history, horizon, period):
    expected = [oracles.seasonal_naive(part, horizon, period) for part in prefixes(history)]
    np.testing.assert_array_equal(run(SeasonalNaive(period), history, horizon), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wave", "pulses", "noise"])
@pytest.mark.parametrize("seed", [0, full(3)])
def test_seasonal_naive_with_a_period_searched(kind, seed):
    history = signal(kind, seed)
    begin = int(np.flatnonzero(~np.isnan(history))[0])
    expected, period, found = [], 0, set()
    for part in prefixes(history):
        expected.append(oracles.seasonal_naive(part, 6, period))
        if part.size - begin in (10, 20, 40, 80, 160, 320):
            period = find_period(part[begin:]) or 0
            found.add(period)
    assert kind == "noise" or period in (17, 23)
    np.testing.assert_array_equal(run(SeasonalNaive(search=320), history, 6), expected)


@given(history=histories, rate=st.sampled_from([0.01, 0.3, 1.0]))
def test_exponential_smoothing_with_a_rate(history, rate):
    expected = [oracles.exponential_smoothing(part, 2, [rate], FORGET) for part in prefixes(history)]
    np.testing.assert_allclose(run(ExponentialSmoothing(rate), history, 2), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "walk", "wave", "pulses"])
def test_exponential_smoothing_with_the_rate_chosen(kind):
    """Continuous signals: where two rates tie, rounding would decide."""
    history = signal(kind, 2, 300)
    expected = [oracles.exponential_smoothing(part, 2, RATES, FORGET) for part in prefixes(history)]
    got = run(ExponentialSmoothing(), history, 2)
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)
    single = [run(ExponentialSmoothing(rate), history, 2) for rate in RATES]
    assert sum(np.any(got == one) and not np.array_equal(got, one, equal_nan=True) for one in single) >= 2


SETTINGS = {
    "plain": {"lags": 7, "period": 0, "memory": 5000, "ridge": 10.0},
    "shortest": {"lags": 2, "period": 0, "memory": 10, "ridge": 1.0},
    "strong prior": {"lags": 5, "period": 0, "memory": 100, "ridge": 1e6},
    "weak prior": {"lags": 5, "period": 0, "memory": 300, "ridge": 0.01},
    "period beyond the lags": {"lags": 5, "period": 17, "memory": 1000, "ridge": 10.0},
    "period within the lags": {"lags": 20, "period": 17, "memory": 1000, "ridge": 10.0},
    "period one more than the lags": {"lags": 16, "period": 17, "memory": 200, "ridge": 10.0},
    "period below the horizon": {"lags": 2, "period": 3, "memory": 1000, "ridge": 10.0},
    "searched": {"lags": 6, "period": None, "memory": 1000, "ridge": 10.0, "search": 320},
    "searched, many lags": {"lags": 32, "period": None, "memory": 5000, "ridge": 10.0, "search": 640},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [full("noise"), full("walk"), "wave", full("pulses"), "steps"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("horizon", [1, 7])
def test_autoregression(settings, kind, horizon):
    history = signal(kind, 4 + horizon)
    oracle = oracles.Autoregression(horizon, **settings)
    expected = np.array([oracle.push(value) for value in history])
    got = run(Autoregression(**settings), history, horizon)
    # Sums run in another order and the solution by another way: equal but for rounding, measured by the signal.
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * np.nanstd(history))
    assert oracle.weights is not None
    assert not np.array_equal(got[:, 0], run(LastValue(), history, 1)[:, 0], equal_nan=True)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000), lags=st.integers(2, 9), horizon=st.integers(1, 6),
    period=st.sampled_from([0, 2, 3, 4, 7, 8, 13, 40]), memory=st.sampled_from([10, 70, 5000]),
    ridge=st.sampled_from([0.1, 10.0]), gaps=st.sampled_from([0.0, 0.1, 0.6]),
)  # fmt: skip
def test_autoregression_with_any_settings(seed, lags, horizon, period, memory, ridge, gaps):
    rng = np.random.default_rng(seed)
    history = np.cumsum(rng.normal(size=180)) + 10 * rng.normal(size=180)
    history[rng.random(180) < gaps] = np.nan
    oracle = oracles.Autoregression(horizon, lags=lags, period=period, memory=memory, ridge=ridge)
    expected = np.array([oracle.push(value) for value in history])
    got = run(Autoregression(lags, period=period, memory=memory, ridge=ridge), history, horizon)
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-7)


def test_the_oracle_saw_periods_change_and_large_rows():
    """Otherwise the comparisons above would not reach what they are there for."""
    oracle = oracles.Autoregression(7, **SETTINGS["searched"])
    periods, shrunk = set(), 0
    for value in signal("wave", 11):
        oracle.push(value)
        periods.add(oracle.period)
        shrunk += bool(oracle.rows) and np.abs(oracle.rows[-1]).max() < 0.99 * np.abs(np.diff(oracle.filled)).max()
    assert {0, 17} <= periods
    assert shrunk > 0


def test_constant_stretches_teach_nothing_and_are_not_forgotten_through():
    """A signal that stood still for long is forecast as before it stood still; memory counts what moved."""
    rng = np.random.default_rng(0)
    wave = np.sin(np.arange(600) * 2 * np.pi / 25) + 0.01 * rng.normal(size=600)
    still = np.concatenate([wave, np.full(30_000, wave[-1]), wave])
    forecaster = Autoregression(8, period=0, memory=100)
    errors = np.abs(run(forecaster, still, 1)[:-1, 0] - still[1:])
    before, after = errors[500:599], errors[30_620:30_720]
    assert after.mean() < 1.5 * before.mean()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, *map(full, range(3, 12))])
def test_find_period(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(12, 260))
    time = np.arange(size)
    found = set()
    for noise in (0.2, 0.6, 1.0, 3.0):
        length = rng.uniform(3, 40)
        values = np.sin(2 * np.pi * time / length) + noise * rng.normal(size=size) + rng.normal() * time / size
        values[rng.random(size) < rng.choice([0.0, 0.2, 0.45])] = np.nan
        got = find_period(values)
        assert got == oracles.period(values)
        found.add(got)
    assert found != {None} or size < 60

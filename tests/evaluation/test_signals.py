"""Families of clean signals and the demo's machine: what they claim to be."""

import numpy as np
import pytest

from tests.bands import margin
from tocsin.data import infer_interval
from tocsin.evaluation.machine import FEATURES, simulate_machine
from tocsin_bench.families import FAMILIES, PERIOD


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_draws_independent_signals_from_its_seed(name):
    first, again, other = (FAMILIES[name](np.random.default_rng(seed), 5, 900) for seed in (1, 1, 2))
    assert first.shape == (900, 5)
    assert first.dtype == np.float64
    assert np.isnan(first).any() == ("missing" in name)
    assert not np.isinf(first).any()
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)
    assert np.unique(first, axis=1).shape[1] == 5


def lagged_correlation(values, lag):
    centred = values - values.mean(axis=0)
    return (centred[lag:] * centred[:-lag]).mean(axis=0) / centred.var(axis=0)


@pytest.mark.parametrize(
    ("name", "lag", "expected"), [("independent", 1, 0.0), ("autoregressive", 1, 0.8), ("garch", 1, 0.0)]
)
def test_the_correlation_of_neighbours(name, lag, expected):
    """200 signals, error level 1e-4, and a bias of 1/length."""
    values = FAMILIES[name](np.random.default_rng(0), 200, 4000)
    found = lagged_correlation(values, lag)
    assert abs(found.mean() - expected) < margin(found, 1e-4) + 1e-3


def test_the_wave_and_the_waving_scale():
    rng = np.random.default_rng(0)
    seasonal = FAMILIES["seasonal"](rng, 100, 2400)
    assert lagged_correlation(seasonal, PERIOD).mean() == pytest.approx(4.5 / 5.5, abs=0.02)
    scale = np.abs(FAMILIES["seasonal-scale"](rng, 100, 2400))
    assert lagged_correlation(scale, PERIOD).mean() > 0.3
    assert lagged_correlation(scale, PERIOD // 2).mean() < -0.1


def drawn(name, length=4000):
    return FAMILIES[name](np.random.default_rng(0), 100, length)


@pytest.mark.parametrize("name", ["garch", "stochastic-volatility"])
def test_volatility_comes_in_clusters(name):
    values = drawn(name)
    assert abs(lagged_correlation(values, 1).mean()) < 0.01
    assert lagged_correlation(np.abs(values), 1).mean() > 0.1
    assert values.std() == pytest.approx({"garch": 1.0, "stochastic-volatility": np.exp(0.5**2)}[name], rel=0.1)


def test_regimes_and_switches():
    regimes = drawn("regimes", 6000)
    means = regimes.reshape(3, 2000, 100).mean(axis=1)
    assert means.std() == pytest.approx(5, rel=0.2)
    assert np.std(regimes[:2000] - means[0], axis=0).std() > 0.2
    on = drawn("on-off") > 5
    assert on.mean() == pytest.approx(0.5, abs=0.05)
    assert np.diff(on, axis=0).mean() == pytest.approx(1 / 100, rel=0.1)
    steps = np.abs(np.diff(drawn("walk-with-steps"), axis=0)) > 6
    assert steps.mean() == pytest.approx(1 / 500 * 0.55, rel=0.3)


def test_noise_in_proportion_to_the_level():
    values = drawn("level-noise", 24 * 200).reshape(200, 24, 100)
    level, spread = values.mean(axis=0), values.std(axis=0)
    np.testing.assert_allclose(spread / level, 0.1, rtol=0.3)
    assert level.max() / level.min() > 15
    assert (drawn("lognormal-daily") > 0).all()


def test_weeks_have_quiet_days():
    days = drawn("weekly-with-holidays", 24 * 700)
    assert lagged_correlation(days, 24 * 7).mean() > lagged_correlation(days, 24).mean() > 0.3


@pytest.mark.parametrize(("name", "day"), [("weekly-hourly", 24), ("weekly-5min", 288)])
def test_weeks_repeat(name, day):
    """The season's share of the variance is what a week later still agrees."""
    values = drawn(name, 21 * day)
    assert lagged_correlation(values, 7 * day).mean() > 0.55 > lagged_correlation(values, 2 * day).mean() > 0.2


def test_values_that_are_few():
    quantised, counts, moving = drawn("quantised"), drawn("counts"), drawn("rarely-moving")
    assert np.array_equal(quantised, np.round(2 * quantised) / 2)
    assert np.array_equal(counts, np.round(counts))
    assert counts.min() == 0
    assert (np.diff(moving, axis=0) != 0).mean() == pytest.approx(6 / 7 / 100, rel=0.1)
    assert 0.1 < (drawn("saturated") == 3).mean() < 0.4


def test_what_is_missing():
    assert np.isnan(drawn("missing")).mean() == pytest.approx(0.2, abs=0.01)
    blocks = np.isnan(drawn("missing-blocks"))
    assert blocks.mean() == pytest.approx(50 / 550, rel=0.15)
    assert np.diff(blocks, axis=0).mean() < 0.005


def test_bursts_decay():
    values = drawn("bursts")
    assert values.min() > -6
    assert lagged_correlation(values, 1).mean() > 0.8


def test_the_machine_has_six_faults_and_a_gap():
    machine = simulate_machine(3)
    assert machine.values.shape == (8064, len(FEATURES))
    assert infer_interval(machine.times) == np.timedelta64(5, "m")
    assert len(machine.faults) == 6
    assert all(0 < fault.first <= fault.last < 8064 and fault.feature in FEATURES for fault in machine.faults)
    assert np.isnan(machine.values).all(axis=1).sum() == 24
    assert np.array_equal(machine.values, simulate_machine(3).values, equal_nan=True)
    assert not np.array_equal(machine.values, simulate_machine(4).values, equal_nan=True)

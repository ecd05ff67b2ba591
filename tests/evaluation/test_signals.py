"""Families of clean signals and the demo's machine: what they claim to be."""

import numpy as np
import pytest

from tests.bands import margin
from tocsin.data import infer_interval
from tocsin.evaluation import FAMILIES
from tocsin.evaluation.families import PERIOD
from tocsin.evaluation.machine import FEATURES, simulate_machine


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_draws_independent_signals_from_its_seed(name):
    first, again, other = (FAMILIES[name](np.random.default_rng(seed), 5, 300) for seed in (1, 1, 2))
    assert first.shape == (300, 5)
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.unique(first[0]).size == 5


def lagged_correlation(values, lag):
    centred = values - values.mean(axis=0)
    return (centred[lag:] * centred[:-lag]).mean(axis=0) / centred.var(axis=0)


@pytest.mark.parametrize(("name", "lag", "expected"), [("independent", 1, 0.0), ("autoregressive", 1, 0.8)])
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


def test_the_machine_has_six_faults_and_a_gap():
    machine = simulate_machine(3)
    assert machine.values.shape == (8064, len(FEATURES))
    assert infer_interval(machine.times) == np.timedelta64(5, "m")
    assert len(machine.faults) == 6
    assert all(0 < fault.first <= fault.last < 8064 and fault.feature in FEATURES for fault in machine.faults)
    assert np.isnan(machine.values).all(axis=1).sum() == 24
    assert np.array_equal(machine.values, simulate_machine(3).values, equal_nan=True)
    assert not np.array_equal(machine.values, simulate_machine(4).values, equal_nan=True)

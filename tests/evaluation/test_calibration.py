"""Measures of calibration against slow versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests import oracles
from tocsin.evaluation import alarm_rate, calibration_gap, error_by_decile


@given(p=hnp.arrays(float, st.integers(1, 50), elements=st.floats(0, 1)))
def test_gap_is_the_wasserstein_distance(p):
    assert calibration_gap(p) == pytest.approx(oracles.wasserstein_to_uniform(p), abs=1e-12)


def test_gap_is_the_mean_distance_of_the_distribution_functions():
    p = np.random.default_rng(0).beta(0.5, 1.0, size=(300, 2))
    levels = (np.arange(100_000) + 0.5) / 100_000
    for k in range(2):
        distance = np.abs(np.searchsorted(np.sort(p[:, k]), levels, side="right") / 300 - levels).mean()
        assert calibration_gap(p)[k] == pytest.approx(distance, abs=1e-5)


def test_rate_counts_equality():
    assert alarm_rate(np.array([[0.01, 0.5], [0.02, 0.01]]), 0.01).tolist() == [0.5, 0.5]


def test_error_by_decile():
    true_p = np.array([0.05, 0.05, 0.15, 1.0])
    p = np.array([0.15, 0.05, 0.45, 0.5])
    errors = error_by_decile(p, true_p)
    np.testing.assert_allclose(errors[[0, 1, 9]], [0.05, 0.3, 0.5])
    assert np.isnan(errors[2:9]).all()

"""The laws against a library of them, in the middle and far out in the tails."""

import numpy as np
import pytest
from scipy import special

from tocsin.conformal.merge import chi2_tail, normal_cdf, normal_quantile


def test_the_normal_law():
    values = np.concatenate([np.linspace(-37, 37, 2001), [np.inf, -np.inf, 0.0]])
    np.testing.assert_allclose(normal_cdf(values), special.ndtr(values), rtol=1e-13)
    assert np.isnan(normal_cdf(np.array([np.nan]))).all()
    assert normal_cdf(np.zeros((2, 3))).shape == (2, 3)


def test_its_quantiles():
    levels = np.concatenate([10.0 ** -np.arange(1, 300), np.linspace(0.01, 0.99, 99), [0.0, 1.0, 1 - 1e-15]])
    np.testing.assert_allclose(normal_quantile(levels), special.ndtri(levels), rtol=1e-13, atol=1e-15)
    assert np.isnan(normal_quantile(np.array([np.nan, -0.1, 1.1]))).all()


@pytest.mark.parametrize("pairs", [1, 2, 15, 400])
def test_the_tail_of_chi_squared(pairs):
    statistic = np.concatenate([[0.0], np.geomspace(1e-6, 1400, 500)])
    found = chi2_tail(np.full(501, float(pairs)), statistic)
    expected = special.chdtrc(2.0 * pairs, statistic)
    there = expected > 1e-300
    np.testing.assert_allclose(found[there], expected[there], rtol=1e-11)
    assert chi2_tail(np.array([1.0]), np.array([np.inf])) == 0

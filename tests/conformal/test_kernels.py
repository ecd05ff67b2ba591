"""The compiled kernels against the formulas."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from tests import oracles
from tocsin.conformal import kernels

SCORES = st.floats(min_value=0, max_value=1e6, width=32)


def on_grid(values):
    return np.round(np.asarray(values) / kernels.GRID) * kernels.GRID


def bits_of(score):
    bits = score.view(f"int{8 * score.itemsize}")
    return bits, 2 ** (8 * score.itemsize - 1) - 1


@pytest.mark.slow
@given(
    past=hnp.arrays(np.float32, st.integers(0, 300), elements=SCORES),
    score=SCORES,
    seed=st.integers(0, 2**32 - 1),
)
def test_p_value_is_the_formula(past, score, seed):
    weights = on_grid(np.random.default_rng(seed).random(past.size)).astype(np.float32)
    total = weights.sum(dtype=np.float64)
    expected = oracles.p_value(past.astype(float), weights.astype(float), score)
    assert kernels.conformal_p(past, weights, total, np.float32(score)) == pytest.approx(expected, rel=1e-14)
    expected = oracles.p_value(past.astype(float), np.ones(past.size), score)
    assert kernels.unweighted_p(past, np.float32(score)) == pytest.approx(expected, rel=1e-14)
    draw = 0.3
    expected = oracles.smoothed_p_value(past.astype(float), weights.astype(float), score, draw)
    assert kernels.smoothed_p(past, weights, total, np.float32(score), draw) == pytest.approx(expected, rel=1e-14)


def test_sums_of_weights_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    weights = on_grid(rng.random(20_000)).astype(np.float32)
    past = np.ones_like(weights)
    exact = math.fsum(weights.astype(float))
    for _ in range(20):
        order = rng.permutation(weights.size)
        assert kernels.weight_at_least(past, weights[order], np.float32(1)) == exact


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("size", [0, 1, 50, 500])
def test_quantile_is_the_weighted_conformal_quantile(dtype, alpha, size):
    rng = np.random.default_rng(size)
    past = rng.normal(size=size).astype(dtype)
    weights = on_grid(rng.random(size)).astype(dtype)
    score = np.empty(1, dtype=dtype)
    found = kernels.quantile(past, weights, weights.sum(dtype=float), alpha, score, *bits_of(score))
    if alpha == 1.0 and size > 0:
        assert found == past.min()
    else:
        assert found == oracles.quantile(past.astype(float), weights.astype(float), alpha)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantile_with_signed_zeros_infinities_and_subnormals(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    past = np.array([-np.inf, -1.0, -tiny, -0.0, 0.0, tiny, 1.0, np.inf], dtype=dtype)
    weights = np.ones_like(past)
    score = np.empty(1, dtype=dtype)
    for k, expected in enumerate(np.sort(past)[::-1], start=1):
        # p(s) for the k-th largest score is (1 + k) / 9
        found = kernels.quantile(past, weights, 8.0, (1 + k) / 9, score, *bits_of(score))
        assert found == expected
        assert kernels.conformal_p(past, weights, 8.0, past.dtype.type(found)) >= (1 + k) / 9


@pytest.mark.slow
@given(p=hnp.arrays(float, st.integers(1, 40), elements=st.floats(0, 1)))
def test_slopes_are_equation_11(p):
    slopes = np.empty_like(p)
    kernels.wasserstein_slopes(p, slopes)
    np.testing.assert_allclose(slopes, oracles.wasserstein_slopes(p), rtol=0, atol=1e-15)


def test_slopes_are_the_derivative_of_the_wasserstein_distance():
    rng = np.random.default_rng(1)
    for size in (1, 2, 7, 30):
        p = rng.random(size)
        slopes = np.empty(size)
        kernels.wasserstein_slopes(p, slopes)
        for i in range(size):
            step = np.zeros(size)
            step[i] = 1e-6
            difference = oracles.wasserstein_to_uniform(p + step) - oracles.wasserstein_to_uniform(p - step)
            assert slopes[i] == pytest.approx(difference / 2e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("size", "available", "window"), [(10, 60, 40), (10, 48, 40), (7, 45, 40), (12, 30, 40), (5, 5, 40), (1, 9, 4)]
)
def test_gradient_is_the_derivative_of_the_objective_in_the_weights(size, available, window):
    """Finite differences of W1(p(w), uniform), each p with the scores and lags it had at its time."""
    rng = np.random.default_rng(available)
    lags = min(available, window)
    scores = np.abs(rng.normal(size=available + 1))  # in the order of arrival; the batch is the end of it
    weights = 0.2 + 0.6 * rng.random(lags)

    def batch_p(w):
        p = []
        for t in range(available + 1 - size, available + 1):
            past = scores[:t][::-1][:lags]
            p.append(oracles.p_value(past, w[: past.size], scores[t]))
        return np.array(p)

    def total(t):
        return weights[: min(t, lags)].sum()

    p = batch_p(weights)
    slopes = oracles.wasserstein_slopes(p)
    scaled = slopes / (1 + np.array([total(t) for t in range(available + 1 - size, available + 1)]))
    row = np.concatenate([np.full(3, np.inf), scores[::-1], np.full(3, np.inf)])  # what lies outside would show
    gradient = np.full(lags, np.nan)
    kernels.batch_gradient(gradient, row, 3, available, p, scaled)
    for k in range(lags):
        step = np.zeros(lags)
        step[k] = 1e-6
        up = oracles.wasserstein_to_uniform(batch_p(weights + step))
        down = oracles.wasserstein_to_uniform(batch_p(weights - step))
        assert gradient[k] == pytest.approx((up - down) / 2e-6, abs=2e-7)


points = hnp.arrays(float, st.integers(1, 60), elements=st.floats(-3, 3))


@given(point=points, share=st.floats(0, 1))
def test_projection_matches_the_breakpoint_solution(point, share):
    point = on_grid(point)
    least = share * point.size
    weights = np.empty_like(point)
    total = kernels.project(point, least, weights)
    np.testing.assert_allclose(weights, oracles.project(point, least), rtol=0, atol=1e-9)
    np.testing.assert_allclose(oracles.project_fast(point, least), oracles.project(point, least), rtol=0, atol=1e-9)
    assert np.all((weights >= 0) & (weights <= 1))
    assert weights.sum() >= least - 1e-9
    assert total == pytest.approx(weights.sum(), abs=1e-8)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 8), share=st.floats(0.05, 1))
def test_projection_matches_a_quadratic_program(seed, size, share):
    point = on_grid(np.random.default_rng(seed).normal(0.3, 1.0, size))
    least = share * size
    solution = minimize(
        lambda w: np.sum((w - point) ** 2),
        x0=np.ones(size),
        jac=lambda w: 2 * (w - point),
        bounds=[(0, 1)] * size,
        constraints={"type": "ineq", "fun": lambda w: w.sum() - least, "jac": lambda w: np.ones(size)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    weights = np.empty(size)
    kernels.project(point, least, weights)
    np.testing.assert_allclose(weights, solution.x, rtol=0, atol=1e-5)


def test_projection_of_hard_points():
    for point, least, expected in [
        ([5.0, 5.0, 5.0], 1.0, [1, 1, 1]),
        ([-5.0, -5.0, -5.0], 3.0, [1, 1, 1]),
        ([-1e4, 0.0, 0.0], 2.0, [0, 1, 1]),
        ([0.0, 0.0, 0.0, 0.0], 1.0, [0.25] * 4),
        ([0.5, -0.5], 1.0, [1, 0]),
    ]:
        for dtype in ("float32", "float64"):
            weights = np.empty(len(point), dtype=dtype)
            kernels.project(np.array(point, dtype=dtype), least, weights)
            np.testing.assert_allclose(weights, expected, atol=1e-7)


def test_p_stays_at_one_where_the_nominal_sum_is_rounded_down():
    past, weights = np.ones(4), np.ones(4)
    below = 4.0 - 1e-9
    assert kernels.conformal_p(past, weights, below, 1.0) == 1.0
    assert kernels.smoothed_p(past, weights, below, 0.0, 1.0 - 1e-12) == 1.0


def test_projection_ends_where_numbers_are_coarse():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for size, offset in itertools.product((20, 50), (-3e3, -3e5, 1e5)):
            point = (offset + rng.normal(size=size)).astype(dtype)
            weights = np.empty_like(point)
            kernels.project(point, 14.0, weights)
            assert weights.sum(dtype=float) >= 14.0


def test_power_is_the_power():
    for exponent in (0, 1, 2, 7, 100, 12345):
        assert kernels._power(0.999, exponent) == pytest.approx(0.999**exponent, rel=1e-12)


def test_uniform_draws_are_uniform_and_never_0_or_1():
    draws = np.array([kernels.uniform(np.uint64(12345), 3, i) for i in range(20_000)])
    assert 0 < draws.min() < draws.max() < 1
    # Kolmogorov's distance stays under 1.95/sqrt(n) with probability .999.
    distance = np.abs(np.sort(draws) - (np.arange(draws.size) + 0.5) / draws.size).max()
    assert distance < 1.95 / np.sqrt(draws.size)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 3.3 / np.sqrt(draws.size)

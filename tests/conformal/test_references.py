"""The reference scorers against their definitions."""

import numpy as np
import pytest
from scipy.stats import norm

from tests import oracles
from tocsin.conformal import ExponentialDecay, GaussianTail, SlidingWindow, SplitConformal, kernels


def by_definition(scores, weights_of):
    """p of every score against all that came before it (newest first), weighted by `weights_of(how many)`."""
    p = []
    for t, score in enumerate(scores):
        past, weights = weights_of(scores[:t])
        p.append(oracles.p_value(past, weights, score))
    return np.array(p)


SCORES = np.round(np.abs(np.random.default_rng(0).normal(size=400)), 2)


def test_sliding_window():
    p = SlidingWindow(window=50, dtype="float64").run(SCORES[:, np.newaxis])[:, 0]
    expected = by_definition(SCORES, lambda past: (past[-50:], np.ones(min(len(past), 50))))
    np.testing.assert_array_equal(p, expected)


def test_split_conformal():
    p = SplitConformal(calibration=50, dtype="float64").run(SCORES[:, np.newaxis])[:, 0]
    expected = by_definition(SCORES, lambda past: (past[:50], np.ones(min(len(past), 50))))
    np.testing.assert_array_equal(p, expected)


def test_exponential_decay():
    p = ExponentialDecay(decay=0.9, window=60, dtype="float64").run(SCORES[:, np.newaxis])[:, 0]
    expected = by_definition(SCORES, lambda past: (past[::-1][:60], 0.9 ** np.arange(min(len(past), 60))))
    np.testing.assert_allclose(p, expected, rtol=1e-9)


def test_exponential_decay_sums_to_the_reciprocal():
    scorer = ExponentialDecay(decay=0.99)
    scorer.run(np.zeros((3000, 1)))
    assert scorer.effective_size[0] == pytest.approx(100, abs=1e-4)


@pytest.mark.parametrize("make", [SlidingWindow, ExponentialDecay, SplitConformal])
def test_weights_are_shown_by_lag(make):
    scorer = make(2)
    scorer.run([[1.0, np.nan], [2.0, 5.0], [3.0, np.nan]])
    weights = scorer.weights
    assert weights.shape == (2, scorer.window)
    assert np.count_nonzero(weights, axis=1).tolist() == [3, 1]
    np.testing.assert_allclose(weights.sum(axis=1), scorer.effective_size)


def test_gaussian_tail_after_calibration():
    scorer = GaussianTail(calibration=50)
    p = scorer.run(SCORES[:, np.newaxis])[:, 0]
    sample = SCORES[:50]
    np.testing.assert_allclose(p[50:], norm.sf(SCORES[50:], sample.mean(), sample.std(ddof=1)), rtol=1e-10)


def test_gaussian_tail_while_calibrating():
    p = GaussianTail(calibration=50).run(SCORES[:, np.newaxis])[:, 0]
    assert p[:2].tolist() == [1.0, 1.0]
    for t in range(3, 50):
        sample = SCORES[:t]
        assert p[t] == pytest.approx(norm.sf(SCORES[t], sample.mean(), sample.std(ddof=1)), rel=1e-10)


def test_gaussian_tail_of_signed_scores():
    scorer = GaussianTail(calibration=4)
    scorer.run([-1.0, -1.0, 1.0, 1.0])
    assert scorer.update(1.0)[0] == pytest.approx(norm.sf(1.0, 0.0, np.std([-1, -1, 1, 1], ddof=1)))


def test_gaussian_tail_is_never_zero():
    scorer = GaussianTail(calibration=10)
    scorer.run(SCORES[:10, np.newaxis])
    assert 0 < scorer.update([1e6])[0] < 1e-300
    assert 0 < scorer.update([np.inf])[0] < 1e-300


def test_gaussian_tail_of_a_constant():
    scorer = GaussianTail(calibration=10)
    scorer.run(np.full((10, 1), 0.1))
    assert scorer.update([0.1])[0] == 1.0
    assert scorer.update([0.05])[0] == 1.0
    assert 0 < scorer.update([0.1000001])[0] < 1e-300
    assert scorer.quantile(0.01)[0] == 0.1
    assert scorer.quantile(1e-310)[0] == np.inf


def test_gaussian_quantile_at_one_and_damaged_counts():
    scorer = GaussianTail(calibration=10)
    scorer.run(SCORES[:10])
    assert scorer.quantile(1.0)[0] == -np.inf
    state = scorer.state()
    state["learned"][0] = 11
    with pytest.raises(ValueError, match=r"state\['learned'\] is damaged: .*from 0 to 10"):
        GaussianTail.from_state(state)


def test_split_conformal_refuses_more_than_its_calibration():
    state = SplitConformal(calibration=5).state()
    state["learned"][0] = state["seen"][0] = 6
    with pytest.raises(ValueError, match=r"state\['learned'\] is damaged: .*at most 5"):
        SplitConformal.from_state(state)


def test_fixed_weights_are_on_the_grid_that_makes_sums_exact():
    scorer = ExponentialDecay(decay=0.9, dtype="float64")
    scorer.run(np.zeros(300))
    steps = scorer.weights / kernels.GRID
    np.testing.assert_array_equal(steps, np.round(steps))


def test_gaussian_tail_of_huge_scores():
    scorer = GaussianTail(calibration=10)
    scorer.run(1.7e308 * np.linspace(-1, 1, 10)[:, np.newaxis])
    assert 0 < scorer.update([1.7e308])[0] < 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlidingWindow(window=0), "window must be an integer from 1 to 65536, got 0"),
        (lambda: SplitConformal(calibration=0), "calibration must be an integer from 1 to 65536, got 0"),
        (lambda: ExponentialDecay(decay=1.0), "decay must be a number > 0 and < 1, got 1.0"),
        (lambda: ExponentialDecay(window=-3), "window must be an integer from 1 to 65536, got -3"),
        (lambda: GaussianTail(calibration=1), "calibration must be an integer from 2 to 65536, got 1"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()

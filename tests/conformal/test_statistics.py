"""What is promised of p-values, tested with stated error levels and fixed seeds."""

import numpy as np
import pytest
from scipy import stats

from tests.bands import margin
from tests.cases import full
from tocsin.conformal import W1ACAS, ExponentialDecay, SlidingWindow, SplitConformal

STREAMS = 400
LEVELS = np.concatenate([[0.001, 0.005, 0.01, 0.02], np.linspace(0.05, 0.95, 19), [0.99]])

CONFORMAL = {
    "w1acas recent": lambda: W1ACAS(STREAMS, window=500, threads=2),
    "w1acas recent, fast": lambda: W1ACAS(STREAMS, window=500, learning_rate=0.01, threads=2),
    "w1acas extend": lambda: W1ACAS(STREAMS, window=500, prior="extend", threads=2),
    "window": lambda: SlidingWindow(STREAMS, window=99, threads=2),
    "split": lambda: SplitConformal(STREAMS, calibration=99, threads=2),
    "decay": lambda: ExponentialDecay(STREAMS, threads=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", [full("exponential"), full("cauchy"), "coarse"])
@pytest.mark.parametrize("make", CONFORMAL.values(), ids=CONFORMAL.keys())
def test_independent_scores_alarm_at_most_at_the_level(make, law):
    """P(p <= alpha) <= alpha at 24 levels at once; error level 1e-3 for each scorer and law."""
    rng = np.random.default_rng(2)
    shape = (1200, STREAMS)
    scores = {
        "exponential": lambda: rng.exponential(size=shape),
        "cauchy": lambda: np.abs(rng.standard_cauchy(size=shape)),
        "coarse": lambda: rng.poisson(3.0, size=shape).astype(float),
    }[law]()
    p = make().run(scores)[100:]
    rates = np.stack([(p <= alpha).mean(axis=0) for alpha in LEVELS], axis=1)
    bound = LEVELS + margin(rates, 1e-3, comparisons=LEVELS.size)
    assert np.all(rates.mean(axis=0) <= bound)


@pytest.mark.slow
@pytest.mark.parametrize("learned", [0, 1, 10, 99])
def test_smoothed_equal_weight_p_is_uniform(learned):
    """Kolmogorov-Smirnov over 6,000 independent streams, after any number of past scores; error level 1e-3."""
    streams = 6000
    scores = np.random.default_rng(learned).poisson(2.0, size=(learned + 1, streams)).astype(float)
    p = SlidingWindow(streams, window=99, smoothing=5).run(scores)[-1]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_smoothed_p_values_of_one_stream_are_uniform_and_uncorrelated():
    """With the whole past as calibration they are independent; error level 1e-3 for each claim."""
    p = SlidingWindow(window=5000, smoothing=1).run(np.random.default_rng(0).normal(size=(5000, 1)))[:, 0]
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert stats.pearsonr(p[1:], p[:-1]).pvalue > 1e-3


def test_unsmoothed_equal_weight_p_has_the_known_law():
    """After m independent scores without ties, p is uniform on 1/(m+1), ..., 1; chi-squared, error level 1e-3."""
    streams, learned = 20_000, 9
    scores = np.random.default_rng(1).normal(size=(learned + 1, streams))
    p = SlidingWindow(streams, window=99).run(scores)[-1]
    counts = np.bincount(np.round(p * (learned + 1)).astype(int), minlength=learned + 2)[1:]
    assert stats.chisquare(counts).pvalue > 1e-3

"""The paper's propositions, over all orders of a few scores: nothing is drawn."""

from itertools import permutations

import numpy as np
import pytest

from tests import oracles
from tocsin.conformal import W1ACAS

WEIGHTS = np.array([0.25, 1.0, 0.5, 0.75, 0.0])
ORDERS = [np.array(order, dtype=float) for order in permutations(range(6))]


def chances(trend):
    """Of each order: all the same without a trend, else larger where scores rise (or fall) with time."""
    rises = np.array([np.arange(6) @ order for order in ORDERS])
    weights = np.exp(trend * (rises - rises.mean()))
    return weights / weights.sum()


def variations(chance):
    """The total variation between all scores and those with the new one and each past one exchanged."""
    by_order = {tuple(order): one for order, one in zip(ORDERS, chance, strict=True)}
    found = []
    for place in range(WEIGHTS.size):
        swapped = [order.copy() for order in ORDERS]
        for order in swapped:
            order[[place, -1]] = order[[-1, place]]
        found.append(sum(abs(by_order[tuple(order)] - one) for order, one in zip(swapped, chance, strict=True)) / 2)
    return np.array(found)


@pytest.mark.parametrize("trend", [-0.3, -0.02, 0.0, 0.02, 0.3])
def test_the_bounds_of_proposition_3_1(trend):
    """Scores without ties, exchangeable (no trend, a total variation of 0) or not."""
    chance, whole = chances(trend), 1 + WEIGHTS.sum()
    slack = WEIGHTS @ variations(chance) / whole
    excess = []
    for alpha in (0.05, 0.2, 0.25, 0.4, 0.5, 0.75, 0.9):
        rate = chance @ [order[-1] > oracles.quantile(order[:-1], WEIGHTS, alpha) for order in ORDERS]
        assert alpha - slack - 1 / whole < rate <= alpha + slack + 1e-12
        excess.append(rate - alpha)
    assert (slack == 0) == (trend == 0)
    assert max(excess) > 0.05 or trend < 0.3  # with a clear trend, alpha alone is no bound


def test_the_detectors_of_proposition_4_1_differ_at_equality():
    weights = np.array([1.0, 1.0, 1.0])
    at_equality = 0
    for order in permutations(np.arange(4.0)):
        past, new = np.array(order[:3]), order[3]
        p = oracles.p_value(past, weights, new)
        for alpha in (0.25, 0.3, 0.5, 0.6, 0.75):
            assert (new > oracles.quantile(past, weights, alpha)) == (p <= alpha)
            at_equality += p == alpha
    assert at_equality > 0


@pytest.mark.parametrize("prior", ["extend", "recent"])
def test_a_known_contamination_raises_p_by_at_most_its_share(prior):
    """The footnote of section 4: with a share of up to alpha' of anomalies in the past, p - alpha' is a lower bound.

    So p < alpha + alpha' wherever p against the normal past alone is below alpha: nothing is missed that would alarm.
    And p is at least 1 - alpha' times that one, which limits false alarms.
    """
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=800)
    anomalous = rng.random(800) < 0.05
    scores[anomalous] += 8
    scorer = W1ACAS(alpha_c=0.02, window=300, learning_rate=0.02, prior=prior, dtype="float64")
    shares, raised, normals = [], [], []
    for t, score in enumerate(scores):
        weights = scorer.weights[0][: min(t, 300)]
        past, known = scores[:t][::-1][:300], anomalous[:t][::-1][:300]
        p = scorer.update([score])[0]
        normal = (1 + weights[~known & (past >= score)].sum()) / (1 + weights[~known].sum())
        shares.append(weights[known].sum() / (1 + weights.sum()))
        raised.append(p - normal)
        normals.append(normal)
    shares, raised, normals = np.array(shares), np.array(raised), np.array(normals)
    assert np.all(raised <= shares + 1e-9)
    assert np.all(raised >= -shares * normals - 1e-9)
    assert (raised > 0.9 * shares)[300:].mean() > 0.02  # the bound is no idle one

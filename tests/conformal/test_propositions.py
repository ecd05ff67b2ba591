"""The paper's propositions, over all orders of a few scores: no chance, no tolerance."""

from itertools import permutations

import numpy as np
import pytest

from tests import oracles

WEIGHTS = np.array([0.25, 1.0, 0.5, 0.75, 0.0])
ORDERS = [np.array(order, dtype=float) for order in permutations(range(6))]


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.25, 0.4, 0.5, 0.75, 0.9])
def test_the_bounds_of_proposition_3_1(alpha):
    """Exchangeable scores without ties, whose total variation is 0."""
    rate = np.mean([order[-1] > oracles.quantile(order[:-1], WEIGHTS, alpha) for order in ORDERS])
    assert alpha - 1 / (1 + WEIGHTS.sum()) < rate <= alpha


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

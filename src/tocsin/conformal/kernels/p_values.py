"""Compiled: the p-value of a score among weighted past scores, its inverse, and finer ranks of scores with equal p.

Past scores and their weights run from the newest to the oldest, over contiguous memory, so that loops over them are
vectorised: they read the weight before they know whether it counts, and compare in the precision of the past, in which
every score is given. Sums of weights are exact (see `weights.py`), so a vectorised sum may add in any order: only such
sums, and searches for the largest or smallest, are compiled with permission to reorder.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.constants import CONSTANTS

Array = NDArray[Any]

TAIL, TRUST = CONSTANTS.tail, CONSTANTS.trust
FURTHEST = 1e300
SMALLEST = float(np.finfo(np.float64).tiny)

_REORDERED = {"reassoc", "nsz"}
_exact, _inner = compiled(), inner()
_reduction, _inner_reduction = compiled(fastmath=_REORDERED), inner(fastmath=_REORDERED)


@_reduction
def weight_at_least(past: Array, weights: Array, score: float) -> float:
    """Total weight of the past scores that are at least `score`."""
    least, total = past.dtype.type(score), 0.0
    for lag in range(past.shape[0]):
        weight = np.float64(weights[lag])
        total += weight if past[lag] >= least else 0.0
    return total


@_inner_reduction
def weight_above(past: Array, weights: Array, score: float) -> float:
    """Total weight of the past scores that exceed `score`; ties do not count."""
    most, total = past.dtype.type(score), 0.0
    for lag in range(past.shape[0]):
        weight = np.float64(weights[lag])
        total += weight if past[lag] > most else 0.0
    return total


@_exact
def conformal_p(past: Array, weights: Array, total: float, score: float) -> float:
    """The weighted conformal p-value of `score` (paper, Eqs. 6 and 7; its rank index is misprinted, ties count)."""
    # `total` may be the nominal sum of the weights, a rounding step below the true one (see `project`).
    return min(1.0, (1.0 + weight_at_least(past, weights, score)) / (1.0 + total))


@_exact
def unweighted_p(past: Array, score: float) -> float:
    """`conformal_p` where all weights are 1. It only counts, in the precision of the past, which is much faster."""
    kept, above = past.dtype.type(score), np.int32(0)
    for lag in range(past.shape[0]):
        above = np.int32(above + (np.int32(1) if past[lag] >= kept else np.int32(0)))
    return float((1.0 + above) / (1.0 + past.shape[0]))


@_inner
def _in_order(bits: Any, mask: int) -> Any:
    """Map the bits of a floating point number to an integer with the same order, and back (it is its own inverse)."""
    return bits ^ ((bits >> 63) & mask)


@_exact
def quantile(past: Array, weights: Array, total: float, alpha: float, score: Array, bits: Array, mask: int) -> float:
    """The largest score with a p-value of at least `alpha`; infinite where every score has one.

    Bisection over the representable numbers in their order, with the very function whose inverse is wanted, so that the
    two agree to the last bit. It ends on one of the past scores, because p only falls there. `score` is scratch for one
    number, `bits` the same memory seen as an integer, `mask` all its bits but the sign.
    """
    score[0] = -np.inf
    low = _in_order(np.int64(bits[0]), mask)
    score[0] = np.inf
    high = _in_order(np.int64(bits[0]), mask)
    if conformal_p(past, weights, total, score[0]) >= alpha:
        return np.inf
    while low + 1 < high:
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum could overflow
        bits[0] = _in_order(middle, mask)
        if conformal_p(past, weights, total, score[0]) >= alpha:
            low = middle
        else:
            high = middle
    bits[0] = _in_order(low, mask)
    return np.float64(score[0])


@_inner
def _scrambled(state: Any, position: int) -> Any:
    """Output number `position` of the generator splitmix64 started at `state`."""
    z = state + (np.uint64(position) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_exact
def uniform(seed: Any, stream: int, position: int) -> float:
    """A number in the open interval (0, 1) that depends on the three arguments alone.

    Drawing by position instead of from a running generator keeps streams independent of each other and lets a saved
    scorer continue exactly.
    """
    bits = _scrambled(_scrambled(seed, stream), position)
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


@_exact
def smoothed_p(past: Array, weights: Array, total: float, score: float, draw: float) -> float:
    """The conformal p-value with ties, that of the new score with itself among them, broken by a uniform draw."""
    above = weight_above(past, weights, score)
    tied = weight_at_least(past, weights, score) - above
    return min(1.0, (above + draw * (1.0 + tied)) / (1.0 + total))


@_inner
def _mean_at_least(past: Array, weights: Array, least: float) -> tuple[float, float]:
    """Weighted mean and total weight of the past scores that are at least `least`."""
    total, weight = 0.0, 0.0
    for lag in range(past.shape[0]):
        if past[lag] >= least:
            total += np.float64(weights[lag]) * np.float64(past[lag])
            weight += np.float64(weights[lag])
    return total / weight, weight


@_exact
def fit_tail(values: Array, weights: Array, most: float) -> tuple[float, float, float]:
    """Where the tail of weighted values begins, its weight, at most about `most`, and the mean distance beyond.

    The beginning is the mean of all values, the mean of those above it, and so on, until few enough are left.
    """
    begins, _ = _mean_at_least(values, weights, -np.inf)
    mean, weight = _mean_at_least(values, weights, begins)
    while weight > most and mean > begins:
        next_mean, next_weight = _mean_at_least(values, weights, mean)
        if not next_weight > 0.0:
            break  # the mean of equal values was rounded up
        begins, mean, weight = mean, next_mean, next_weight
    return begins, weight, max(mean - begins, 0.0)


@_inner
def excess(past: Array, weights: Array, largest: float, score: float, most: float, trust: float) -> float:
    """How much rarer than the largest past score a larger one is, in nats, by an exponential tail fitted to the past.

    The tail has a weight of at most about `most`, and is trusted up to about `trust` nats.
    """
    _, _, decay = fit_tail(past, weights, most)
    if not 0.0 < decay < np.inf:
        return 0.0
    # Halved, because the distance between two doubles may be more than a double can hold.
    beyond = min(2.0 * ((0.5 * score - 0.5 * largest) / decay), FURTHEST)
    return trust * float(np.log1p(beyond / trust))


@inner(fastmath={*_REORDERED, "nnan"})
def _neighbours(past: Array, weights: Array, score: float) -> tuple[float, float]:
    """The nearest past scores with a weight, at most `score` and above it."""
    at, end = past.dtype.type(score), past.dtype.type(np.inf)
    lower, higher = -end, end
    for lag in range(past.shape[0]):
        one, counts = past[lag], weights[lag] > 0
        lower = max(lower, one if (one <= at) & counts else -end)
        higher = min(higher, one if (one > at) & counts else end)
    return float(lower), float(higher)


@_exact
def surprise(
    p: float, past: Array, weights: Array, total: float, score: float, length: int, tail: float, trust: float
) -> float:
    """-log of the p-value of `score`, raised a little where that tells scores with the same p-value apart.

    Between two past scores a p-value is constant, and above the largest it is the smallest possible, however far above.
    What is left open is divided by where the score lies between its neighbours, or by how far it lies beyond the
    largest: there a weight of 1, and between two scores that of the higher one, so that a larger score never has the
    smaller surprise. It is about exponential at any scale, whatever the number of past scores, but exp(-surprise) is no
    p-value. Ties keep theirs.

    `length` is how many observations a score looks at; see `tocsin.constants` for `tail` and `trust`.
    """
    plain = -float(np.log(p))
    above = max(p * (1.0 + total) - 1.0, 0.0)
    most = tail * np.sqrt(total * length)
    if above >= most:
        return plain  # fine enough as it is
    lower, higher = _neighbours(past, weights, score)
    if lower == score or lower == -np.inf:
        return plain
    if higher == np.inf:
        return plain + excess(past, weights, lower, score, most, trust)
    # Halved, because the distance between two doubles may be more than a double can hold.
    part = (0.5 * higher - 0.5 * score) / (0.5 * higher - 0.5 * lower)
    width = min(weight_at_least(past, weights, higher) - weight_above(past, weights, higher), 1.0)
    return plain - float(np.log((above + 1.0 - width * (1.0 - part)) / (above + 1.0)))


@_inner
def finer_p(p: float, past: Array, weights: Array, total: float, score: float) -> float:
    """A p-value that also orders scores with the same p; see `surprise`. At most `p`, and never 0."""
    finer = float(np.exp(-surprise(p, past, weights, total, score, 1, TAIL, TRUST)))
    return min(max(finer, SMALLEST), p)

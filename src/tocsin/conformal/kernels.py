"""Compiled: the inner loops of every scorer that keeps a history of scores.

A p-value among weighted past scores, its inverse, and finer ranks of scores with equal p; how the weights are learned;
streams of scores, each with its history, scored and learned in one pass.

Past scores and their weights run from the newest to the oldest, over contiguous memory, so that loops over them are
vectorised: they read the weight before they know whether it counts, and compare in the precision of the past, in which
every score is given.

The same bits everywhere: a vectorised sum adds in an order that depends on the processor and on how the code was
compiled, so a rounded sum differs from machine to machine in its last digits. Here sums do not round. Weights are
multiples of `GRID`, and double precision adds more than a hundred thousand such numbers of size one exactly, in any
order. So sums of weights, and searches for the largest or smallest, are compiled with permission to reorder. All other
arithmetic is element by element, which IEEE 754 makes reproducible.

Each stream owns one row of `history`, written from the right end towards the left: the score at lag k (0 is the newest)
is at `row[head + k]`. So scores and weights run in the same direction. A row has some slack beyond what must be kept.
When the head reaches the left end, the part still needed is moved back to the right end.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.constants import CONSTANTS

Array = NDArray[Any]

TAIL, TRUST = CONSTANTS.tail, CONSTANTS.trust
FURTHEST = 1e300
SMALLEST = float(np.finfo(np.float64).tiny)

GRID = 2.0**-36
_TO_GRID = 1.5 * 2.0**52 * GRID  # adding and subtracting this rounds a double to the nearest multiple of GRID

ADAM_DECAY_1 = 0.9
ADAM_DECAY_2 = 0.999
ADAM_EPSILON = 1e-8

# Columns of a stream's counters; everything else about its position follows from these.
SEEN = 0  # scores that got a p-value
LEARNED = 1  # of those, scores that entered the history
HEAD = 2  # where the newest score stands in its history row
COUNTERS = 3

# Rows of a stream's ring of p-values that wait for a gradient step.
P = 0  # the p-values
TOTAL = 1  # the sum of weights that each was computed with

_REORDERED = {"reassoc", "nsz"}
_exact, _inner = compiled(with_files=("constants.py",)), inner()
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


@_exact
def wasserstein_slopes(batch_p: Array, slopes: Array) -> None:
    """Slope of W1(p-values of the batch, uniform) in each p-value (paper, Eq. 13), written to `slopes`.

    Equal p-values are ranked in the order of their arrival; `batch_p` holds them in that order.
    """
    n = batch_p.shape[0]
    for i in range(n):
        below = 0
        for j in range(n):
            if batch_p[j] < batch_p[i] or (batch_p[j] == batch_p[i] and j < i):
                below += 1
        low, high = below / n, (below + 1) / n
        if batch_p[i] < low:
            slopes[i] = -1.0 / n
        elif batch_p[i] > high:
            slopes[i] = 1.0 / n
        else:
            slopes[i] = 2.0 * batch_p[i] - low - high


@_inner
def _count_one(gradient: Array, past: Array, score: float, slope: float) -> None:
    """Add `slope` to the gradient at every lag whose score is at least `score`."""
    step, nothing = gradient.dtype.type(slope), gradient.dtype.type(0)
    for lag in range(past.shape[0]):
        gradient[lag] += step if past[lag] >= score else nothing


@_inner
def _count_five(gradient: Array, row: Array, at: int, slopes: Array) -> None:
    """`_count_one` for five consecutive scores in one pass, since reading and writing the gradient is half the cost.

    The first of them, the oldest, stands at `row[at]`, the next at `row[at - 1]`; each has all its lags behind it.
    """
    kind = gradient.dtype.type
    nothing = kind(0)
    lags = gradient.shape[0]
    score0, score1, score2, score3, score4 = row[at], row[at - 1], row[at - 2], row[at - 3], row[at - 4]
    step0, step1, step2 = kind(slopes[0]), kind(slopes[1]), kind(slopes[2])
    step3, step4 = kind(slopes[3]), kind(slopes[4])
    past0, past1, past2 = row[at + 1 : at + 1 + lags], row[at : at + lags], row[at - 1 : at - 1 + lags]
    past3, past4 = row[at - 2 : at - 2 + lags], row[at - 3 : at - 3 + lags]
    for lag in range(lags):
        total = gradient[lag] + (step0 if past0[lag] >= score0 else nothing)
        total += step1 if past1[lag] >= score1 else nothing
        total += step2 if past2[lag] >= score2 else nothing
        total += step3 if past3[lag] >= score3 else nothing
        gradient[lag] = total + (step4 if past4[lag] >= score4 else nothing)


@_inner
def batch_gradient(gradient: Array, row: Array, head: int, available: int, p: Array, slopes: Array) -> None:
    """The sum over the batch of slope * (1[past score >= score] - p), lag by lag (paper, Eq. 14), into `gradient`.

    The comparisons behind each p-value are made again instead of being kept as a Jacobian: the batch's own scores are
    the newest of the history, the last one at `row[head]`. `available` scores came before that one; where they do not
    fill the window, the oldest lags had no score yet for the earlier p-values and get nothing from them.
    """
    size = p.shape[0]
    lags = gradient.shape[0]
    had = lags  # how many lags the p-values from i on had behind them, at least
    constant = 0.0
    for i in range(size - 1, -1, -1):
        reach = min(available - (size - 1 - i), lags)
        gradient[reach:had] = constant
        had = reach
        constant -= slopes[i] * p[i]
    gradient[:had] = constant
    i = 0
    while i < size:
        age = size - 1 - i
        if i + 5 <= size and available - age >= lags:
            _count_five(gradient, row, head + age, slopes[i:])
            i += 5
        else:
            past = row[head + age + 1 : head + age + 1 + min(available - age, lags)]
            _count_one(gradient, past, row[head + age], slopes[i])
            i += 1


@_inner
def _power(base: float, exponent: int) -> float:
    """`base**exponent` by squaring: the same bits everywhere, which a library's power function does not promise."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@_inner
def adam_step(
    gradient: Array, weights: Array, moment1: Array, moment2: Array, learning_rate: float, steps: int
) -> None:
    """Replace the gradient by where one Adam step leads from the weights, on the grid; `steps` counts this one."""
    kind = weights.dtype.type
    keep1, keep2 = kind(ADAM_DECAY_1), kind(ADAM_DECAY_2)
    take1, take2 = kind(1.0 - ADAM_DECAY_1), kind(1.0 - ADAM_DECAY_2)
    rate = kind(learning_rate / (1.0 - _power(ADAM_DECAY_1, steps)))
    unbias2 = kind(1.0 / (1.0 - _power(ADAM_DECAY_2, steps)))
    epsilon = kind(ADAM_EPSILON)
    for lag in range(weights.shape[0]):
        slope = gradient[lag]
        m = keep1 * moment1[lag] + take1 * slope
        v = keep2 * moment2[lag] + take2 * (slope * slope)
        moment1[lag] = m
        moment2[lag] = v
        moved = np.float64(weights[lag] - rate * m / (np.sqrt(v * unbias2) + epsilon))
        gradient[lag] = (moved + _TO_GRID) - _TO_GRID


@_inner
def sgd_step(gradient: Array, weights: Array, learning_rate: float) -> None:
    """Replace the gradient by where one plain gradient step leads from the weights, on the grid."""
    rate = weights.dtype.type(learning_rate)
    for lag in range(weights.shape[0]):
        moved = np.float64(weights[lag] - rate * gradient[lag])
        gradient[lag] = (moved + _TO_GRID) - _TO_GRID


@_inner_reduction
def _clip(point: Array, shift: float, weights: Array) -> float:
    """Write clip(point + shift, 0, 1) to the weights; returns the sum of what was written."""
    total = 0.0
    for lag in range(point.shape[0]):
        written = weights.dtype.type(min(max(np.float64(point[lag]) + shift, 0.0), 1.0))
        weights[lag] = written
        total += np.float64(written)
    return total


@_inner_reduction
def _clipped_sum(point: Array, shift: float) -> tuple[float, int]:
    """Sum of clip(point + shift, 0, 1), and how many of its terms a little more shift would move."""
    total = 0.0
    free = 0
    for lag in range(point.shape[0]):
        moved = np.float64(point[lag]) + shift
        total += min(max(moved, 0.0), 1.0)
        free += 1 if (moved >= 0.0) & (moved < 1.0) else 0
    return total, free


@_exact
def project(point: Array, least: float, weights: Array) -> float:
    """Write the point of {0 <= w <= 1, sum(w) >= least} nearest to `point` to the weights; returns their sum.

    It is clip(point + shift, 0, 1) for the smallest shift >= 0 that makes the sum reach `least`. The sum is piecewise
    linear and increasing in the shift, so Newton's method lands on the root once it is on the right piece; a bracket
    with bisection behind it makes sure that it gets there. The shift is a multiple of GRID.
    """
    total = _clip(point, 0.0, weights)
    if total >= least:
        return total
    low, high = 0.0, 1.0
    while _clipped_sum(point, high)[0] < least:
        low, high = high, 2.0 * high
    shift = low
    for step in range(200):
        total, free = _clipped_sum(point, shift)
        if total < least:
            low = shift
        else:
            high = shift
            if total - least < free * GRID:
                break
        if high - low <= GRID:
            break
        if step < 50:
            shift = GRID * np.ceil((shift + (least - total) / max(free, 1)) / GRID)
        if step >= 50 or not (low < shift < high):
            shift = GRID * np.floor((low + high) / (2.0 * GRID))
    # Rounded to the weights' own precision the sum may fall short again, by no more than that precision.
    missing = least - _clip(point, high, weights)
    more = max(GRID, 2.0 * missing / max(free, 1))
    while missing > 0.0:
        high += more
        more *= 2.0
        missing = least - _clip(point, high, weights)
    # The sum is `least` up to rounding; saying so exactly keeps the smallest p-value from flickering in its last digit.
    return least


class LearnedStreams(NamedTuple):
    """Streams whose weights over the past are learned; see `W1ACAS`."""

    history: Array
    counters: Array
    weights: Array
    totals: Array  # the sums of weights
    moments: Array  # of Adam
    batches: Array  # p-values that wait for a gradient step
    critical: int  # the least sum of weights
    stride: int
    learning_rate: float
    adam: bool
    extend: bool
    smooth: bool  # whether a random draw breaks ties
    seed: Any


class FixedStreams(NamedTuple):
    """Streams that share fixed weights over the past; see `SlidingWindow`."""

    history: Array
    counters: Array
    weights: Array
    cumulative: Array  # entry m is the sum of the newest m weights
    capacity: int  # how many scores a stream learns before it stops
    smooth: bool
    seed: Any


@_inner
def push(row: Array, count: Array, kept: int, score: float) -> None:
    """Write `score` as the newest of its history row. The `kept` newest scores stay readable."""
    head = count[HEAD]
    if head == 0:
        moved = row.shape[0] - kept
        for i in range(kept - 1, -1, -1):
            row[moved + i] = row[i]
        head = moved
    row[head - 1] = score
    count[HEAD] = head - 1


@_inner
def _learn_weights(
    k: int, streams: LearnedStreams, gradient: Array, scratch: Array, newest: int, available: int, steps: int
) -> float:
    """One projected gradient step of stream `k` from its last batch of p-values; returns the new sum of weights.

    `newest` is the slot of the last p-value in the stream's ring, `available` the number of scores before it.
    """
    weights, batch = streams.weights[k], streams.batches[k]
    size = batch.shape[1]
    p, slopes = scratch[:size], scratch[size:]
    for i in range(size):
        p[i] = batch[P, (newest + 1 + i) % size]
    wasserstein_slopes(p, slopes)
    for i in range(size):
        slopes[i] /= 1.0 + batch[TOTAL, (newest + 1 + i) % size]
    lags = min(available, weights.shape[0])
    batch_gradient(gradient[:lags], streams.history[k], streams.counters[k, HEAD], available, p, slopes)
    if streams.adam:
        moments = streams.moments[k]
        adam_step(gradient, weights[:lags], moments[0], moments[1], streams.learning_rate, steps)
    else:
        sgd_step(gradient, weights[:lags], streams.learning_rate)
    return project(gradient[:lags], float(streams.critical), weights[:lags])


@_inner
def learn_score(k: int, score: float, p: float, streams: LearnedStreams, gradient: Array, scratch: Array) -> None:
    """Let stream `k` remember a score that was given the p-value `p`, and learn from the batch that it completes.

    `gradient`, one number for each lag, and `scratch`, two for each p-value of a batch, hold intermediate results.
    """
    count, weights, totals = streams.counters[k], streams.weights[k], streams.totals
    window, size = weights.shape[0], streams.batches.shape[2]
    learned = count[LEARNED]
    push(streams.history[k], count, window + size, score)
    recorded = learned - streams.critical + 1
    if recorded >= 1:
        slot = (recorded - 1) % size
        streams.batches[k, P, slot] = p
        streams.batches[k, TOTAL, slot] = totals[k]
        if recorded >= size and (recorded - size) % streams.stride == 0:
            steps = (recorded - size) // streams.stride + 1
            totals[k] = _learn_weights(k, streams, gradient, scratch, slot, learned, steps)
    if learned < window:
        # Algorithm 1 gives weight to the newest `critical` lags only; "extend" goes on with the oldest weight.
        if learned < streams.critical:
            weights[learned] = 1
        elif streams.extend:
            weights[learned] = weights[learned - 1]
        totals[k] += weights[learned]
    count[LEARNED] = learned + 1


@_inner
def _judge(
    k: int, t: int, score: float, past: Array, weights: Array, total: float, count: Array,
    smooth: bool, seed: Any, p: Array, rank: Array,
) -> float:  # fmt: skip
    """Write the p-value of a score of stream `k`, and the finer one unless `rank` is empty; NaN for no score.

    Returns the p-value without a draw.
    """
    missing = np.isnan(score)
    plain = np.nan if missing else conformal_p(past, weights, total, score)
    p[t, k] = plain
    if smooth and not missing:
        p[t, k] = smoothed_p(past, weights, total, score, uniform(seed, k, count[SEEN]))
    if rank.shape[0] > 0:
        rank[t, k] = np.nan if missing else finer_p(plain, past, weights, total, score)
    if not missing:
        count[SEEN] += 1
    return plain


@_exact
def advance_learned(
    scores: Array, learn: Array, p: Array, rank: Array, first: int, last: int, gradient: Array, scratch: Array,
    *fields: Any,
) -> None:  # fmt: skip
    """Score and learn `scores[T, K]` with learned weights (W1-ACAS, Algorithm 1), writing p-values to `p[T, K]`.

    Only the streams from `first` up to `last` are touched, so that threads can share the others. If `rank` is not
    empty, finer p-values are written to it. `learn_score` explains `gradient` and `scratch`. `fields` are those of
    `LearnedStreams`: numba takes longer to unpack a structure than its fields, which shows for single scores.
    """
    streams = LearnedStreams(*fields)
    totals, window = streams.totals, streams.weights.shape[1]
    for k in range(first, last):
        row = streams.history[k]
        count = streams.counters[k]
        for t in range(scores.shape[0]):
            score = row.dtype.type(scores[t, k])
            lags = min(count[LEARNED], window)
            past, weights = row[count[HEAD] : count[HEAD] + lags], streams.weights[k, :lags]
            plain = _judge(k, t, score, past, weights, totals[k], count, streams.smooth, streams.seed, p, rank)
            if learn[t, k] and not np.isnan(score):
                learn_score(k, score, plain, streams, gradient, scratch)


@_exact
def advance_fixed(scores: Array, learn: Array, p: Array, rank: Array, first: int, last: int, *fields: Any) -> None:
    """Score `scores[T, K]` with fixed weights, those of `FixedStreams(*fields)`; see `advance_learned`."""
    streams = FixedStreams(*fields)
    cumulative, window = streams.cumulative, streams.weights.shape[0]
    for k in range(first, last):
        row = streams.history[k]
        count = streams.counters[k]
        for t in range(scores.shape[0]):
            score = row.dtype.type(scores[t, k])
            lags = min(count[LEARNED], window)
            past, weights = row[count[HEAD] : count[HEAD] + lags], streams.weights[:lags]
            _judge(k, t, score, past, weights, cumulative[lags], count, streams.smooth, streams.seed, p, rank)
            if learn[t, k] and not np.isnan(score) and count[LEARNED] < streams.capacity:
                push(row, count, window, score)
                count[LEARNED] += 1

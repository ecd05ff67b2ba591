"""Compiled: how the weights over past scores are learned.

The same bits everywhere: a vectorised sum adds in an order that depends on the processor and on how the code was
compiled, so a rounded sum differs from machine to machine in its last digits. Here sums do not round. Weights are
multiples of `GRID`, and double precision adds more than a hundred thousand such numbers of size one exactly, in any
order. All other arithmetic is element by element, which IEEE 754 makes reproducible.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner

Array = NDArray[Any]

GRID = 2.0**-36
_TO_GRID = 1.5 * 2.0**52 * GRID  # adding and subtracting this rounds a double to the nearest multiple of GRID

ADAM_DECAY_1 = 0.9
ADAM_DECAY_2 = 0.999
ADAM_EPSILON = 1e-8

_exact, _inner = compiled(), inner()
_inner_reduction = inner(fastmath={"reassoc", "nsz"})


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

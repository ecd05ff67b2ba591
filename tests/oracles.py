"""Slow, obvious versions of everything fast, written from the formulas and never from the fast code."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def p_value(past: Array, weights: Array, score: float) -> float:
    """Eqs. 6 and 7 in closed form: ties count towards p."""
    return (1 + np.sum(weights[past >= score])) / (1 + np.sum(weights))


def smoothed_p_value(past: Array, weights: Array, score: float, draw: float) -> float:
    above = np.sum(weights[past > score])
    tied = np.sum(weights[past == score])
    return (above + draw * (1 + tied)) / (1 + np.sum(weights))


def quantile(past: Array, weights: Array, alpha: float) -> float:
    """The (1 - alpha) quantile of the weighted past scores with a point of weight 1 at infinity (Eq. 3)."""
    whole = 1 + np.sum(weights)
    for score in np.sort(past):
        if np.sum(weights[past <= score]) >= (1 - alpha) * whole - 1e-9:
            return float(score)
    return math.inf


def tail_excess(past: Array, weights: Array, score: float, heaviest: float, trust: float) -> float:
    """By how many nats a score beyond all others is rarer than the largest, by an exponential law of the tail.

    The law is fitted to the largest scores, of about `heaviest` weight together, and believed up to about `trust` nats.
    """
    kept = [(float(value), float(weight)) for value, weight in zip(past, weights, strict=True)]

    def mean() -> float:
        return sum(value * weight for value, weight in kept) / sum(weight for _, weight in kept)

    threshold = mean()
    kept = [(value, weight) for value, weight in kept if value >= threshold]
    while sum(weight for _, weight in kept) > heaviest and mean() > threshold:
        threshold = mean()
        kept = [(value, weight) for value, weight in kept if value >= threshold]
    decay = mean() - threshold
    if not 0 < decay < math.inf:
        return 0.0
    largest = max(value for value, weight in kept if weight > 0)
    return trust * math.log1p(min(2 * ((score / 2 - largest / 2) / decay), 1e300) / trust)


def surprise(
    past: Array,
    weights: Array,
    score: float,
    *,
    total: float | None = None,
    length: int = 1,
    tail: float = 2.0,
    trust: float = 30.0,
) -> float:
    """-log p, and beyond where p says no more: by where a score lies between its neighbours, or beyond them all.

    `total` is the sum of the weights where it is kept apart from them, and `length` how many observations each score
    looks at.
    """
    weighs = np.asarray(weights) > 0
    values, weight = np.asarray(past, dtype=np.float64)[weighs], np.asarray(weights, dtype=np.float64)[weighs]
    above = float(weight[values >= score].sum())
    total = float(weight.sum()) if total is None else total
    plain = -math.log(min(1.0, (1 + above) / (1 + total)))
    below, higher = values[values <= score], values[values > score]
    heaviest = tail * math.sqrt(total * length)
    if above >= heaviest or not below.size or below.max() in (score, -math.inf):
        return plain
    if not higher.size:
        return plain + tail_excess(past, weights, score, heaviest, trust)
    next_higher = float(higher.min())
    if next_higher == math.inf:
        return plain
    part = (next_higher / 2 - score / 2) / (next_higher / 2 - float(below.max()) / 2)
    width = min(1.0, float(weight[values == next_higher].sum()))
    return plain - math.log((above + 1 - width * (1 - part)) / (above + 1))


def wasserstein_to_uniform(p: Array) -> float:
    """W1 between the empirical law of `p` and the uniform one (Eq. 11): |p_(k) - a| integrated piece by piece."""
    n = len(p)

    def integral_up_to(a: float, value: float) -> float:
        return math.copysign((a - value) ** 2 / 2, a - value)

    return sum(integral_up_to((k + 1) / n, value) - integral_up_to(k / n, value) for k, value in enumerate(sorted(p)))


def wasserstein_slopes(p: Array) -> Array:
    """Eq. 13; equal p-values are ranked in the order of their arrival."""
    n = len(p)
    slopes = np.empty(n)
    for rank, i in enumerate(np.argsort(p, kind="stable"), start=1):
        if p[i] < (rank - 1) / n:
            slopes[i] = -1 / n
        elif p[i] > rank / n:
            slopes[i] = 1 / n
        else:
            slopes[i] = 2 * p[i] - (2 * rank - 1) / n
    return slopes


def project(v: Array, least: float) -> Array:
    """The nearest point of {0 <= w <= 1, sum(w) >= least}, from the sorted breakpoints of its one multiplier."""
    clipped = np.clip(v, 0, 1)
    if clipped.sum() >= least:
        return clipped
    shifts = np.sort(np.concatenate([-v, 1 - v]))
    shifts = shifts[shifts > 0]
    sums = np.array([np.clip(v + shift, 0, 1).sum() for shift in shifts])
    after = int(np.searchsorted(sums, least))
    low = shifts[after - 1] if after > 0 else 0.0
    low_sum = np.clip(v + low, 0, 1).sum()
    share = (least - low_sum) / (sums[after] - low_sum) if sums[after] > low_sum else 0.0
    return np.clip(v + low + share * (shifts[after] - low), 0, 1)


def project_fast(v: Array, least: float) -> Array:
    """The same by bisection: for long runs, where walking every breakpoint would take too long."""
    clipped = np.clip(v, 0, 1)
    if clipped.sum() >= least:
        return clipped
    low, high = 0.0, 1.0 - v.min()
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return np.clip(v + high, 0, 1)
        if np.clip(v + middle, 0, 1).sum() < least:
            low = middle
        else:
            high = middle


class W1ACAS:
    """Algorithm 1 for one stream in plain numpy and double precision, with the Jacobian stored row by row."""

    def __init__(self, *, critical, window, batch, stride, learning_rate, optimizer, prior):
        self.critical, self.window, self.batch, self.stride = critical, window, batch, stride
        self.learning_rate, self.optimizer, self.prior = learning_rate, optimizer, prior
        self.scores = np.zeros(0)  # newest first
        self.weights = np.zeros(window)
        self.gradient_mean = np.zeros(window)
        self.gradient_square = np.zeros(window)
        self.p, self.jacobian = [], []
        self.recorded = self.steps = 0

    def update(self, score: float, learn: bool = True) -> float:
        if np.isnan(score):
            return np.nan
        lags = len(self.scores)
        weights = self.weights[:lags]
        counts = self.scores >= score
        whole = 1 + np.sum(weights)
        p = (1 + np.sum(weights[counts])) / whole
        if not learn:
            return p
        if lags >= self.critical:
            row = np.zeros(self.window)
            row[:lags] = (counts - p) / whole
            self.p = [*self.p, p][-self.batch :]
            self.jacobian = [*self.jacobian, row][-self.batch :]
            self.recorded += 1
            if self.recorded >= self.batch and (self.recorded - self.batch) % self.stride == 0:
                self._step(lags)
        self.scores = np.concatenate([[score], self.scores])[: self.window]
        if lags < self.window:
            if lags < self.critical:
                self.weights[lags] = 1
            elif self.prior == "extend":
                self.weights[lags] = self.weights[lags - 1]
        return p

    def _step(self, lags: int) -> None:
        gradient = wasserstein_slopes(np.array(self.p)) @ np.array(self.jacobian)
        self.steps += 1
        if self.optimizer == "adam":
            self.gradient_mean = 0.9 * self.gradient_mean + 0.1 * gradient
            self.gradient_square = 0.999 * self.gradient_square + 0.001 * gradient**2
            mean = self.gradient_mean / (1 - 0.9**self.steps)
            square = self.gradient_square / (1 - 0.999**self.steps)
            gradient = mean / (np.sqrt(square) + 1e-8)
        moved = self.weights[:lags] - self.learning_rate * gradient[:lags]
        self.weights[:lags] = project_fast(moved, self.critical)

"""Simple control charts for comparison. Larger output is more anomalous; NaN if there is none yet.

Each takes values `[T, S]` of signals and uses only past values.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.compilation import compiled
from tocsin.evaluation.machine import ar_filter

Floats = NDArray[np.float64]


def ewma(values: Floats, weight: float) -> Floats:
    """The size of the exponentially weighted mean of values around 0, in which the newest has this weight."""
    share = checks.number("weight", weight, above=0, most=1)
    return np.abs(ar_filter(share * values, 1.0 - share))


def cusum(values: Floats, slack: float) -> Floats:
    """The larger of the two cumulative sums of values beyond the slack, above and below 0; each restarts at 0."""
    sums = np.empty_like(values)
    high = low = np.zeros(values.shape[1])
    for t, value in enumerate(values):
        high, low = np.maximum(high + value - slack, 0), np.maximum(low - value - slack, 0)
        sums[t] = np.maximum(high, low)
    return sums


def rolling_z(values: Floats, window: int, floor: float = 0.0) -> Floats:
    """The distance of a value from the mean of this many values before it, in their standard deviations.

    `floor` is the smallest standard deviation used, for signals that may not move. After a missing value (NaN) the
    output is NaN for a window.
    """
    size = checks.integer("window", window, least=2)
    return _rolling_z(np.ascontiguousarray(values, dtype=np.float64), size, floor)


@compiled()
def _rolling_z(values: Floats, window: int, floor: float) -> Floats:
    """Two passes over each window: running sums would lose small spreads at high levels."""
    steps, signals = values.shape
    found = np.full((steps, signals), np.nan)
    for t in range(window, steps):
        for k in range(signals):
            mean, square = values[t - 1, k], 0.0  # sums are of differences from it: exactly 0 if all are equal
            for lag in range(2, window + 1):
                mean += (values[t - lag, k] - values[t - 1, k]) / window
            for lag in range(1, window + 1):
                square += (values[t - lag, k] - mean) ** 2 / window
            found[t, k] = np.abs(values[t, k] - mean) / max(np.sqrt(square), floor)
    return found


def movement(values: Floats, window: int) -> Floats:
    """The mean of |value - the one before| over this many observations."""
    size = checks.integer("window", window, least=1)
    steps = np.full(values.shape, np.nan)
    steps[1:] = np.abs(np.diff(values, axis=0))
    return rolling_mean(steps, size)


def glr(values: Floats, windows: Sequence[int]) -> Floats:
    """The largest |sum| of the newest values over the root of their number, over several windows.

    The generalised likelihood ratio of a shift so long ago, for values around 0 with a standard deviation of 1. Windows
    that are not full yet do not count.
    """
    found = np.full(values.shape, np.nan)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    for window in windows:
        size = checks.integer("windows", window, least=1)
        if values.shape[0] >= size:
            latest = np.abs(sums[size:] - sums[:-size]) / np.sqrt(size)
            found[size - 1 :] = np.fmax(found[size - 1 :], latest)
    return found


def mean_square(values: Floats, window: int) -> Floats:
    """The mean of the squares of this many values: their variance, if they are around 0."""
    return rolling_mean(values**2, checks.integer("window", window, least=1))


def rolling_mean(values: Floats, window: int) -> Floats:
    """The mean of this many values, each by itself: running sums would lose small ones after large ones."""
    found = np.full(values.shape, np.nan)
    if values.shape[0] >= window:
        found[window - 1 :] = np.lib.stride_tricks.sliding_window_view(values, window, axis=0).mean(axis=-1)
    return found


def ar_residuals(values: Floats, history: int) -> Floats:
    """What an autoregression of order one, fitted to the first `history` values of each signal, does not foresee."""
    past = values[:history]
    mean = past.mean(axis=0)
    before, after = past[:-1] - mean, past[1:] - mean
    coefficient = (before * after).sum(axis=0) / (before**2).sum(axis=0)
    found = np.full(values.shape, np.nan)
    found[1:] = values[1:] - mean - coefficient * (values[:-1] - mean)
    return found


def profile_residuals(values: Floats, period: int, cycles: int = 5) -> Floats:
    """The distance of a value from the median of those at the same place of this many cycles before it."""
    found = np.full(values.shape, np.nan)
    first = checks.integer("cycles", cycles, least=1) * checks.integer("period", period, least=1)
    if values.shape[0] > first:
        before = [values[first - lag * period : values.shape[0] - lag * period] for lag in range(1, cycles + 1)]
        found[first:] = values[first:] - np.median(before, axis=0)
    return found


def holt_winters_residuals(values: Floats, period: int | None, level: float = 0.02, season: float = 0.2) -> Floats:
    """What exponential smoothing of a level, and of an additive season of this period if there is one, does not
    foresee one step ahead.

    It starts with the first value as level and, if there is a period, with the first cycle around its mean as season.
    """
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    return _holt_winters(numbers, 0 if period is None else checks.integer("period", period, least=2), level, season)


@compiled()
def _holt_winters(values: Floats, period: int, level_weight: float, season_weight: float) -> Floats:
    steps, signals = values.shape
    found = np.full((steps, signals), np.nan)
    first = max(period, 1)
    if steps < first:
        return found
    for k in range(signals):
        level = values[:first, k].mean()
        season = values[:first, k] - level
        for t in range(first, steps):
            place = t % first
            error = values[t, k] - level - season[place]
            found[t, k] = error
            level += level_weight * error
            season[place] += season_weight * error if period else 0.0
    return found

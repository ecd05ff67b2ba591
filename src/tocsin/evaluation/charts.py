"""Simple control charts for comparison. Larger output is more anomalous; NaN if there is none yet.

Each takes values `[T, S]` of signals and uses only past values.
"""

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.compilation import compiled
from tocsin.evaluation.ar_noise import ar_filter

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
    found = np.full(values.shape, np.nan)
    steps = np.abs(np.diff(values, axis=0))
    if steps.shape[0] >= size:
        found[size:] = np.lib.stride_tricks.sliding_window_view(steps, size, axis=0).mean(axis=-1)
    return found

"""A robust band around a short series: what is expected from its season and level, and how far it usually strays.

A series of a few dozen points, which Azure's clients often send, is too short for calibrated p-values. Its tail is
estimated instead, by Student's t with four degrees of freedom whose scale is fitted to the middle half of the errors.
That is no guarantee.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tocsin.forecasting.forecaster import Floats

# Medians over fewer points follow the noise.
SHORTEST = 7
# The upper quartile of Student's t with four degrees of freedom.
_QUARTILE = 0.7406970841


def season_of(values: Floats, period: int) -> Floats:
    """The typical deviation at each phase, for each step; zeros without a period or three full cycles."""
    if period < 2 or values.size < 3 * period:
        return np.zeros(values.size)
    deviations = values - centred_median(values, period | 1)
    phases = np.arange(values.size) % period
    typical = np.array([_median(deviations[phases == phase]) for phase in range(period)])
    return np.asarray((typical - typical.mean())[phases])


def centred_median(values: Floats, width: int) -> Floats:
    """The median of the values around each step; fewer at both ends. `width` is odd."""
    padded = np.pad(values, width // 2, constant_values=np.nan)
    return _medians(sliding_window_view(padded, width))


def past_median(values: Floats, width: int) -> Floats:
    """The median of the values before each step, without its own; the first has none."""
    padded = np.concatenate((np.full(width, np.nan), values[:-1]))
    return _medians(sliding_window_view(padded, width))


def scale_of(errors: Floats) -> float:
    """The scale of Student's t that has as many errors within its quartiles as beyond them."""
    median = _median(np.abs(errors))
    # Where more than half of all errors are zero, the others tell how far it strays; where all are, any error counts.
    if median == 0.0 and np.any(errors != 0.0):
        median = _median(np.abs(errors[(errors != 0.0) & ~np.isnan(errors)]))
    return median / _QUARTILE


def tail_of(distances: Floats) -> Floats:
    """How often an error is estimated to be at least so many scales."""
    distances = np.minimum(distances, 1e100)  # whose square is finite
    share = distances / np.sqrt(4.0 + distances**2)
    return np.clip(1.0 - share * (1.5 - 0.5 * share**2), 0.0, 1.0)


def distance_at(rate: float) -> float:
    """How many scales an error is beyond so often: the inverse of `tail_of`."""
    root = math.sqrt(rate * (2.0 - rate))
    return 2.0 * math.sqrt(math.cos(math.acos(root) / 3.0) / root - 1.0)


def _median(values: Floats) -> float:
    there = values[~np.isnan(values)]
    return float(np.median(there)) if there.size else 0.0


def _medians(windows: Floats) -> Floats:
    """The median of each row without its NaN; NaN where there is nothing else."""
    there = np.sort(windows, axis=1)  # NaN comes last
    counts = np.sum(~np.isnan(windows), axis=1)
    rows = np.arange(len(windows))
    low, high = there[rows, np.maximum(counts - 1, 0) // 2], there[rows, np.minimum(counts // 2, windows.shape[1] - 1)]
    return np.asarray(np.where(counts % 2 == 1, low, (low + high) / 2.0))

"""A robust band around a short series: what is expected from its season and level, and how far it usually strays.

A series of a few dozen points, which Azure's clients often send, is too short for calibrated p-values. Its tail is
estimated instead, by Student's t with four degrees of freedom whose scale is fitted to the middle half of the errors.
That is no guarantee.
"""

import math
from bisect import bisect_left, insort

import numpy as np

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
    return _medians(np.pad(values, width // 2, constant_values=np.nan), width)


def past_median(values: Floats, width: int) -> Floats:
    """The median of the values before each step, without its own; the first has none."""
    return _medians(np.concatenate((np.full(width, np.nan), values[:-1])), width)


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


def _medians(values: Floats, width: int) -> Floats:
    """The median of each `width` values in a row without their NaN; NaN where there is nothing else.

    The window stays sorted while it moves on: to sort it anew at each step takes minutes, and gigabytes all at once.
    """
    steps, window = values.tolist(), list[float]()
    found = np.full(values.size - width + 1, np.nan)
    for last, new in enumerate(steps):
        if not math.isnan(new):
            insort(window, new)
        if last >= width and not math.isnan(old := steps[last - width]):
            del window[bisect_left(window, old)]
        if last >= width - 1 and window:
            low, high = window[(len(window) - 1) // 2], window[len(window) // 2]
            found[last - width + 1] = low if len(window) % 2 else (low + high) / 2.0
    return found

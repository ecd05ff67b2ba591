"""The period of a signal, from its autocorrelation."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.forecasting.forecaster import Floats, without_infinities

# A peak of the autocorrelation counts as a period if it is this high, rises this much above the lowest value before
# it, and comes back after another period with at least this share of its height.
HIGH = 0.3
RISE = 0.3
RETURN = 0.5
# Among peaks almost as high as the highest, the first is the period and the others its multiples.
ALMOST = 0.9
# A periodic value occurs this often, since a period is at most a third of all values. So the values farthest from the
# median, one fewer than this, count no more than the next: an anomaly or two do not hide the period.
OFTEN = 3


def find_period(values: ArrayLike) -> int | None:
    """The period of `values` in observations, at most a third of their number, or None.

    NaN is ignored. The two values farthest from the median count no more than the third, so that a spike hides
    nothing. A linear trend is removed.

    >>> import numpy as np
    >>> hours = np.arange(500)
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> find_period(np.sin(2 * np.pi * hours / 24) + 0.5 * noise), find_period(noise)
    (24, None)
    """
    array = checks.numbers("values", values)
    if array.ndim != 1:
        raise ValueError(f"values must have one dimension, got shape {array.shape}")
    without_infinities(array)
    most = array.size // 3
    if most < 3 or np.isfinite(array).sum() < array.size / 2:
        return None
    correlation = _autocorrelation(array, 2 * most)
    if correlation is None:
        return None
    lags = np.arange(2, most + 1)
    peaks = lags[(correlation[lags] >= correlation[lags - 1]) & (correlation[lags] > correlation[lags + 1])]
    lowest = np.minimum.accumulate(correlation)
    peaks = peaks[(correlation[peaks] >= HIGH) & (correlation[peaks] - lowest[peaks] >= RISE)]
    peaks = peaks[correlation[2 * peaks] >= RETURN * correlation[peaks]]
    if not peaks.size:
        return None
    first = peaks[correlation[peaks] >= ALMOST * correlation[peaks].max()][0]
    # Noise makes many small peaks of a broad one: the highest of those around the first.
    around = peaks[(peaks >= first) & (peaks < 1.5 * first)]
    return int(around[np.argmax(correlation[around])])


def _autocorrelation(values: Floats, most: int) -> Floats | None:
    """Autocorrelation at the lags from 0 to `most`, over the pairs of which both are there; None for a constant."""
    there = np.isfinite(values)
    at = np.flatnonzero(there)
    known = values[at] - np.median(values[at])
    limit = np.partition(np.abs(known), -OFTEN)[-OFTEN]
    if limit == 0:
        return None
    known = np.clip(known, -limit, limit) / limit
    slope, intercept = np.polyfit(at - at.mean(), known, 1)
    filled = np.zeros(values.size)
    filled[at] = known - intercept - slope * (at - at.mean())
    length = 2 ** int(np.ceil(np.log2(values.size + most + 1)))
    energy = np.square(filled)
    if energy.sum() <= 1e-12 * at.size:
        return None
    # Over the squares of the same pairs: the mean square of all would let a few missing peaks lower some lags.
    products = _correlate(filled, filled, length)[: most + 1]
    energies = (_correlate(energy, there, length) + _correlate(there, energy, length))[: most + 1] / 2
    return np.asarray(np.divide(products, energies, out=np.zeros(most + 1), where=energies > 1e-9 * energies[0]))


def _correlate(earlier: NDArray[Any], later: NDArray[Any], length: int) -> Floats:
    """Sums of `earlier[t] * later[t + lag]`."""
    return np.fft.irfft(np.fft.rfft(earlier, length).conj() * np.fft.rfft(later, length), length)

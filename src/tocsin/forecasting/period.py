"""The period of a signal, from its autocorrelation."""

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin.forecasting.forecaster import Floats, without_infinities

# A peak of the autocorrelation counts as a period if it is this high, rises this much above the lowest value before
# it, and comes back after another period with at least this share of its height.
HIGH = 0.3
RISE = 0.3
RETURN = 0.5
# Among peaks almost as high as the highest, the first is the period and the others its multiples.
ALMOST = 0.9


def find_period(values: ArrayLike) -> int | None:
    """The period of `values` in observations, at most a third of their number; None where there is none.

    NaN is left out. A straight trend is taken off first.

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
    return int(peaks[correlation[peaks] >= ALMOST * correlation[peaks].max()][0])


def _autocorrelation(values: Floats, most: int) -> Floats | None:
    """Autocorrelation at the lags from 0 to `most`, over the pairs of which both are there; None for a constant."""
    there = np.isfinite(values)
    at = np.flatnonzero(there)
    known = values[at]
    scale = np.max(np.abs(known - known[0]))
    if scale == 0:
        return None
    known = (known - known[0]) / scale
    slope, intercept = np.polyfit(at - at.mean(), known, 1)
    filled = np.zeros(values.size)
    filled[at] = known - intercept - slope * (at - at.mean())
    length = 2 ** int(np.ceil(np.log2(values.size + most + 1)))
    products = _correlate(filled, length)[: most + 1]
    pairs = np.round(_correlate(there.astype(np.float64), length)[: most + 1])
    variance = products[0] / pairs[0]
    if variance <= 1e-12:
        return None
    return np.asarray(np.divide(products, pairs, out=np.zeros(most + 1), where=pairs > 0) / variance)


def _correlate(values: Floats, length: int) -> Floats:
    spectrum = np.fft.rfft(values, length)
    return np.fft.irfft(spectrum * spectrum.conj(), length)

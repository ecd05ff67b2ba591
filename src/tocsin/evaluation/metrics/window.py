"""The width of the soft borders for the volume under the surface, from the signal's own period."""

import numpy as np
from numpy.typing import ArrayLike

from tocsin.evaluation.metrics.marks import Floats, observations

WITHOUT_PERIOD = 125
"""The window of a signal in which no period is found."""
LONGEST_SIGNAL = 20_000
MOST_LAGS = 400
LEAST_LAG = 3
# Peaks at lags outside this range are ignored.
LEAST_PERIOD, MOST_PERIOD = 6, 303


def find_window(values: ArrayLike) -> int:
    """The lag of the highest peak of the autocorrelation, as in TSB-AD's `find_length_rank`; 125 if there is none.

    Of several features TSB-AD takes the first. `tocsin.find_period` is better at finding a period; this
    function keeps numbers comparable with TSB-AD's.

    >>> find_window(np.sin(2 * np.pi * np.arange(1000) / 24)), find_window(np.arange(1000))
    (24, 125)
    """
    correlation = _autocorrelation(observations("values", values)[:LONGEST_SIGNAL])
    inner = correlation[1:-1]
    peaks = np.flatnonzero((inner > correlation[:-2]) & (inner > correlation[2:])) + 1
    peaks = peaks[peaks > LEAST_LAG]
    if not peaks.size:
        return WITHOUT_PERIOD
    highest = int(peaks[np.argsort(correlation[peaks])[-1]])
    return highest if LEAST_PERIOD <= highest <= MOST_PERIOD else WITHOUT_PERIOD


def _autocorrelation(values: Floats) -> Floats:
    """At the lags from 0 on; all NaN for zeros or where a value is missing or infinite."""
    with np.errstate(all="ignore"):
        deviations = values - values.mean()
        length = 2 ** (2 * values.size).bit_length()  # no lag wraps around
        spectrum = np.fft.rfft(deviations, length)
        products = np.fft.irfft(spectrum * spectrum.conj(), length)
        return np.asarray(products[: min(MOST_LAGS + 1, values.size)] / products[0])

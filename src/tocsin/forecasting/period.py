"""The period of a signal: found in its values, and used by forecasters that repeat it."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.forecasting.forecaster import Floats, Forecast, Rows, Session, State, check_saved, without_infinities

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


MOST_PERIOD = 2**20
NEVER = 2**62


def checked_period(period: int | None) -> int | None:
    """The argument `period` of a forecaster: None to look for one, 0 for none, or a number of observations."""
    if period is None:
        return None
    if checks.integer("period", period, least=0, most=MOST_PERIOD) == 1:
        raise ValueError(f"period must be None, 0 or an integer from 2 to {MOST_PERIOD}, got {period!r}")
    return int(period)


class PeriodicSession(Session):
    """Follows series whose period is given, or detected during warm-up.

    Whenever a series has grown to one of a few lengths, each twice the one before, the last of them `search`, the
    period of what was seen so far is looked for, so that a short period is found early and a long one in the end.
    """

    def __init__(self, series: int, horizon: int, period: int | None, search: int, reach: int) -> None:
        super().__init__(series, horizon)
        self._given, self._most_period = period, search // 3
        self._stops = [] if period is not None else [search >> k for k in range(5, -1, -1)]
        # How many observations of each series may come, at least, before one of the stops.
        self._left = np.full(self.series, self._stops[0] if self._stops else NEVER)
        capacity = search + reach if period is None else (period or 0) + reach
        self._past = np.full((self.series, capacity), np.nan)

    @property
    @abstractmethod
    def _seen(self) -> NDArray[np.int64]:
        """How many observations of each series there have been."""

    @abstractmethod
    def _advance(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_], median: Floats) -> None:
        """Process a part of a history without a search for the period, and write its forecasts to `median`."""

    @abstractmethod
    def _set_period(self, series: int, period: int | None) -> None:
        """Use another period from now on."""

    def _known(self, series: int, length: int) -> Floats:
        """The first `length` observations of a series, NaN where missing."""
        return self._past[series, :length]

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        median = np.empty((*values.shape, self.horizon))
        step = 0
        while step < values.shape[0] and rows.size:
            left = self._left[rows]
            until = min(values.shape[0], step + int(left.min()))
            self._advance(values[step:until], rows, wanted[step:until], median[step:until])
            left -= until - step
            self._left[rows] = left
            for series in () if np.count_nonzero(left) == left.size else rows[left == 0]:
                self._look_for_period(int(series))
            step = until
        return Forecast(median)

    def _look_for_period(self, series: int) -> None:
        seen = int(self._seen[series])
        # A series that began late has not come as far as was counted on.
        if seen in self._stops:
            self._set_period(series, find_period(self._known(series, seen)))
        self._left[series] = self._until_stop(seen)

    def _until_stop(self, seen: int) -> int:
        return next((stop - seen for stop in self._stops if stop > seen), NEVER)

    def _check_saved(self, name: str, counts: NDArray[np.int64], periods: NDArray[np.int64]) -> None:
        """Reject counts and periods that would lead out of bounds."""
        check_saved(name, np.all((counts >= 0) & (counts < NEVER)), "counts of zero or more")
        if self._given is None:
            good, accepted = (periods >= 0) & (periods <= self._most_period), f"periods up to {self._most_period}"
        else:
            good, accepted = periods == self._given, f"the period {self._given}"
        check_saved(name, np.all(good), accepted)

    def _restore(self, state: State, rows: Rows) -> None:
        self._left[rows] = [self._until_stop(int(seen)) for seen in self._seen[rows]]

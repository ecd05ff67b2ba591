"""The base of forecasters that use a signal's period."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.forecasting.forecaster import Floats, Forecast, Rows, Session, State, check_saved
from tocsin.forecasting.period import find_period

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

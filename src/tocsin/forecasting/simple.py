"""Forecasters without a network: the last value, the last period, a smoothed level, and regressions learned online."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.forecasting.forecaster import (
    MOST_STEPS,
    Floats,
    Forecast,
    Rows,
    Session,
    State,
    StreamForecaster,
    load_kernels,
    without_infinities,
)

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
    if array.size < 9 or np.isfinite(array).sum() < array.size / 2:
        return None
    correlation = autocorrelation(array, 2 * (array.size // 3))
    return None if correlation is None else period_in(correlation)


def period_in(correlation: Floats) -> int | None:
    """The period of values with this autocorrelation, up to two thirds of their number."""
    most = correlation.size // 2
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


def autocorrelation(values: Floats, most: int) -> Floats | None:
    """Autocorrelation at the lags from 0 to `most`, over the pairs without a missing value; None for a constant."""
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
    length = transform_length(values.size, most)
    energy = np.square(filled)
    if energy.sum() <= 1e-12 * at.size:
        return None
    # Over the squares of the same pairs: the mean square of all would let a few missing peaks lower some lags.
    value, square, count = (np.fft.rfft(one, length) for one in (filled, energy, there))
    products = _correlate(value, value, length)[: most + 1]
    energies = (_correlate(square, count, length) + _correlate(count, square, length))[: most + 1] / 2
    return np.asarray(np.divide(products, energies, out=np.zeros(most + 1), where=energies > 1e-9 * energies[0]))


def transform_length(values: int, most: int) -> int:
    """How long the Fourier transforms of so many values are; autocorrelations with equal ones have the same bits."""
    return int(2 ** np.ceil(np.log2(values + most + 1)))


def _correlate(earlier: NDArray[np.complex128], later: NDArray[np.complex128], length: int) -> Floats:
    """Sums of `earlier[t] * later[t + lag]`, from the transforms."""
    return np.fft.irfft(earlier.conj() * later, length)


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
        require_state(np.all((counts >= 0) & (counts < NEVER)), name, "counts of zero or more")
        if self._given is None:
            good, accepted = (periods >= 0) & (periods <= self._most_period), f"periods up to {self._most_period}"
        else:
            good, accepted = periods == self._given, f"the period {self._given}"
        require_state(np.all(good), name, accepted)

    def _restore(self, state: State, rows: Rows) -> None:
        super()._restore(state, rows)
        self._left[rows] = [self._until_stop(int(seen)) for seen in self._seen[rows]]


class LastValue(StreamForecaster):
    """Forecasts the last value that was not missing, for every step.

    >>> LastValue().forecast([[3.0, 5.0, float("nan")]], horizon=2).median
    array([[5., 5.]])
    """

    name = "last-value"

    def open(self, series: int, horizon: int) -> Session:
        return _LastValueSession(series, horizon)


class _LastValueSession(Session):
    def __init__(self, series: int, horizon: int) -> None:
        super().__init__(series, horizon)
        self._kernels = load_kernels()
        self._last = np.full(self.series, np.nan)

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        median = np.empty((*values.shape, self.horizon))
        self._kernels.last_value(values, rows, self._last, median)
        return Forecast(median)

    def _arrays(self) -> State:
        return {"last": self._last}

    def _check(self, state: State) -> None:
        require_state(not np.isinf(state["last"]).any(), "last", "finite numbers or NaN")


# How many periods back it looks for a value that is not missing.
PERIODS_BACK = 3


class SeasonalNaive(StreamForecaster):
    """Forecasts the value one period before or, if that is missing, two or three periods before.

    Parameters
    ----------
    period : in observations. None: detected by autocorrelation during warm-up; until then, and for signals
        without a period, it forecasts the last value.
    search : how many observations are searched for a period; the longest that can be found is a third of it.

    >>> SeasonalNaive(period=3).forecast([[1.0, 2.0, 3.0, 1.5, 2.5]], horizon=4).median
    array([[3. , 1.5, 2.5, 3. ]])
    """

    name = "seasonal-naive"

    def __init__(self, period: int | None = None, search: int = 4608) -> None:
        self.period = checked_period(period)
        self.warm_up = 200 if self.period is None else self.period
        self.search = checks.integer("search", search, least=320, most=2**20)

    def open(self, series: int, horizon: int) -> Session:
        return _SeasonalSession(series, horizon, self.period, self.search)


class _SeasonalSession(PeriodicSession):
    def __init__(self, series: int, horizon: int, period: int | None, search: int) -> None:
        super().__init__(series, horizon, period, search, reach=(PERIODS_BACK - 1) * (period or 0) + 1)
        self._kernels = load_kernels()
        self._count = np.zeros(self.series, dtype=np.int64)
        self._period = np.full(self.series, period or 0, dtype=np.int64)
        self._last = np.full(self.series, np.nan)

    @property
    def _seen(self) -> NDArray[np.int64]:
        return self._count

    def _advance(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_], median: Floats) -> None:
        self._kernels.seasonal(values, rows, PERIODS_BACK, self._past, self._count, self._period, self._last, median)

    def _set_period(self, series: int, period: int | None) -> None:
        self._period[series] = period or 0

    def _arrays(self) -> State:
        return {"past": self._past, "count": self._count, "period": self._period, "last": self._last}

    def _check(self, state: State) -> None:
        self._check_saved("count", state["count"], self._period)
        self._check_saved("period", self._count, state["period"])
        for name in ("past", "last"):
            require_state(not np.isinf(state[name]).any(), name, "finite numbers or NaN")


RATES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
# The errors that choose among the rates cover about a hundred observations.
FORGET = 0.99


class ExponentialSmoothing(StreamForecaster):
    """Forecasts a smoothed level, for every step.

    Parameters
    ----------
    rate : how far the level moves towards each new value, in (0, 1]. None: several rates run side by side, and the one
        with the smallest recent one-step errors is used.

    >>> ExponentialSmoothing(rate=0.5).forecast([[0.0, 8.0, 8.0]], horizon=2).median
    array([[6., 6.]])
    """

    name = "exponential-smoothing"
    warm_up = 50

    def __init__(self, rate: float | None = None) -> None:
        self.rate = None if rate is None else checks.number("rate", rate, above=0, most=1)

    def open(self, series: int, horizon: int) -> Session:
        return _SmoothingSession(RATES if self.rate is None else (self.rate,), series, horizon)


class _SmoothingSession(Session):
    def __init__(self, rates: tuple[float, ...], series: int, horizon: int) -> None:
        super().__init__(series, horizon)
        self._kernels = load_kernels()
        self._rates = np.array(rates)
        self._levels = np.full((self.series, len(rates)), np.nan)
        self._errors = np.zeros((self.series, len(rates)))

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        median = np.empty((*values.shape, self.horizon))
        self._kernels.smoothing(values, rows, self._rates, FORGET, self._levels, self._errors, median)
        return Forecast(median)

    def _arrays(self) -> State:
        return {"levels": self._levels, "errors": self._errors}

    def _check(self, state: State) -> None:
        errors = state["errors"]
        require_state(np.all((errors >= 0) & (errors < np.inf)), "errors", "finite numbers of zero or more")
        require_state(not np.isinf(state["levels"]).any(), "levels", "finite numbers or NaN")


class Autoregression(StreamForecaster):
    """Forecasts each step ahead by a separate linear regression on the newest values, learned online.

    All of them share one matrix of products, so that an observation costs a few microseconds. Values count relative to
    the last one: a constant signal is forecast exactly, and a shift of level moves the forecasts along. For a signal
    whose period is longer than `lags`, the values one period before now and before each step count too. Rows far
    larger than usual are scaled down before they are learned, so that an anomaly does not spoil what follows. A missing
    value is filled by what was forecast for it.

    Parameters
    ----------
    lags : how many of the newest values each forecast uses.
    period : in observations; None: detected by autocorrelation during warm-up; 0: none.
    memory : how many observations it learns from, roughly; older ones are discounted.
    ridge : how many observations outweigh the prior assumption that nothing changes.
    search : how many observations are searched for a period; the longest that can be found is a third of it.

    >>> import numpy as np
    >>> wave = np.sin(np.arange(304) * 2 * np.pi / 25)
    >>> Autoregression().forecast([wave[:301]], horizon=3).median.round(2)
    array([[0.25, 0.48, 0.68]])
    >>> wave[301:].round(2)
    array([0.25, 0.48, 0.68])
    """

    name = "autoregression"

    def __init__(
        self, lags: int = 32, *, period: int | None = None, memory: int = 5000, ridge: float = 10.0, search: int = 4608
    ) -> None:
        self.lags = self.recovers = self.warm_up = checks.integer("lags", lags, least=2, most=512)
        self.period = checked_period(period)
        self.memory = checks.integer("memory", memory, least=10, most=2**30)
        self.ridge = checks.number("ridge", ridge, above=0, most=1e9)
        self.search = checks.integer("search", search, least=320, most=2**20)

    def open(self, series: int, horizon: int) -> Session:
        return _AutoregressionSession(self, series, horizon)


class _AutoregressionSession(PeriodicSession):
    def __init__(self, forecaster: Autoregression, series: int, horizon: int) -> None:
        horizon = checks.integer("horizon", horizon, least=1, most=MOST_STEPS)
        super().__init__(series, horizon, forecaster.period, forecaster.search, reach=forecaster.lags + horizon + 1)
        self._kernels = load_kernels()
        wide = forecaster.lags - 1 + (0 if forecaster.period == 0 else horizon + 1)
        self._model = self._kernels.Regression(
            lags=forecaster.lags,
            forget=1.0 - 1.0 / forecaster.memory,
            ridge=forecaster.ridge,
            past=self._past,
            missing=np.zeros(self._past.shape, dtype=np.bool_),
            counters=np.zeros((self.series, self._kernels.COUNTERS), dtype=np.int64),
            gram=np.zeros((self.series, wide, wide)),
            cross=np.zeros((self.series, wide, horizon)),
            totals=np.zeros((self.series, 2)),
            weights=np.zeros((self.series, wide, horizon)),
            issued=np.zeros((self.series, horizon)),
        )
        self._model.counters[:, self._kernels.PERIOD] = forecaster.period or 0
        self._scratch = np.zeros((wide + 2, max(wide, horizon)))

    @property
    def _seen(self) -> NDArray[np.int64]:
        return np.asarray(self._model.counters[:, self._kernels.SEEN])

    def _known(self, series: int, length: int) -> Floats:
        return np.where(self._model.missing[series, :length], np.nan, self._past[series, :length])

    def _advance(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_], median: Floats) -> None:
        self._kernels.autoregression(values, rows, wanted, self._model, self._scratch, median)

    def _set_period(self, series: int, period: int | None) -> None:
        if self._model.counters[series, self._kernels.PERIOD] == (period or 0):
            return
        self._model.counters[series, self._kernels.PERIOD] = period or 0
        self._kernels.relearn(series, self._model, self._scratch)

    def _arrays(self) -> State:
        return {name: getattr(self._model, name) for name in _ARRAYS}

    def _check(self, state: State) -> None:
        counters = state["counters"]
        self._check_saved("counters", counters, counters[:, self._kernels.PERIOD])
        require_state(not np.isinf(state["past"]).any(), "past", "finite numbers or NaN")
        for name in ("gram", "cross", "totals", "weights", "issued"):
            require_state(np.isfinite(state[name]).all(), name, "finite numbers")


_ARRAYS = ("past", "missing", "counters", "gram", "cross", "totals", "weights", "issued")

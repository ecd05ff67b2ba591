"""Forecasters without a model: the last value, the last period, a smoothed level."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.forecasting.context import StreamForecaster, load_kernels
from tocsin.forecasting.forecaster import Floats, Forecast, Rows, Session, State, check_saved
from tocsin.forecasting.period import PeriodicSession, checked_period


class LastValue(StreamForecaster):
    """Forecasts the last value that was not missing, for every step.

    >>> LastValue().forecast([[3.0, 5.0, float("nan")]], horizon=2).median
    array([[5., 5.]])
    """

    name = "last-value"

    def open(self, series: int, horizon: int) -> Session:
        return _LastValueSession(series, horizon)

    def parameters(self) -> dict[str, Any]:
        return {}


class _LastValueSession(Session):
    def __init__(self, series: int, horizon: int) -> None:
        super().__init__(series, horizon)
        self._kernels = load_kernels()
        self._last = np.full(self.series, np.nan)

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        median = np.empty((*values.shape, self.horizon))
        self._kernels.last_value(values, rows, self._last, median)
        return Forecast(median)

    def _snapshot(self, rows: Rows) -> State:
        return {"last": self._last[rows]}

    def _restore(self, state: State, rows: Rows) -> None:
        check_saved("last", not np.isinf(state["last"]).any(), "finite numbers or NaN")
        self._last[rows] = state["last"]


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

    def parameters(self) -> dict[str, Any]:
        return {"period": self.period, "search": self.search}


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

    def _snapshot(self, rows: Rows) -> State:
        return {
            "past": self._past[rows],
            "count": self._count[rows],
            "period": self._period[rows],
            "last": self._last[rows],
        }

    def _restore(self, state: State, rows: Rows) -> None:
        self._check_saved("count", state["count"], self._period)
        self._check_saved("period", self._count, state["period"])
        for name in ("past", "last"):
            check_saved(name, not np.isinf(state[name]).any(), "finite numbers or NaN")
        self._past[rows] = state["past"]
        self._count[rows] = state["count"]
        self._period[rows] = state["period"]
        self._last[rows] = state["last"]
        super()._restore(state, rows)


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

    def parameters(self) -> dict[str, Any]:
        return {"rate": self.rate}


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

    def _snapshot(self, rows: Rows) -> State:
        return {"levels": self._levels[rows], "errors": self._errors[rows]}

    def _restore(self, state: State, rows: Rows) -> None:
        errors = state["errors"]
        check_saved("errors", np.all((errors >= 0) & (errors < np.inf)), "finite numbers of zero or more")
        check_saved("levels", not np.isinf(state["levels"]).any(), "finite numbers or NaN")
        self._levels[rows] = state["levels"]
        self._errors[rows] = state["errors"]

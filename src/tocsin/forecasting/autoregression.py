"""Online ridge regression on the newest values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.forecasting.context import StreamForecaster, load_kernels
from tocsin.forecasting.forecaster import MOST_STEPS, Floats, Rows, Session, State, check_saved
from tocsin.forecasting.period import PeriodicSession, checked_period


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
    warm_up = 200

    def __init__(
        self, lags: int = 32, *, period: int | None = None, memory: int = 5000, ridge: float = 10.0, search: int = 4608
    ) -> None:
        self.lags = self.recovers = checks.integer("lags", lags, least=2, most=512)
        self.period = checked_period(period)
        self.memory = checks.integer("memory", memory, least=10, most=2**30)
        self.ridge = checks.number("ridge", ridge, above=0, most=1e9)
        self.search = checks.integer("search", search, least=320, most=2**20)

    def open(self, series: int, horizon: int) -> Session:
        return _AutoregressionSession(self, series, horizon)

    def parameters(self) -> dict[str, Any]:
        return {
            "lags": self.lags,
            "period": self.period,
            "memory": self.memory,
            "ridge": self.ridge,
            "search": self.search,
        }


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

    def _snapshot(self, rows: Rows) -> State:
        return {name: getattr(self._model, name)[rows] for name in _ARRAYS}

    def _restore(self, state: State, rows: Rows) -> None:
        counters = state["counters"]
        self._check_saved("counters", counters, counters[:, self._kernels.PERIOD])
        check_saved("past", not np.isinf(state["past"]).any(), "finite numbers or NaN")
        for name in ("gram", "cross", "totals", "weights", "issued"):
            check_saved(name, np.isfinite(state[name]).all(), "finite numbers")
        for name in _ARRAYS:
            getattr(self._model, name)[rows] = state[name]
        super()._restore(state, rows)


_ARRAYS = ("past", "missing", "counters", "gram", "cross", "totals", "weights", "issued")

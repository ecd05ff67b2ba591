"""Forecasts that repeat the last value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.forecaster import Floats, Forecast, Rows, Session, State, check_saved
from tocsin.forecasting.stream import StreamForecaster, load_kernels


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

"""Exponential smoothing of the level."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.forecasting.forecaster import Floats, Forecast, Rows, Session, State, check_saved
from tocsin.forecasting.stream import StreamForecaster, load_kernels

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

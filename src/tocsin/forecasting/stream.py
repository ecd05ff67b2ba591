"""Forecasters that learn online."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from tocsin.forecasting.forecaster import Forecast, Forecaster, as_contexts


class StreamForecaster(Forecaster):
    """A forecaster that follows a series. It forecasts from a context by following it from beginning to end."""

    slow = False

    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        medians = []
        for context in as_contexts(contexts):
            session = self.open(1, horizon)
            history = context if context.size else np.array([np.nan])
            wanted = np.zeros((history.size, 1), dtype=np.bool_)
            wanted[-1] = True
            medians.append(session.run(history[:, np.newaxis], wanted=wanted).median[-1, 0])
        return Forecast(np.array(medians))


def load_kernels() -> ModuleType:
    """The compiled loops; numba is slow to import, so only forecasting waits for it."""
    from tocsin.forecasting import kernels

    return kernels

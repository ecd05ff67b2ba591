"""Forecasters that learn as they go along."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from tocsin.forecasting.forecaster import Forecast, Forecaster, as_contexts


class StreamForecaster(Forecaster):
    """A forecaster that follows a series. To forecast from a context is to follow it from its beginning to its end."""

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
    """The compiled loops; numba takes a good part of a second to import, so only who forecasts waits for it."""
    from tocsin.forecasting import kernels

    return kernels

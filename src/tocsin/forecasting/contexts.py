"""The base of forecasters that reread a context for every forecast."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.forecasting.forecaster import Floats, Forecast, Forecaster, Rows, Session, State, as_contexts


class ContextForecaster(Forecaster):
    """A stateless forecaster: a forecast depends only on the newest `context_length` observations.

    Parameters
    ----------
    context_length : how many of the newest observations it reads, at most.
    batch_size : how many contexts go through the model in one call, at most.
    time_batch : how many steps of a history go through the model together. More is faster, but the last digits of a
        model's numbers depend on how many contexts share a call. Only 1 gives exactly the same numbers for a history
        and a stream of the same observations.
    """

    def __init__(self, *, context_length: int, batch_size: int = 256, time_batch: int = 1) -> None:
        self.context_length = checks.integer("context_length", context_length, least=1, most=2**20)
        self.batch_size = checks.integer("batch_size", batch_size, least=1, most=2**20)
        self.time_batch = checks.integer("time_batch", time_batch, least=1, most=2**20)

    @abstractmethod
    def _predict(self, contexts: Floats, horizon: int) -> Forecast:
        """Forecast from `contexts[B, L]`, the newest value last; NaN where one is missing, and left of short ones.

        L is at most `context_length` and as short as the contexts allow, B at most `batch_size`; every context holds
        at least one number.
        """

    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        horizon = checks.integer("horizon", horizon, least=1, most=self.longest_horizon)
        arrays = [array[-self.context_length :] for array in as_contexts(contexts)]
        padded = np.full((len(arrays), max(1, *(array.size for array in arrays))), np.nan)
        for row, array in zip(padded, arrays, strict=True):
            row[row.size - array.size :] = array
        return self._forecast_padded(padded, horizon)

    def open(self, series: int, horizon: int) -> Session:
        return _BufferSession(self, series, checks.integer("horizon", horizon, least=1, most=self.longest_horizon))

    def _forecast_padded(self, padded: Floats, horizon: int) -> Forecast:
        """Forecast from contexts padded with NaN on the left; all-NaN contexts give NaN."""
        forecast = _nothing((padded.shape[0], horizon), len(self.levels))
        known = np.flatnonzero(~np.isnan(padded).all(axis=1))
        for first in range(0, known.size, self.batch_size):
            batch = known[first : first + self.batch_size]
            used = np.flatnonzero(~np.isnan(padded[batch]).all(axis=0))
            part = self._predict(padded[batch, used[0] :], horizon)
            forecast.median[batch] = part.median
            if forecast.quantiles is not None and part.quantiles is not None:
                # A network's neighbouring quantiles may cross slightly.
                forecast.quantiles[batch] = np.sort(part.quantiles, axis=-1)
        return forecast


def _nothing(shape: tuple[int, ...], levels: int) -> Forecast:
    quantiles = np.full((*shape, levels), np.nan) if levels else None
    return Forecast(np.full(shape, np.nan), quantiles)


class _BufferSession(Session):
    """Keeps the newest observations of every series, and forecasts from them."""

    def __init__(self, forecaster: ContextForecaster, series: int, horizon: int) -> None:
        super().__init__(series, horizon)
        self._forecaster = forecaster
        self._newest = np.full((self.series, forecaster.context_length), np.nan)

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        forecast = _nothing((*values.shape, self.horizon), len(self._forecaster.levels))
        length = self._forecaster.context_length
        for first in range(0, values.shape[0], self._forecaster.time_batch):
            block = values[first : first + self._forecaster.time_batch]
            history = np.concatenate([self._newest[rows], block.T], axis=1)
            contexts = np.lib.stride_tricks.sliding_window_view(history, length, axis=1)[:, 1:]
            steps, columns = np.nonzero(wanted[first : first + block.shape[0]])
            if steps.size:
                part = self._forecaster._forecast_padded(contexts[columns, steps], self.horizon)
                forecast.median[first + steps, columns] = part.median
                if forecast.quantiles is not None:
                    forecast.quantiles[first + steps, columns] = part.quantiles
            self._newest[rows] = history[:, -length:]
        return forecast

    def _arrays(self) -> State:
        return {"newest": self._newest}

    def _check(self, state: State) -> None:
        require_state(not np.isinf(state["newest"]).any(), "newest", "finite numbers or NaN")

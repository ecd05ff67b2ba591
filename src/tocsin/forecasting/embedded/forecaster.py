"""The pretrained network that comes with the package."""

import os
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin.forecasting.embedded.network import forecast_contexts
from tocsin.forecasting.embedded.session import EmbeddedSession
from tocsin.forecasting.embedded.weights import HORIZON, LEVELS, load_weights
from tocsin.forecasting.forecaster import Floats, Forecast, Forecaster, Session, as_contexts, joined

_LONGEST_CONTEXT = 1024


class EmbeddedForecaster(Forecaster):
    """A small transformer, pretrained on synthetic signals, that runs on one core without any library for networks.

    It needs no learning: a few dozen observations tell it what comes next. Its forecasts follow shift and scale of the
    values, a context of equal values has just that value as its forecast, and they are the same numbers, bit for bit,
    whichever signals are forecast together, from a history or from a stream.

    To follow a series costs one pass of a single token for an observation, however long the context; a series of more
    than a thousand observations takes 71 kB of memory. A session sees its values in units that are taken anew each
    time the context has grown by a sixteenth to an eighth: right then its forecasts are those of `forecast` from the
    same observations, and close to them in between.

    Parameters
    ----------
    weights : a file of weights; None for those that come with the package.
    context_length : how many of the newest observations it reads, at most; a session up to an eighth more.
    batch_size : how many contexts or series go through the network together, at most; makes no difference to the
        numbers.

    >>> import numpy as np
    >>> EmbeddedForecaster().forecast([np.full(100, 2.5)], horizon=3).median
    array([[2.5, 2.5, 2.5]])
    """

    name = "embedded"
    levels = LEVELS
    warm_up = 32
    recovers = 32

    def __init__(
        self, *, weights: str | PathLike[str] | None = None, context_length: int = 1024, batch_size: int = 256
    ) -> None:
        if weights is not None and not isinstance(weights, (str, PathLike)):
            raise TypeError(f"weights must be the path of a file, or None, got {weights!r}")
        self.weights = None if weights is None else os.fspath(weights)
        self.context_length = checks.integer("context_length", context_length, least=1, most=_LONGEST_CONTEXT)
        self.batch_size = checks.integer("batch_size", batch_size, least=1, most=2**20)

    @property
    def longest_horizon(self) -> int:
        """How many steps ahead it can look."""
        return HORIZON

    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        horizon = checks.integer("horizon", horizon, least=1, most=HORIZON)
        begun = [_from_first_number(array[-self.context_length :]) for array in as_contexts(contexts)]
        return self._forecast(begun, [context.size for context in begun], horizon)

    def _forecast(self, contexts: list[Floats], normalised: list[int], horizon: int) -> Forecast:
        """Forecast from contexts that begin with a number, in the units of their first `normalised` observations."""
        weights = load_weights(self.weights)
        parts = [slice(first, first + self.batch_size) for first in range(0, len(contexts), self.batch_size)]
        return joined([forecast_contexts(weights, contexts[part], normalised[part], horizon) for part in parts])

    def open(self, series: int, horizon: int) -> Session:
        horizon = checks.integer("horizon", horizon, least=1, most=HORIZON)
        return EmbeddedSession(
            weights=load_weights(self.weights),
            series=series,
            horizon=horizon,
            context_length=self.context_length,
            batch_size=self.batch_size,
        )

    def parameters(self) -> dict[str, Any]:
        return {"weights": self.weights, "context_length": self.context_length, "batch_size": self.batch_size}


def _from_first_number(context: Floats) -> Floats:
    known = np.flatnonzero(~np.isnan(context))
    return context[known[0] :] if known.size else context[:0]

"""Forecasts from the network, of contexts given whole or of series that are followed."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.embedded.memory import Memory, make_memory
from tocsin.forecasting.embedded.weights import LEVELS, Weights
from tocsin.forecasting.forecaster import Floats, Forecast

_MEDIAN = LEVELS.index(0.5)


def load_kernels() -> ModuleType:
    """The compiled loops; numba takes a good part of a second to import, so only who forecasts waits for it."""
    from tocsin.forecasting.embedded import kernels

    return kernels


def answer(
    weights: Weights, memory: Memory, patches: NDArray[np.int64], asked: NDArray[np.int64], quantiles: Floats
) -> None:
    """Encode patches, `(series, patch)`, and then write the forecasts asked for, `(series, length, step, column)`."""
    load_kernels().answer(weights, memory, patches, asked, quantiles)


def forecast_contexts(weights: Weights, contexts: Sequence[Floats], normalised: Sequence[int], horizon: int) -> Floats:
    """The quantiles `(contexts, horizon, levels)` of contexts that begin with a number, or are empty.

    Of each the first `normalised` observations give the units in which the network sees them all.
    """
    kernels = load_kernels()
    memory = make_memory(len(contexts), max(1, *(context.size for context in contexts)), weights)
    for series, context in enumerate(contexts):
        memory.values[series, : context.size] = context
        memory.length[series], memory.normalised[series] = context.size, normalised[series]
    kernels.settle(memory, np.arange(len(contexts)))
    quantiles = np.full((1, len(contexts), horizon, len(LEVELS)), np.nan)
    patches, asked = kernels.review(memory, quantiles)
    answer(weights, memory, patches, asked, quantiles)
    return quantiles.reshape(quantiles.shape[1:])


def as_forecast(quantiles: Floats) -> Forecast:
    """The quantiles and, in memory of its own, their median."""
    return Forecast(quantiles[..., _MEDIAN].copy(), quantiles)

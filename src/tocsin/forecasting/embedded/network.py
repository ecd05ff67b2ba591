"""Forecasts from the network, of contexts given whole or of series that are followed."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from tocsin.forecasting.embedded.memory import make_memory
from tocsin.forecasting.embedded.weights import LEVELS, Weights
from tocsin.forecasting.forecaster import Floats, Forecast


def load_kernels() -> ModuleType:
    """The compiled loops; numba takes a good part of a second to import, so only who forecasts waits for it."""
    from tocsin.forecasting.embedded import kernels

    return kernels


def forecast_contexts(
    weights: Weights, contexts: Sequence[Floats], normalised: Sequence[int], horizon: int
) -> Forecast:
    """The forecasts of contexts that begin with a number, or are empty.

    Of each the first `normalised` observations give the units in which the network sees them all.
    """
    kernels = load_kernels()
    memory = make_memory(len(contexts), max(1, *(context.size for context in contexts)), weights)
    for series, context in enumerate(contexts):
        memory.values[series, : context.size] = context
        memory.length[series], memory.normalised[series] = context.size, normalised[series]
    kernels.renormalise(memory, np.arange(len(contexts)))
    quantiles = make_answers((1, len(contexts)), horizon)
    patches, asked = kernels.review(memory, quantiles)
    kernels.answer(weights, memory, patches, asked, quantiles)
    return as_forecast(quantiles[0])


def make_answers(shape: tuple[int, ...], horizon: int) -> Floats:
    """Room for quantiles; NaN where nothing is written."""
    return np.full((*shape, horizon, len(LEVELS)), np.nan)


def as_forecast(quantiles: Floats) -> Forecast:
    """The quantiles and, in memory of its own, their median."""
    return Forecast(quantiles[..., len(LEVELS) // 2].copy(), quantiles)

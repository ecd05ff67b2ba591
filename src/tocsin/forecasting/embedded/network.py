"""Forecasts from the network, of contexts given whole or of series that are followed."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.embedded.memory import PatchMemory, make_memory
from tocsin.forecasting.embedded.weights import Weights
from tocsin.forecasting.forecaster import Floats, Forecast


def load_kernels() -> ModuleType:
    """The compiled loops; numba takes a good part of a second to import, so only who forecasts waits for it."""
    from tocsin.forecasting.embedded import kernels

    return kernels


def answer(
    weights: Weights, memory: PatchMemory, patches: NDArray[np.int64], asked: NDArray[np.int64], quantiles: Floats,
    faults: Floats,
) -> None:  # fmt: skip
    """Encode patches, `(series, patch)`, and then write what is asked for, `(series, length, step, column)`."""
    load_kernels().answer(weights, memory, patches, asked, quantiles, faults)


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
    quantiles, faults = make_answers(weights, (1, len(contexts)), horizon)
    patches, asked = kernels.review(memory, quantiles)
    answer(weights, memory, patches, asked, quantiles, faults)
    return as_forecast(quantiles[0], faults[0])


def make_answers(weights: Weights, shape: tuple[int, ...], horizon: int) -> tuple[Floats, Floats]:
    """Room for quantiles and for the odds of faults; NaN where nothing is written."""
    return np.full((*shape, horizon, weights.levels.size), np.nan), np.full((*shape, weights.faults), np.nan)


def as_forecast(quantiles: Floats, faults: Floats) -> Forecast:
    """The quantiles and, in memory of its own, their median; and the odds of faults, if there are any."""
    median = quantiles[..., quantiles.shape[-1] // 2].copy()
    return Forecast(median, quantiles, faults if faults.shape[-1] else None)

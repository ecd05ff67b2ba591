"""What is kept of every series that is followed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.embedded.weights import PATCH, Weights
from tocsin.forecasting.forecaster import Floats

#: Keys and values are kept in blocks of this many patches.
BLOCK = 16
#: As a score in attention: as good as not there.
UNSEEN = -1e30


class PatchMemory(NamedTuple):
    """The newest observations of every series, and the keys and values of their complete patches.

    The network sees `values[:length]` in units of the centre and scale of `values[:normalised]`; what is behind them is
    0. Of their patches the first `encoded` are in `cache`, for each block of patches, series, layer and group the keys,
    a column each, then the values, a row each. `unseen` is 0, or `UNSEEN` for patches that hold nothing known.
    """

    values: Floats
    length: NDArray[np.int64]
    normalised: NDArray[np.int64]
    centre: Floats
    scale: Floats
    encoded: NDArray[np.int64]
    cache: NDArray[np.float32]
    unseen: NDArray[np.float32]


def capacity(context_length: int) -> int:
    """How many observations a series grows to, at most, before all but the newest `context_length` are dropped."""
    return context_length + max(1, context_length // 8)


def make_memory(series: int, longest: int, weights: Weights) -> PatchMemory:
    """Room for series of at most that length. It is taken from the machine only as it is first written to."""
    blocks = max(1, -(-(longest // PATCH) // BLOCK))
    layers, pairs = weights.layers, weights.turns.shape[2]
    return PatchMemory(
        values=np.zeros((series, longest)),
        length=np.zeros(series, dtype=np.int64),
        normalised=np.zeros(series, dtype=np.int64),
        centre=np.zeros(series),
        scale=np.zeros(series),
        encoded=np.zeros(series, dtype=np.int64),
        cache=np.zeros((blocks, series, layers, weights.groups, 2, 2 * pairs * BLOCK), dtype=np.float32),
        unseen=np.zeros((series, blocks * BLOCK), dtype=np.float32),
    )

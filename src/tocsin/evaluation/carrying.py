"""Autoregressive noise."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def carried_on(draws: Floats, share: float) -> Floats:
    """Each value is this share of the previous one plus its draw, along the first axis.

    >>> carried_on(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    values = np.array(draws, dtype=np.float64)
    for t in range(1, len(values)):
        values[t] += share * values[t - 1]
    return values

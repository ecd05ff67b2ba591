"""Autoregressive (AR) noise of order one."""

import numpy as np

from tocsin.evaluation.calibration import Floats


def ar_filter(draws: Floats, coefficient: float) -> Floats:
    """Each value is the previous one times the coefficient, plus its draw, along the first axis.

    >>> ar_filter(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    values = np.array(draws, dtype=np.float64)
    for t in range(1, len(values)):
        values[t] += coefficient * values[t - 1]
    return values


def ar_noise(draws: Floats, coefficient: float) -> Floats:
    """The same, with the stationary spread from the first value on."""
    first = draws[:1] / np.sqrt(1 - coefficient**2)
    return ar_filter(np.concatenate([first, draws[1:]]), coefficient)

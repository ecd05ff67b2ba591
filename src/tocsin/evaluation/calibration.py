"""Measures of calibration: how far p-values are from uniform and from the truth."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def calibration_gap(p: Floats) -> Floats:
    """The 1-Wasserstein distance of the p-values from the uniform distribution: the mean of |P(p <= a) - a| over a.

    Computed exactly, for each column of `p[T, ...]`.

    >>> calibration_gap(np.array([0.25, 0.75])).tolist(), calibration_gap(np.array([0.0, 0.0])).tolist()
    (0.125, 0.5)
    """
    count = p.shape[0]
    edges = np.linspace(0.0, 1.0, count + 1).reshape((-1,) + (1,) * (p.ndim - 1))
    ordered = np.sort(p, axis=0)

    def integral_of_distance(to: Floats) -> Floats:
        return np.copysign((to - ordered) ** 2 / 2, to - ordered)

    return np.sum(integral_of_distance(edges[1:]) - integral_of_distance(edges[:-1]), axis=0)


def alarm_rate(p: Floats, alpha: float) -> Floats:
    """The share of p-values of at most `alpha`, for each column of `p[T, ...]`."""
    return np.mean(p <= alpha, axis=0)


def error_by_decile(p: Floats, true_p: Floats) -> Floats:
    """The mean of |p - true p| over the p-values whose true p lies in each tenth of [0, 1]; NaN for an empty tenth."""
    decile = np.minimum((true_p * 10).astype(np.int64), 9).ravel()
    counts = np.bincount(decile, minlength=10)
    with np.errstate(invalid="ignore"):
        return np.bincount(decile, weights=np.abs(p - true_p).ravel(), minlength=10) / counts

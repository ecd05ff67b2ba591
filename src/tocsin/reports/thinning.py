"""Curves of few points that look like those of many, so that pictures stay light."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Longer curves are drawn as the range over pieces, so that no spike is lost.
MOST_POINTS = 6000


def thinned(time: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """A curve of few points that looks the same: the smallest and the largest value of each piece, in turn."""
    if time.size <= MOST_POINTS:
        return time, values
    size = -(-time.size // (MOST_POINTS // 2))
    whole = time.size // size * size
    pieces = values[:whole].reshape(-1, size)
    gone = np.isnan(pieces).all(axis=1)
    filled = np.where(gone[:, np.newaxis], 0.0, pieces)
    ends = np.column_stack([np.nanmin(filled, axis=1), np.nanmax(filled, axis=1)])
    ends[gone] = np.nan
    return np.repeat(time[:whole:size], 2), ends.reshape(-1)


def averaged(
    time: NDArray[Any], curves: Sequence[NDArray[Any]], known: NDArray[np.bool_]
) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Curves of few points, the mean of each piece, for what has no spikes to lose; NaN where nothing is known."""
    size = max(1, -(-time.size // MOST_POINTS))
    whole = time.size // size * size
    counts = known[:whole].reshape(-1, size).sum(axis=1)
    thin = []
    for curve in curves:
        sums = np.where(known, curve, 0.0)[:whole].reshape(-1, size).sum(axis=1)
        thin.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return time[:whole:size], thin

"""The stretch of the past that resembles the newest values most."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# How far back to search: as far as the shape view.
LAGS = 2000


def nearest_lag(values: NDArray[Any], length: int) -> int:
    """How long before the newest `length` of values[T, F] the stretch lies that resembles them most; 0 for none.

    Features count in units of their own spread, and missing values do not.
    """
    lags = min(LAGS, len(values) - length)
    if lags < length:
        return 0
    recent = values[-(length + lags) :]
    with np.errstate(invalid="ignore"):
        spread = np.array(
            [np.std(column[np.isfinite(column)]) if np.isfinite(column).any() else 0 for column in recent.T]
        )
    scaled = recent / np.where(spread > 0, spread, 1.0)
    stretches = np.lib.stride_tricks.sliding_window_view(scaled, length, axis=0)  # (lags + 1, F, length)
    squares = np.square(stretches[:-length] - stretches[-1])
    known = np.isfinite(squares)
    counts = known.sum(axis=(1, 2))
    if not counts.any():
        return 0
    means = np.where(counts > 0, np.where(known, squares, 0.0).sum(axis=(1, 2)) / np.maximum(counts, 1), np.inf)
    return lags - int(np.argmin(means))

"""Robust location and spread of values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner

Array = NDArray[Any]

_inner = inner()


@_inner
def _middle(ordered: Array) -> float:
    half = ordered.shape[0] // 2
    return float(ordered[half] if ordered.shape[0] % 2 else 0.5 * (ordered[half - 1] + ordered[half]))


@_inner
def centre_and_spread(values: Array) -> tuple[float, float]:
    """The median of the known values, and the median distance from it; NaN and 0 if none is known.

    If most values are equal, the mean distance; if all are, a small fraction of their size.
    """
    known = np.empty(values.shape[0])
    count = 0
    for value in values:
        if not np.isnan(value):
            known[count] = value
            count += 1
    if count == 0:
        return np.nan, 0.0
    middle = _middle(np.sort(known[:count]))
    away = np.abs(known[:count] - middle)
    spread = _middle(np.sort(away))
    if spread == 0.0:
        spread = float(np.mean(away))
    return middle, spread if spread > 0.0 else max(1e-9 * abs(middle), 1e-300)

"""The inputs of the network: for each patch, and for the newest observations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner
from tocsin.forecasting.embedded.arithmetic import UNSEEN, asinh, log
from tocsin.forecasting.embedded.weights import LIMIT, PATCH, RECENT

Array = NDArray[Any]

_inner = inner()

# Variations within a patch or among the newest observations are scaled to their own size, but no smaller than this.
_FINEST = 1e-4
_ZERO, _ONE, _UNSEEN = np.float32(0), np.float32(1), np.float32(UNSEEN)


@_inner
def _read(values: Array, first: int, centre: float, scale: float, standard: Array, known: Array) -> None:
    """Write observations in the network's units (0 if missing or before the first), and which of them are known."""
    count = standard.shape[0]
    before = max(0, -first)
    standard[:before] = _ZERO
    known[:before] = _ZERO
    seen = values[first + before : first + count]
    for i in range(count - before):
        there = seen[i] == seen[i]
        relative = ((seen[i] if there else centre) - centre) / scale
        bounded = asinh(min(max(relative, -1e6), 1e6))
        standard[before + i] = np.float32(min(max(bounded, -LIMIT), LIMIT))
        known[before + i] = _ONE if there else _ZERO


@_inner
def describe_patch(values: Array, patch: int, centre: float, scale: float, features: Array) -> np.float32:
    """Write the values of a patch, their shape in units of their own spread, and which of them are known.

    Returns 0, or `UNSEEN` if none is known.
    """
    standard, around, known = features[:PATCH], features[PATCH : 2 * PATCH], features[2 * PATCH : 3 * PATCH]
    _read(values, patch * PATCH, centre, scale, standard, known)
    count, total, squares = 0.0, 0.0, 0.0
    for i in range(PATCH):
        count += known[i]
        total += standard[i]
    mean = total / max(count, 1.0)
    for i in range(PATCH):
        squares += known[i] * ((standard[i] - mean) * (standard[i] - mean))
    size = np.sqrt(squares / max(count, 1.0)) + _FINEST
    for i in range(PATCH):
        around[i] = known[i] * (standard[i] - mean) / size
    features[3 * PATCH] = 0.3 * log(size)
    return _ZERO if count > 0.0 else _UNSEEN


@_inner
def describe_query(values: Array, length: int, centre: float, scale: float, features: Array) -> float:
    """Write the newest observations of a context of that length; returns the newest known one, in its units.

    Further features: the differences from the newest known value in units of the typical step, which values are known,
    where in a patch the context ends, and how long it is.
    """
    standard, steps, known = features[:RECENT], features[RECENT : 2 * RECENT], features[2 * RECENT : 3 * RECENT]
    _read(values, length - RECENT, centre, scale, standard, known)
    last, pairs, squares = 0.0, 0.0, 0.0
    for i in range(RECENT):
        if known[i] > _ZERO:
            last = float(standard[i])
    for i in range(1, RECENT):
        both = known[i] * known[i - 1]
        pairs += both
        step = float(standard[i]) - standard[i - 1]
        squares += both * (step * step)
    size = np.sqrt(squares / max(pairs, 1.0)) + _FINEST
    for i in range(RECENT):
        steps[i] = known[i] * asinh((standard[i] - last) / size)
    rest = features[3 * RECENT :]
    rest[:PATCH] = _ZERO
    rest[length % PATCH] = _ONE
    rest[PATCH] = 0.3 * log(size)
    rest[PATCH + 1] = last
    rest[PATCH + 2] = 0.15 * log(float(length))
    return last


@_inner
def at_rest(values: Array, length: int) -> float:
    """The value of the newest observations of a context of that length if they are all the same, else NaN.

    At least half as many as the query reads have to be known.
    """
    value, known = np.nan, 0
    for i in range(max(length - RECENT, 0), length):
        if not np.isnan(values[i]):
            if known > 0 and values[i] != value:
                return np.nan
            value = values[i]
            known += 1
    return value if 2 * known >= RECENT else np.nan

"""Adds observations to series: the units in which the network sees them, and which patches a forecast needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.forecasting.embedded.arithmetic import bits_of
from tocsin.forecasting.embedded.weights import PATCH, PatchMemory

Array = NDArray[Any]

_exact = compiled(with_folder=True)
_inner = inner()

# Values further from the mean are moved to this many deviations from it: one outlier must not set the scale.
_OUTLIER = 4.0
# The network cannot distinguish values further from the centre than this many scales: the units must change.
_TOO_FAR = 3000.0
# The middle bits of the product with this number differ even for nearly equal factors.
_SCATTER = -7046029254386353131
# The most observations of a series to process together.
_STEPS = 128


@_inner
def centre_and_scale(values: Array) -> tuple[float, float]:
    """Mean and standard deviation of the known values, with outliers clipped twice; the scale of a constant is 0.

    Computed relative to the first value and the largest difference from it, so that nothing overflows or underflows.
    """
    first = 0
    while first < values.shape[0] and np.isnan(values[first]):
        first += 1
    if first == values.shape[0]:
        return np.nan, 0.0
    base, largest = values[first], 0.0
    for value in values:
        if abs(value - base) > largest:
            largest = abs(value - base)
    if largest == 0.0:
        return base, 0.0
    centre, spread = 0.0, np.inf
    for _ in range(3):
        low, high = centre - _OUTLIER * spread, centre + _OUTLIER * spread
        total, known = 0.0, 0
        for value in values:
            if not np.isnan(value):
                total += min(max((value - base) / largest, low), high)
                known += 1
        centre, squares = total / known, 0.0
        for value in values:
            if not np.isnan(value):
                distance = min(max((value - base) / largest, low), high) - centre
                squares += distance * distance
        spread = np.sqrt(squares / known)
    return base + largest * centre, largest * spread


@_inner
def _growth(values: Array, normalised: int) -> int:
    """By how many observations a context grows before its units change: a sixteenth to an eighth of it.

    The bits of the newest value decide the exact number. Otherwise, series that began together would all change units
    at once, and that step would take a hundred times as long as any other.
    """
    most = normalised // 8
    if most < 2:
        return 1
    scattered = (bits_of(values[normalised - 1]) * _SCATTER) >> 32
    return int(most - (scattered & 0xFFFF) % (most // 2 + 1))


@_inner
def _drop_oldest(values: Array, length: int, context_length: int) -> int:
    """Drop all but the newest observations, and leading missing ones; returns how many are left."""
    first = max(0, length - context_length)
    while first < length and np.isnan(values[first]):
        first += 1
    kept = length - first
    if first > 0:
        for at in range(kept):
            values[at] = values[first + at]
        values[kept:length] = 0.0
    return kept


@_exact
def renormalise(memory: PatchMemory, rows: Array) -> None:
    """Recompute everything that depends on the observations of these series."""
    for series in rows:
        units = centre_and_scale(memory.values[series, : memory.normalised[series]])
        memory.centre[series], memory.scale[series] = units
        memory.encoded[series] = 0  # no patch in these units yet


@_inner
def _needs_network(length: int, centre: float, scale: float, quantiles: Array) -> bool:
    """Whether the forecast of a series needs the network. If not, it is written here."""
    if length == 0:
        return False
    if scale > 0.0:
        return True
    quantiles[:] = centre
    return False


@_inner
def _missing_patches(encoded: Array, asked: Array) -> Array:
    """The patches, `(series, patch)`, that must be encoded before these forecasts, series by series."""
    count = 0
    for i in range(asked.shape[0]):
        if i + 1 == asked.shape[0] or asked[i + 1, 0] != asked[i, 0]:
            count += max(0, asked[i, 1] // PATCH - encoded[asked[i, 0]])
    missing = np.empty((count, 2), dtype=np.int64)
    count = 0
    for i in range(asked.shape[0]):
        if i + 1 == asked.shape[0] or asked[i + 1, 0] != asked[i, 0]:
            for patch in range(encoded[asked[i, 0]], asked[i, 1] // PATCH):
                missing[count, 0], missing[count, 1] = asked[i, 0], patch
                count += 1
    return missing


@_exact
def follow(
    values: Array, columns: Array, rows: Array, wanted: Array, context_length: int, memory: PatchMemory, at: Array,
    quantiles: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Add the next observations to each series, `rows[n]` from `values[at[n], columns[n]]` on, until its units change.

    Returns the patches to encode, `(series, patch)`, and the forecasts to make, `(series, length, step, column)`.
    Forecasts that need no network are written here.
    """
    steps, count = values.shape[0], rows.shape[0]
    asked = np.empty((count * min(steps, _STEPS), 4), dtype=np.int64)
    questions = 0
    for n in range(count):
        series, column = rows[n], columns[n]
        seen = memory.values[series]
        taken = 0
        while at[n] < steps and taken < _STEPS:
            value = values[at[n], column]
            # A series begins with its first number.
            if memory.length[series] > 0 or not np.isnan(value):
                length, normalised = memory.length[series], memory.normalised[series]
                grown = length + 1 >= normalised + _growth(seen, normalised)
                due = grown or abs(value - memory.centre[series]) > _TOO_FAR * memory.scale[series]
                if due and taken > 0:
                    break
                seen[length] = value
                memory.length[series] = length + 1
                if due:
                    kept = _drop_oldest(seen, length + 1, context_length)
                    memory.length[series] = memory.normalised[series] = kept
                    memory.centre[series], memory.scale[series] = centre_and_scale(seen[:kept])
                    memory.encoded[series] = 0  # no patch in these units yet
            if wanted[at[n], column] and _needs_network(
                memory.length[series], memory.centre[series], memory.scale[series], quantiles[at[n], column]
            ):
                question = asked[questions]
                question[0], question[1], question[2], question[3] = series, memory.length[series], at[n], column
                questions += 1
            taken += 1
            at[n] += 1
    return _missing_patches(memory.encoded, asked[:questions]), asked[:questions]


@_exact
def review(memory: PatchMemory, quantiles: Array) -> tuple[Array, Array]:
    """Request a forecast of every series as it is, `quantiles[-1, series]`; returns what `follow` does."""
    count, step = memory.length.shape[0], quantiles.shape[0] - 1
    asked = np.empty((count, 4), dtype=np.int64)
    questions = 0
    for series in range(count):
        if _needs_network(memory.length[series], memory.centre[series], memory.scale[series], quantiles[step, series]):
            question = asked[questions]
            question[0], question[1], question[2], question[3] = series, memory.length[series], step, series
            questions += 1
    return _missing_patches(memory.encoded, asked[:questions]), asked[:questions]

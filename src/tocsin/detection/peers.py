"""Signals that should behave alike, such as those of identical pumps, beside each other.

What moves all of them, such as load or weather, leaves the distance of each from their median as it is. So a drift that
is slow in time, and small beside what moves all, shows in it. The distances are features like any other: a detector
ranks them in the signal's own past.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.checks import ArgumentError
from tocsin.data import Signal
from tocsin.detection.incidents.verdict import name_and_unit

# Of two signals that part, nobody can tell which one moved.
FEWEST = 3
# The number of times from which the usual differences between signals are learned.
LEARNED = 200


def peer_levels(values: ArrayLike) -> NDArray[np.float64]:
    """How far each of several signals usually is from the median of all, `(S,)` or `(S, F)`.

    `values` are `(T, S)` or `(T, S, F)`; NaN if missing. Zero for a signal that cannot be compared.
    """
    table = _table(values)
    apart = against_peers(table, np.zeros(table.shape[1:]))
    return np.asarray(np.nan_to_num(_median(apart, axis=0)[0]))


def against_peers(values: ArrayLike, levels: ArrayLike) -> NDArray[np.float64]:
    """How far each of several signals is from the median of all at the same time, apart from their usual `levels`.

    `values` are `(T, S)` or `(T, S, F)`; NaN if missing. The result has the same shape, with NaN where fewer than three
    signals have a value. Without the levels, a signal that moves past others would move the median.

    Examples
    --------
    >>> past = [[20.0, 21.0, 26.0], [30.0, 31.0, 36.0], [20.0, 21.0, 26.0]]
    >>> levels = peer_levels(past)
    >>> levels.tolist()
    [-1.0, 0.0, 5.0]
    >>> against_peers([[10.0, 11.0, 19.0]], levels).tolist()
    [[0.0, 0.0, 3.0]]
    """
    table = _table(values) - checks.numbers("levels", levels)
    enough = np.isfinite(table).sum(axis=1, keepdims=True) >= FEWEST
    return np.where(enough, table - _median(table, axis=1), np.nan)


def _table(values: ArrayLike) -> NDArray[np.float64]:
    table = checks.numbers("values", values)
    if table.ndim not in (2, 3):
        raise ArgumentError("values", f"must have the shape (T, S) or (T, S, F), got {table.shape}")
    return table


def _median(table: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where all are missing, so is their median
        return np.asarray(np.nanmedian(table, axis=axis, keepdims=True))


def with_peers(signals: Sequence[Signal]) -> list[Signal]:
    """The signals with as many features more: how far each is from the median of all signals at the same time.

    Their usual differences are those of the first 200 times.
    """
    if len(signals) < FEWEST:
        raise ArgumentError("peers", f"must be used with at least {FEWEST} signals, got {len(signals)}")
    if len({len(one.features) for one in signals}) > 1:
        raise ArgumentError("peers", "must be used with signals that have the same features")
    times = [np.arange(len(one)) if one.times is None else one.times for one in signals]
    moments = np.unique(np.concatenate(times))
    places = [np.searchsorted(moments, one) for one in times]
    table = np.full((len(moments), len(signals), len(signals[0].features)), np.nan)
    for number, (place, one) in enumerate(zip(places, signals, strict=True)):
        table[place, number] = one.values
    apart = against_peers(table, peer_levels(table[:LEARNED]))
    if 2 * np.count_nonzero(np.isfinite(apart)) < np.count_nonzero(np.isfinite(table)):
        reason = "must be used with signals that mostly have the same times: aggregate them with `every`"
        raise ArgumentError("peers", reason)
    return [
        replace(
            one,
            features=(*one.features, *map(_called, one.features)),
            values=np.hstack([one.values, apart[place, number]]),
        )
        for number, (place, one) in enumerate(zip(places, signals, strict=True))
    ]


def _called(feature: str) -> str:
    name, unit = name_and_unit(feature)
    return f"{name} against peers" + (f" [{unit}]" if unit else "")

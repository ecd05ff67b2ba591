"""Signals that should behave alike, such as those of identical pumps, beside each other.

What moves all of them, such as load or weather, leaves the distance of each from their median as it is. So a drift that
is slow in time, and small beside what moves all, shows in it. The distances are features like any other: a detector
ranks them in the signal's own past.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.checks import ArgumentError
from tocsin.data import Signal
from tocsin.detection.incidents.verdict import name_and_unit

# Of two signals that part, nobody can tell which one moved.
FEWEST = 3
# The number of a signal's first distances from which its usual one is learned.
PEERS_LEARNED = 200

Floats = NDArray[np.float64]


def against_peers(values: ArrayLike, levels: ArrayLike) -> Floats:
    """How far each of several signals is from the median of all at the same time.

    `values` are `(T, S)` or `(T, S, F)`; NaN if missing. `levels`, `(S,)` or `(S, F)`, are the usual distances of the
    signals, NaN if unknown. They are subtracted before the median is taken, because a signal that moves past others
    would move it. While fewer than three known levels have a value, the median is that of the values as they are. The
    result has the shape of the values, with NaN where fewer than three signals have one.

    Examples
    --------
    >>> against_peers([[20.0, 21.0, 26.0]], [np.nan, np.nan, np.nan]).tolist()
    [[-1.0, 0.0, 5.0]]
    >>> against_peers([[10.0, 11.0, 19.0]], [-1.0, 0.0, 5.0]).tolist()
    [[-1.0, 0.0, 8.0]]
    """
    table = checks.numbers("values", values)
    if table.ndim not in (2, 3):
        raise ArgumentError("values", f"must have the shape (T, S) or (T, S, F), got {table.shape}")
    table[np.isinf(table)] = np.nan  # a detector takes it as missing, too
    level = table - checks.numbers("levels", levels)
    known = np.isfinite(level).sum(axis=1, keepdims=True) >= FEWEST
    middle = _median(np.where(known, level, table), axis=1)
    return np.where(np.isfinite(table).sum(axis=1, keepdims=True) >= FEWEST, table - middle, np.nan)


def _median(table: Floats, axis: int) -> Floats:
    """The median of what is not NaN, NaN if nothing is; several times as fast as `np.nanmedian`."""
    ordered = np.sort(table, axis=axis)  # NaN comes last
    count = np.count_nonzero(~np.isnan(table), axis=axis, keepdims=True)
    low, high = (np.take_along_axis(ordered, np.maximum(at, 0), axis) for at in ((count - 1) // 2, count // 2))
    return np.where(count > 0, 0.5 * (low + high), np.nan)


class PeerLevels:
    """How far signals usually are from the median of all, learned from the first distances of each."""

    def __init__(self, signals: int, features: int) -> None:
        self._first = np.full((signals, features, PEERS_LEARNED), np.nan)
        self._learn()

    def compare(self, values: Floats, rows: NDArray[np.intp]) -> Floats:
        """How far each signal is from the others, `(T, S, F)`, for those of `rows`; see `against_peers`.

        A level that becomes known counts from the next time on. So any pieces give the same numbers as the whole.
        """
        pieces = []
        while len(values):
            learning = np.isnan(self._first[rows, :, -1]).any()
            apart = against_peers(values[:PEERS_LEARNED] if learning else values, self.levels[rows])
            if learning:
                apart = apart[: self.note(apart, rows)]
            pieces.append(apart)
            values = values[len(apart) :]
        return np.concatenate(pieces) if pieces else values

    def note(self, apart: Floats, rows: NDArray[np.intp]) -> int:
        """Keep the first distances of signals, up to the time at which a level is known; returns how many times."""
        known = np.isfinite(apart)
        missing = np.isnan(self._first[rows]).sum(axis=2)
        whole = ((np.cumsum(known, axis=0) == missing) & (missing > 0)).any(axis=(1, 2))
        taken = int(whole.argmax()) + 1 if whole.any() else len(apart)
        for signal, feature in np.argwhere(missing):
            more = apart[:taken, signal, feature][known[:taken, signal, feature]]
            begin = PEERS_LEARNED - missing[signal, feature]
            self._first[rows[signal], feature, begin : begin + len(more)] = more
        if whole.any():
            self._learn()
        return taken

    def _learn(self) -> None:
        whole = np.isfinite(self._first[..., -1])
        #: The usual distance of each signal and feature; NaN if unknown.
        self.levels = np.where(whole, _median(self._first, axis=2)[..., 0], np.nan)

    def state(self, rows: NDArray[np.intp]) -> dict[str, Floats]:
        """Everything needed to resume later, of these signals."""
        return {"first": self._first[rows]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        first = checks.numbers("first", state["first"])
        if first.shape != self._first.shape:
            raise ValueError(f"first must have shape {self._first.shape}, got {first.shape}")
        self._first = first.copy()
        self._learn()

    def copy_from(self, row: int, other: "PeerLevels", theirs: int) -> None:
        """Continue in a row with a signal of another group."""
        self._first[row] = other._first[theirs]
        self._learn()


def with_peers(signals: Sequence[Signal]) -> list[Signal]:
    """The signals with one more feature for each: its distance from the median of all signals at the same time."""
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
    apart = PeerLevels(*table.shape[1:]).compare(table, np.arange(len(signals)))
    if 2 * np.count_nonzero(np.isfinite(apart)) < np.count_nonzero(np.isfinite(table)):
        reason = "must be used with signals that mostly have the same times: aggregate them with `every`"
        raise ArgumentError("peers", reason)
    return [
        replace(one, features=peer_features(one.features), values=np.hstack([one.values, apart[place, number]]))
        for number, (place, one) in enumerate(zip(places, signals, strict=True))
    ]


def peer_features(features: Sequence[str]) -> tuple[str, ...]:
    """The names of features, with those of their distances from the peers.

    >>> peer_features(["flow [l/s]"])
    ('flow [l/s]', 'flow against peers [l/s]')
    """
    return (*features, *map(_called, features))


def _called(feature: str) -> str:
    name, unit = name_and_unit(feature)
    return f"{name} against peers" + (f" [{unit}]" if unit else "")

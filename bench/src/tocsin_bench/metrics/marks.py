"""Labels, alarms, scores and p-values as every metric takes them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Marks:
    """Observations that are marked, by a label or by an alarm, and the unbroken runs that they form.

    Metrics accept these instead of arrays, so that checks and runs are computed only once.
    """

    flags: NDArray[np.bool_]

    @cached_property
    def positions(self) -> Integers:
        """Where the marked observations are."""
        return np.flatnonzero(self.flags)

    @cached_property
    def _edges(self) -> Integers:
        return np.flatnonzero(np.diff(self.flags, prepend=False, append=False))

    @cached_property
    def starts(self) -> Integers:
        """Where each run starts."""
        return np.ascontiguousarray(self._edges[::2])

    @cached_property
    def stops(self) -> Integers:
        """Where each run stops: the first observation after it."""
        return np.ascontiguousarray(self._edges[1::2])

    def within(self, starts: Integers, stops: Integers) -> Integers:
        """How many marked observations there are from each start to before its stop."""
        return np.asarray(np.searchsorted(self.positions, stops) - np.searchsorted(self.positions, starts))

    def runs_within(self, starts: Integers, stops: Integers) -> Integers:
        """How many runs reach into each stretch from a start to before its stop."""
        begun = np.searchsorted(self.starts, stops)
        over = np.searchsorted(self.stops, starts, side="right")
        return np.asarray(begun - over)


Flags = ArrayLike | Marks
"""0 or 1 (False or True) for each observation."""


def read_labels(labels: Flags) -> Marks:
    """The labels, or an error that says what is wrong with them."""
    return _marks("labels", labels)


def read_alarms(alarms: Flags, labels: Marks) -> Marks:
    """The alarms, or an error that says what is wrong with them."""
    marks = _marks("alarms", alarms)
    _as_many("alarms", marks.flags.size, labels)
    return marks


def read_scores(scores: ArrayLike, labels: Marks) -> Floats:
    """The scores; none may be missing."""
    array = observations("scores", scores)
    _as_many("scores", array.size, labels)
    _refuse("scores", array, np.isnan(array), "numbers and not NaN")
    return array


def read_p(p: ArrayLike, labels: Marks) -> Floats:
    """The p-values; a missing one counts as 1: nothing anomalous was seen."""
    array = observations("p", p)
    _as_many("p", array.size, labels)
    _refuse("p", array, (array < 0) | (array > 1), "from 0 to 1, or NaN where missing")
    return np.where(np.isnan(array), 1.0, array)


def read_thresholds(thresholds: ArrayLike) -> Floats:
    """The thresholds on p, in ascending order."""
    array = observations("thresholds", thresholds)
    _refuse("thresholds", array, ~((array >= 0) & (array <= 1)), "from 0 to 1")
    return np.sort(array)


def observations(name: str, values: ArrayLike) -> Floats:
    """One number for each observation, of which there is at least one."""
    array = checks.numbers(name, values)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must have one dimension and at least one value, got shape {array.shape}")
    return array


def _marks(name: str, flags: Flags) -> Marks:
    if isinstance(flags, Marks):
        return flags
    array = observations(name, flags)
    _refuse(name, array, (array != 0) & (array != 1), "0 or 1")
    return Marks(array == 1)


def _as_many(name: str, count: int, labels: Marks) -> None:
    if count != labels.flags.size:
        raise ValueError(f"{name} must be as many as the labels, {labels.flags.size}, got {count}")


def _refuse(name: str, array: Floats, wrong: NDArray[np.bool_], accepted: str) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name} must be {accepted}, got {array[at]:g} at position {at}")

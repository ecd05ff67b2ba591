"""One monitored series, as read."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.problems import Problem

Interval = np.timedelta64 | float


@dataclass(frozen=True, eq=False)
class Signal:
    """The observations of one signal in time order, one row each.

    Attributes
    ----------
    name : the signal's name.
    features : the names of the value columns.
    times : datetime64[ns] (UTC if the source gave a time zone), or float64 for plain numbers, or None.
        Strictly increasing.
    values : float64, one column per feature; NaN if there is no usable value.
    lines : the line (text files) or row (Parquet, frames) of each observation, counted from 1; 0 for observations
        inserted for a gap.
    interval : the sampling interval, given or inferred, of the same kind as `times`; None if it cannot be inferred.
    problems : the problems found in this signal.
    """

    name: str
    features: tuple[str, ...]
    times: NDArray[Any] | None
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    interval: Interval | None
    problems: tuple[Problem, ...]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def observed(self) -> int:
        """The number of observations, without those inserted for gaps."""
        return int(np.count_nonzero(self.lines))

    def piece(self, first: int, last: int) -> "Signal":
        """The observations from `first` up to `last`."""
        part = slice(first, last)
        times = None if self.times is None else self.times[part]
        return replace(self, times=times, values=self.values[part], lines=self.lines[part])

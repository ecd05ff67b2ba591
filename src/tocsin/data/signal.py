"""One monitored series, as it was read."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.problems import Problem

Interval = np.timedelta64 | float


@dataclass(frozen=True, eq=False)
class Signal:
    """The observations of one signal in the order of their times, one row each.

    Attributes
    ----------
    name : what the signal is called.
    features : the names of the value columns.
    times : datetime64[ns] (UTC where the source gave a zone), or float64 for times that are plain numbers, or None.
        Strictly increasing.
    values : float64, one column a feature; NaN where nothing usable was observed.
    lines : the line (text files) or row (Parquet, frames) an observation came from, counted from 1; 0 for the
        observations that were put in for a gap.
    interval : the sampling interval, given or inferred, in the kind of `times`; None where there is none to infer.
    problems : what was wrong with this signal.
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
        """How many observations there are, without those that were put in for gaps."""
        return int(np.count_nonzero(self.lines))

    def piece(self, first: int, last: int) -> "Signal":
        """The observations from `first` up to `last`."""
        part = slice(first, last)
        times = None if self.times is None else self.times[part]
        return replace(self, times=times, values=self.values[part], lines=self.lines[part])

"""Aggregation of observations at arbitrary times to a regular interval.

The observation at t aggregates those from t up to t + `every`. Its times are multiples of `every` since 1970 (or zero).
Missing values are ignored. An empty interval gives no observation.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.checks import Argument, Message
from tocsin.data.problems import ProblemLog
from tocsin.data.timeline import ParsedObservation, as_interval, sort_by_time

Floats = NDArray[np.float64]


def _mean(values: Floats, starts: NDArray[np.intp]) -> Floats:
    count = _count(values, starts)
    total = np.add.reduceat(np.nan_to_num(values, nan=0.0), starts, axis=0)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _sum(values: Floats, starts: NDArray[np.intp]) -> Floats:
    total: Floats = np.add.reduceat(np.nan_to_num(values, nan=0.0), starts, axis=0)
    total[_count(values, starts) == 0] = np.nan
    return total


def _max(values: Floats, starts: NDArray[np.intp]) -> Floats:
    highest: Floats = np.fmax.reduceat(values, starts, axis=0)
    return highest


def _last(values: Floats, starts: NDArray[np.intp]) -> Floats:
    rows = np.where(np.isnan(values), -1, np.arange(len(values))[:, np.newaxis])
    last = np.maximum.reduceat(rows, starts, axis=0)
    there = last >= starts[:, np.newaxis]
    return np.where(there, np.take_along_axis(values, np.maximum(last, 0), axis=0), np.nan)


def _count(values: Floats, starts: NDArray[np.intp]) -> Floats:
    counts: Floats = np.add.reduceat(np.isfinite(values).astype(np.float64), starts, axis=0)
    return counts


_BY: dict[str, Callable[[Floats, NDArray[np.intp]], Floats]] = {
    "mean": _mean, "last": _last, "max": _max, "sum": _sum, "count": _count,
}  # fmt: skip
AGGREGATES = tuple(_BY)


def aggregated(values: Floats, aggregate: str) -> Floats:
    """Aggregate rows to one row."""
    together: Floats = _BY[aggregate](values, np.zeros(1, dtype=np.intp))[0]
    return together


def resample(
    times: NDArray[Any],
    values: Floats,
    lines: NDArray[np.int64],
    every: Any,
    aggregate: str,
    log: ProblemLog,
    unit: str,
) -> tuple[NDArray[Any], Floats, NDArray[np.int64]]:
    """One row for each interval that is not empty; its line is that of the first observation in it."""
    times, values, lines = sort_by_time(times, values, lines, log, unit)
    bins = _floor(times, every)
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
    return bins[starts], _BY[aggregate](values, starts), lines[starts]


class Resampler:
    """The same for a stream: an interval's observation is emitted when a later one arrives."""

    def __init__(self, every: Any, aggregate: str = "mean") -> None:
        """`every` is a duration, or a number if the times are numbers."""
        self._given = every
        self._every: Any = None  # of the same kind as the times, once one is known
        self._aggregate = checks.choice("aggregate", aggregate, AGGREGATES)
        # By id: the start, the time zone it was written with, and the values.
        self._open: dict[str | None, tuple[Any, str | None, list[tuple[float, ...]]]] = {}

    def push(self, observation: ParsedObservation) -> ParsedObservation | None:
        """Add an observation; returns the one that is now complete, if any.

        ValueError if it has no time, or belongs to an interval already emitted.
        """
        if observation.time is None:
            needed = " needs times, but the lines have none; set "
            raise ValueError(Message(Argument("every"), needed, Argument("time"), " to the time field"))
        if self._every is None:
            dated = isinstance(observation.time, np.datetime64)
            self._every = as_interval(self._given, dated=dated, name="every")
        time = _floor(np.array([observation.time]), self._every)[0]
        before = self._open.get(observation.id)
        if before is not None and time < before[0]:
            raise ValueError(f"time must be later than {before[0]}, which is already complete, got {observation.time}")
        if before is not None and time == before[0]:
            before[2].append(observation.values)
            return None
        self._open[observation.id] = (time, observation.zone, [observation.values])
        return None if before is None else self._whole(observation.id, *before)

    def flush(self) -> Iterator[ParsedObservation]:
        """The incomplete observations at the end."""
        for id_, begun in self._open.items():
            yield self._whole(id_, *begun)
        self._open = {}

    def _whole(self, id_: str | None, time: Any, zone: str | None, rows: list[tuple[float, ...]]) -> ParsedObservation:
        values = aggregated(np.array(rows, dtype=np.float64), self._aggregate)
        moment = time if isinstance(time, np.datetime64) else float(time)
        return ParsedObservation(id_, moment, tuple(values.tolist()), zone)


def _floor(times: NDArray[Any], every: Any) -> NDArray[Any]:
    if times.dtype.kind != "M":
        return np.asarray(np.floor(times / every) * every)
    stamps = times.astype("datetime64[ns]").view(np.int64)
    length = int(every.astype("timedelta64[ns]").astype(np.int64))
    return np.asarray(stamps // length * length).view("datetime64[ns]")

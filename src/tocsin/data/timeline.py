"""From times as read to a regular timeline. Files and streams follow the same rules.

Times are sorted. Of equal times the first in the file is kept. A step of k intervals (rounded) with k >= 2 stands for
k - 1 missing observations, at most `longest_gap` of them. Nothing is ever interpolated.

With `every`, observations at arbitrary times are aggregated to a regular interval. The observation at t aggregates
those from t up to t + `every`. Its times are multiples of `every` since 1970 (or zero). Missing values are ignored. An
empty interval gives no observation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.problems import DataError, Problem, ProblemLog

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}
_NAMES = {
    "nanosecond": "ns", "microsecond": "us", "µs": "us", "millisecond": "ms", "msec": "ms",
    "second": "s", "sec": "s", "minute": "min", "m": "min", "hour": "h", "hr": "h", "day": "d", "week": "w",
}  # fmt: skip
_PART = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)?\s*([a-zµ]+)\s*", re.IGNORECASE)
_ACCEPTED = "a duration such as '30s', '5min', '1h', '1h 30min', '0.5s', '1d' or '2 weeks'"

Interval = np.timedelta64 | float
LONGEST_GAP = 1000
MOST_INSERTED = 20_000_000  # observations inserted into one signal for gaps, beyond which the interval must be wrong
MOST_APART = 50  # intervals: if observations are usually further apart, the interval must be wrong
TOLERANCE = 0.1  # of an interval: a step off by more is irregular


def parse_duration(duration: Any) -> np.timedelta64:
    """A positive duration as timedelta64[ns], from text, a timedelta or a timedelta64.

    Units: ns, us, ms, s, min (or m), h, d, w, and their long names. Months and years have no fixed length.

    Examples
    --------
    >>> print(parse_duration("0.5 minutes"))
    30000000000 nanoseconds
    """
    try:
        length = _nanoseconds(duration) if isinstance(duration, str) else _exactly(duration)
    except (OverflowError, ValueError):
        raise ValueError(f"expected {_ACCEPTED}, got {duration!r}") from None
    if not 0 < length < 2**63:
        raise ValueError(f"expected {_ACCEPTED}, longer than zero and below 292 years, got {duration!r}")
    return np.timedelta64(length, "ns")


def _nanoseconds(text: str) -> int:
    whole, end = Decimal(0), 0
    while end < len(text) or end == 0:
        part = _PART.match(text, end)
        if part is None:
            raise ValueError(text)
        whole += Decimal(part[1] or 1) * _unit(part[2])
        end = part.end()
    return round(whole)


def _unit(name: str) -> int:
    name = name.lower()
    for candidate in (name, name.removesuffix("s")):
        short = _NAMES.get(candidate, candidate)
        if short in _UNITS:
            return _UNITS[short]
    raise ValueError(name)


def _exactly(duration: Any) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1) * 1000
    if isinstance(duration, np.timedelta64) and not np.isnat(duration):
        return int(duration.astype("timedelta64[ns]").astype(np.int64))
    raise ValueError(duration)


def duration_text(duration: np.timedelta64 | float) -> str:
    """A duration as people write it, in the largest unit that gives a whole number. A plain number stays as it is.

    Examples
    --------
    >>> duration_text(np.timedelta64(90, "m")), duration_text(np.timedelta64(2, "h")), duration_text(0.5)
    ('90 min', '2 h', '0.5')
    """
    if not isinstance(duration, np.timedelta64):
        return f"{duration:.6g}"
    length = int(duration.astype("timedelta64[ns]").astype(np.int64))
    name, size = next((name, size) for name, size in reversed(_UNITS.items()) if length % size == 0 and name != "w")
    return f"{length // size} {name}"


@dataclass(frozen=True, slots=True)
class ParsedObservation:
    """One observation: its signal (None if lines have no id), its time (None if they have none), and its values."""

    id: str | None
    time: np.datetime64 | float | None
    values: tuple[float, ...]
    #: The time zone that its time was written with, such as "+02:00"; None if there was none.
    zone: str | None = None


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


@dataclass(frozen=True, eq=False)
class Timeline:
    """Observations of one signal, in any order until they are regular. The fields are those of `Signal`."""

    times: NDArray[Any]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    interval: Interval | None = None

    def of(self, which: NDArray[Any]) -> "Timeline":
        """Some of the observations, or all in another order."""
        return replace(self, times=self.times[which], values=self.values[which], lines=self.lines[which])


def infer_interval(times: NDArray[Any]) -> Interval | None:
    """The sampling interval of increasing times: the median step; None for fewer than two times.

    For an even number of steps it is the lower median, so it is always a step that occurs. If at least a fifth of
    the steps are shorter than 0.6 of it and agree with each other, gaps outnumber the regular steps, and the interval
    is the shorter step.

    Examples
    --------
    >>> infer_interval(np.array([0.0, 1.0, 2.0, 7.0, 8.0, 9.0]))
    1.0
    """
    steps = np.sort(_steps(times))
    if steps.size == 0:
        return None
    middle = steps[(steps.size - 1) // 2]
    short = steps[: np.searchsorted(steps, 0.6 * middle if steps.dtype.kind == "f" else middle * 3 // 5)]
    if short.size >= 0.2 * steps.size:
        shorter = short[(short.size - 1) // 2]
        if np.mean(np.abs(short - shorter) <= TOLERANCE * shorter) > 0.9:
            middle = shorter
    return middle if isinstance(middle, np.timedelta64) else float(middle)


def missing_steps(previous: Any, now: Any, interval: Any, longest_gap: int = LONGEST_GAP) -> int:
    """The number of observations missing between two consecutive ones; 0 if `now` is not later.

    The times are datetime64 or numbers, the interval a timedelta64 or a number.

    Examples
    --------
    >>> missing_steps(10.0, 14.1, 1.0), missing_steps(10.0, 11.4, 1.0), missing_steps(10.0, 1e12, 1.0)
    (3, 0, 1000)
    """
    if not previous < now:
        return 0
    return int(_missing(_steps(np.array([previous, now])), interval, longest_gap)[0])


def as_interval(interval: Any, *, dated: bool, name: str = "interval") -> Interval:
    """A given interval of the same kind as the times: a duration (a plain number means seconds), or a number."""
    if isinstance(interval, (str, timedelta, np.timedelta64)):
        if not dated:
            raise ArgumentError(name, f"must be a number, because the times are numbers, got {interval!r}")
        return parse_duration(interval)
    number = checks.number(name, interval, above=0, below=np.inf)
    return np.timedelta64(round(number * 10**9), "ns") if dated else number


def regularize(
    read: Timeline, log: ProblemLog, interval: Interval | None = None, longest_gap: int = LONGEST_GAP
) -> Timeline:
    """The regular timeline of a file's observations; every change is logged."""
    read, unit = _by_time(read, log), log.unit
    repeated = np.zeros(len(read.times), dtype=np.bool_)
    repeated[1:] = read.times[1:] == read.times[:-1]
    if repeated.any():
        originals = np.repeat(read.lines[~repeated], np.diff(np.flatnonzero(np.append(~repeated, True))))[repeated]
        pairs = zip(read.lines[repeated], originals, strict=True)
        places = (f"{unit} {line}: same time as {unit} {original}" for line, original in pairs)
        log.add("duplicate time", int(repeated.sum()), places)
        read = read.of(~repeated)
    interval = infer_interval(read.times) if interval is None else interval
    read = replace(read, interval=interval)
    if interval is None or len(read.times) < 2:
        return read
    steps = _steps(read.times)
    _check_interval(steps, interval)
    missing = _missing(steps, interval, longest_gap)
    _log_steps(steps, missing, interval, longest_gap, read.lines, log)
    return _fill(read, missing, interval) if missing.any() else read


def _by_time(read: Timeline, log: ProblemLog) -> Timeline:
    """Observations in the order of their times; those out of order are logged."""
    late = read.times < np.maximum.accumulate(read.times)
    if not late.any():
        return read
    log.add("unsorted", int(late.sum()), (f"{log.unit} {line}: earlier than before" for line in read.lines[late]))
    return read.of(np.argsort(read.times, kind="stable"))


def _check_interval(steps: NDArray[Any], interval: Interval) -> None:
    """DataError if nearly all observations would be missing because the given interval is wrong."""
    typical = np.sort(steps)[(steps.size - 1) // 2]
    if steps.size > 1 and typical // interval > MOST_APART:
        apart = duration_text(typical)
        raise DataError(
            Message(
                f"the times are {apart} apart, but the interval is {duration_text(interval)}: nearly all observations "
                "would be missing; omit ",
                Argument("interval"),
                f", or set it to {apart}",
            )
        )


def _steps(times: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        steps = np.diff(times)
    if steps.dtype.kind == "m":
        # Two times may be further apart than 64-bit nanoseconds can express: then the step is the longest possible.
        whole = steps.view(np.int64)
        whole[whole < 0] = np.iinfo(np.int64).max
    return steps


def _missing(steps: NDArray[Any], interval: Any, longest_gap: int) -> NDArray[np.int64]:
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.minimum(steps // interval, 2**53)  # far beyond any gap, and exact both as an integer and as a double
        rest = steps - whole * interval
        intervals = whole + (rest >= interval - rest)
    return np.asarray(np.clip(intervals - 1, 0, longest_gap), dtype=np.int64)


def _log_steps(
    steps: NDArray[Any],
    missing: NDArray[np.int64],
    interval: Interval,
    longest_gap: int,
    lines: NDArray[np.int64],
    log: ProblemLog,
) -> None:
    gaps, unit = np.flatnonzero(missing), log.unit
    if gaps.size:
        log.add("gap", gaps.size, (f"after {unit} {lines[i]}: {missing[i]} missing" for i in gaps))
    # If one more interval would still give a gap of that length, nothing was cut.
    cut = gaps[_missing(steps[gaps], interval, longest_gap + 1) > longest_gap]
    if cut.size:
        log.add("gap shortened", cut.size, (f"after {unit} {lines[i]}: to {longest_gap} missing" for i in cut))
    odd = np.flatnonzero((missing == 0) & (np.abs(steps - interval) > TOLERANCE * interval))
    if odd.size:
        places = (f"after {unit} {lines[i]}: {steps[i] / interval:.3g} intervals" for i in odd)
        log.add("irregular step", odd.size, places)


def _fill(read: Timeline, missing: NDArray[np.int64], interval: Interval) -> Timeline:
    times, inserted = read.times, int(missing.sum())
    if inserted > MOST_INSERTED:
        problem = f"{inserted} observations would be missing among {len(times)}: the interval {duration_text(interval)}"
        raise DataError(
            Message(problem, " cannot be right; set ", Argument("interval"), ", or a smaller ", Argument("longest_gap"))
        )
    ends = np.cumsum(missing)
    places = np.arange(len(times))
    places[1:] += ends
    full_values = np.full((len(times) + inserted, read.values.shape[1]), np.nan)
    full_values[places] = read.values
    full_lines = np.zeros(len(full_values), dtype=np.int64)
    full_lines[places] = read.lines
    full_times = np.empty(len(full_values), dtype=times.dtype)
    nth = np.arange(1, inserted + 1) - np.repeat(ends - missing, missing)  # 1, 2, ... restarting in every gap
    full_times[full_lines == 0] = np.repeat(times[:-1], missing) + nth * interval
    full_times[places] = times
    return Timeline(full_times, full_values, full_lines, interval)


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


def resample(read: Timeline, every: Any, aggregate: str, log: ProblemLog) -> Timeline:
    """One row for each interval that is not empty; its line is that of the first observation in it."""
    read = _by_time(read, log)
    bins = _floor(read.times, every)
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
    return Timeline(bins[starts], _BY[aggregate](read.values, starts), read.lines[starts])


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

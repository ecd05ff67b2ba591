"""From times as read to a regular timeline. Files and streams follow the same rules.

Times are sorted. Of equal times the first in the file is kept. A step of k intervals (rounded) with k >= 2 stands for
k - 1 missing observations, at most `longest_gap` of them. Nothing is ever interpolated.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.data.durations import duration_text, parse_duration
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.signal import Interval

LONGEST_GAP = 1000
MOST_INSERTED = 20_000_000  # observations inserted into one signal for gaps, beyond which the interval must be wrong
MOST_APART = 50  # intervals: if observations are usually further apart, the interval must be wrong
TOLERANCE = 0.1  # of an interval: a step off by more is irregular


@dataclass(frozen=True, eq=False)
class Timeline:
    """Observations in order, one for every interval; `lines` is 0 for inserted ones."""

    times: NDArray[Any]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    interval: Interval | None


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
            raise ValueError(f"{name} must be a number, because the times are numbers, got {interval!r}")
        return parse_duration(interval)
    number = checks.number(name, interval, above=0, below=np.inf)
    return np.timedelta64(round(number * 10**9), "ns") if dated else number


def lay_out(
    times: NDArray[Any],
    values: NDArray[np.float64],
    lines: NDArray[np.int64],
    *,
    log: ProblemLog,
    interval: Interval | None = None,
    longest_gap: int = LONGEST_GAP,
    unit: str = "line",
) -> Timeline:
    """The regular timeline of a file's observations; every change is logged."""
    late = times < np.maximum.accumulate(times)
    if late.any():
        log.add("unsorted", int(late.sum()), (f"{unit} {line}: earlier than before" for line in lines[late]))
        order = np.argsort(times, kind="stable")
        times, values, lines = times[order], values[order], lines[order]
    repeated = np.zeros(len(times), dtype=np.bool_)
    repeated[1:] = times[1:] == times[:-1]
    if repeated.any():
        originals = np.repeat(lines[~repeated], np.diff(np.flatnonzero(np.append(~repeated, True))))[repeated]
        pairs = zip(lines[repeated], originals, strict=True)
        places = (f"{unit} {line}: same time as {unit} {original}" for line, original in pairs)
        log.add("duplicate time", int(repeated.sum()), places)
        times, values, lines = times[~repeated], values[~repeated], lines[~repeated]
    if interval is None:
        interval = infer_interval(times)
    if interval is None or len(times) < 2:
        return Timeline(times, values, lines, interval)
    steps = _steps(times)
    _check_interval(steps, interval)
    missing = _missing(steps, interval, longest_gap)
    _log_steps(steps, missing, interval, longest_gap, lines, log, unit)
    if not missing.any():
        return Timeline(times, values, lines, interval)
    return _fill(times, values, lines, missing, interval)


def _check_interval(steps: NDArray[Any], interval: Interval) -> None:
    """DataError if nearly all observations would be missing because the given interval is wrong."""
    typical = np.sort(steps)[(steps.size - 1) // 2]
    if steps.size > 1 and typical // interval > MOST_APART:
        apart = duration_text(typical)
        raise DataError(
            f"the times are {apart} apart, but the interval is {duration_text(interval)}: nearly all observations "
            f"would be missing; omit `interval`, or set it to {apart}"
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
    unit: str,
) -> None:
    gaps = np.flatnonzero(missing)
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


def _fill(
    times: NDArray[Any],
    values: NDArray[np.float64],
    lines: NDArray[np.int64],
    missing: NDArray[np.int64],
    interval: Interval,
) -> Timeline:
    inserted = int(missing.sum())
    if inserted > MOST_INSERTED:
        raise DataError(
            f"{inserted} observations would be missing among {len(times)}: the interval "
            f"{duration_text(interval)} cannot be right; set `interval`, or a smaller `longest_gap`"
        )
    ends = np.cumsum(missing)
    places = np.arange(len(times))
    places[1:] += ends
    full_values = np.full((len(times) + inserted, values.shape[1]), np.nan)
    full_values[places] = values
    full_lines = np.zeros(len(full_values), dtype=np.int64)
    full_lines[places] = lines
    full_times = np.empty(len(full_values), dtype=times.dtype)
    nth = np.arange(1, inserted + 1) - np.repeat(ends - missing, missing)  # 1, 2, ... restarting in every gap
    full_times[full_lines == 0] = np.repeat(times[:-1], missing) + nth * interval
    full_times[places] = times
    return Timeline(full_times, full_values, full_lines, interval)

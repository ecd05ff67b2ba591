"""Times of observations, and of missing ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data import LONGEST_GAP, missing_steps, parse_time


def missing_times(last_time: Any, time: Any, interval: float | None) -> NDArray[Any]:
    """The times of the observations missing between the last one and the next, at most `LONGEST_GAP`.

    Times are datetime64 or numbers, and must increase; the interval is in seconds, or in the unit of the numbers.
    Without a last time or an interval none are missing.

    >>> missing_times(10.0, 13.1, 1.0).tolist()
    [11.0, 12.0]
    """
    if last_time is None:
        return np.empty(0)
    try:
        if not time > last_time:
            raise ValueError(f"time must be later than the last one, {last_time}, got {time}")
    except TypeError:
        raise TypeError(f"time must be of the same kind as the last one, {last_time!r}, got {time!r}") from None
    if interval is None:
        return np.empty(0)
    step: Any = interval
    if isinstance(time, np.datetime64):
        step = np.timedelta64(round(interval * 1e9), "ns")
    missing = missing_steps(last_time, time, step, LONGEST_GAP)
    return np.asarray(last_time + np.arange(1, missing + 1) * step)


def as_times(times: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Times as datetime64 or numbers, from any kind of dates."""
    array = np.asarray(times)
    if array.shape != shape:
        raise ValueError(f"times must have shape {shape}, got {array.shape}")
    if array.dtype.kind in "iufM":
        return array
    try:
        moments = [parse_time(time) for time in array.flat]
    except ValueError as error:
        raise ValueError(f"times must be dates or numbers: {error}") from None
    return np.array(moments).reshape(shape)

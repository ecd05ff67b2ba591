"""Time zones: what the clocks of a place show, and when they are set forward or back."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import ArgumentError

_DAY = 86_400
Times = NDArray[np.datetime64]


def check_zone(name: str, value: Any) -> str:
    """The name of a time zone."""
    try:
        if isinstance(value, str) and ZoneInfo(value):
            return value
    except (OSError, ValueError, KeyError):
        pass  # there is no such zone
    raise ArgumentError(name, f"must be a time zone such as 'Europe/Berlin' or 'UTC', got {value!r}")


class Zone:
    """A time zone, for whole columns of times: datetime64, in UTC or as its clocks show them.

    Examples
    --------
    >>> berlin = Zone("Europe/Berlin")
    >>> hours = np.arange("2026-10-24T23", "2026-10-25T03", dtype="datetime64[h]")
    >>> shown = berlin.shown(hours)
    >>> print(*shown)
    2026-10-25T01:00:00 2026-10-25T02:00:00 2026-10-25T02:00:00 2026-10-25T03:00:00
    >>> print(*berlin.moments(shown))
    2026-10-24T23:00:00 2026-10-25T00:00:00 2026-10-25T01:00:00 2026-10-25T02:00:00
    """

    def __init__(self, name: str) -> None:
        self.name = check_zone("zone", name)

    def ahead(self, moments: Times) -> NDArray[np.int64]:
        """How many seconds its clocks are ahead of UTC at these moments."""
        if not moments.size:
            return np.zeros(moments.shape, dtype=np.int64)
        begins, ahead = self._changes(moments)
        return ahead[np.searchsorted(begins, _seconds(moments), side="right") - 1]

    def shown(self, moments: Times) -> Times:
        """What its clocks show at these moments."""
        return np.asarray(moments + self.ahead(moments).astype("timedelta64[s]"))

    def moments(self, shown: Times) -> Times:
        """When its clocks showed these times, which are in the order in which they were written.

        Where clocks are set back, an hour is shown twice: it begins again where the times go back the furthest. Times
        that clocks skip are as long after the change as they say.
        """
        if np.count_nonzero(shown[1:] < shown[:-1]) > np.count_nonzero(shown[1:] > shown[:-1]):
            return self.moments(shown[::-1])[::-1]  # the newest first
        if not shown.size:
            return shown
        begins, ahead = self._changes(shown)
        seconds = _seconds(shown)
        before, after = begins[1:] + ahead[:-1], begins[1:] + ahead[1:]  # shown at each change
        chosen = ahead[np.searchsorted(np.maximum(before, after), seconds, side="right")]
        for change in np.flatnonzero(after < before):
            twice = np.flatnonzero((seconds >= after[change]) & (seconds < before[change]))
            steps = np.diff(seconds[twice])
            if steps.size and steps.min() <= 0:
                chosen[twice[int(steps.argmin()) + 1 :]] = ahead[change + 1]
        return np.asarray(shown - chosen.astype("timedelta64[s]"))

    def moment(self, shown: Any, last: Any = None) -> Any:
        """When its clocks showed this time: the first moment that is later than the last one."""
        clock = shown.astype("datetime64[us]").item()
        early, late = (clock.replace(tzinfo=ZoneInfo(self.name), fold=fold).utcoffset() for fold in (0, 1))
        first = shown - np.timedelta64(early)
        return shown - np.timedelta64(late) if late < early and last is not None and first <= last else first

    def _changes(self, times: Times) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        years = np.array([times.min(), times.max()]).astype("datetime64[Y]").astype(int) + 1970
        return _changes_between(self.name, int(years[0]), int(years[1]))


def _seconds(times: Times) -> NDArray[np.int64]:
    return times.astype("datetime64[s]").astype(np.int64)


@lru_cache(maxsize=256)
def _changes_between(name: str, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When clocks were changed in these years, in seconds since 1970, and how many seconds they were ahead since."""
    zone = ZoneInfo(name)

    def ahead(second: int) -> int:
        return int(datetime.fromtimestamp(second, zone).utcoffset().total_seconds())  # type: ignore[union-attr]

    # A day more on both sides: local times reach into other years.
    start = int(datetime(first, 1, 1, tzinfo=UTC).timestamp()) - _DAY
    end = int(datetime(last + 1, 1, 1, tzinfo=UTC).timestamp()) + _DAY
    changes = [(np.iinfo(np.int64).min // 2, ahead(start))]
    for day in range(start, end, _DAY):
        if ahead(day + _DAY) != changes[-1][1]:
            low, high = day, day + _DAY  # clocks change after the former, and not after the latter
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if ahead(middle) == changes[-1][1] else (low, middle)
            changes.append((high, ahead(high)))
    begins, offsets = np.array(changes, dtype=np.int64).T
    return begins, offsets

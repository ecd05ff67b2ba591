"""Times that recur by the clocks of a place, written as cron does: minute, hour, day, month, day of the week."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND = 10**9
#: What recurs lasts at most this many seconds. Each time it is asked whether it lasts, so many days are looked at.
LONGEST = 7 * 86400.0
#: How far ahead occurrences are looked for; "0 0 29 2 *" may be eight years away.
_DAYS_AHEAD = 9 * 366

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("day of the week", 0, 7))
_NAMES = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "day of the week": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d{1,3}))?", re.ASCII)


@dataclass(frozen=True)
class Schedule:
    """When something starts, in a time zone, and for how many seconds it lasts each time."""

    text: str
    time_zone: str
    duration: float

    def __post_init__(self) -> None:
        _parsed(self.text)
        _zone(self.time_zone)
        if not 60 <= self.duration <= LONGEST:
            raise ValueError(f"duration must be 60 to {LONGEST:.0f} seconds, got {self.duration!r}")

    @property
    def length(self) -> int:
        return round(self.duration * SECOND)

    def covers(self, moment: int) -> bool:
        """Whether it lasts at this time, in nanoseconds."""
        # Only the last start matters, since it always lasts equally long.
        day = self._day(moment)
        for back in range(self.length // (86400 * SECOND) + 2):
            starts = [one for one in _starts(self.text, self.time_zone, day - timedelta(days=back)) if one <= moment]
            if starts:
                return moment < starts[-1] + self.length
        return False

    def occurrences(self, since: int) -> Iterator[tuple[int, int]]:
        """From when to when it lasts, each time that ends after `since`, the earliest first."""
        day = self._day(since - self.length) - timedelta(days=1)
        for ahead in range(_DAYS_AHEAD):
            for start in _starts(self.text, self.time_zone, day + timedelta(days=ahead)):
                if start + self.length > since:
                    yield start, start + self.length

    def _day(self, moment: int) -> date:
        return datetime.fromtimestamp(moment // SECOND, _zone(self.time_zone)).date()


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # it looks for a file of this name
        raise ValueError(f"time_zone must be a time zone such as UTC or Europe/Vienna, got {name!r:.100}") from None


@lru_cache(maxsize=4096)
def _starts(text: str, zone: str, day: date) -> tuple[int, ...]:
    """The starts on a day of this zone, in nanoseconds.

    A time that clocks skip in spring is as much later as they skip; one that they repeat in autumn is the first.
    """
    minutes, hours, days, months, weekdays = _parsed(text)
    starred = [one == "*" for one in text.split()]
    in_month, in_week = day.day in days, day.isoweekday() % 7 in weekdays
    # As in cron: if both are given, either will do.
    fits = in_month or in_week if not (starred[2] or starred[4]) else in_month and in_week
    if day.month not in months or not fits:
        return ()
    local = (datetime.combine(day, time(hour, minute), _zone(zone)) for hour in hours for minute in minutes)
    return tuple(sorted({round(one.timestamp()) * SECOND for one in local}))


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[tuple[int, ...], ...]:
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f'schedule must be minute, hour, day, month and day of the week, such as "0 22 * * sat", got {text!r:.100}'
        )
    return tuple(_numbers(part, *field) for part, field in zip(parts, _FIELDS, strict=True))


def _numbers(part: str, name: str, least: int, greatest: int) -> tuple[int, ...]:
    found: set[int] = set()
    for one in part.split(","):
        match = _PART.fullmatch(one)
        first, last, step = match.groups() if match else (None, None, "0")
        low = least if first is None else _number(first, name)
        high = greatest if first is None or (step and not last) else low if last is None else _number(last, name)
        if int(step or 1) < 1 or not least <= low <= high <= greatest:
            raise ValueError(
                f"schedule: the {name} must be {least} to {greatest}, a list, a-b, * or */n, got {one!r:.100}"
            )
        found.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted({number % 7 for number in found} if name == "day of the week" else found))


def _number(text: str, name: str) -> int:
    names = _NAMES.get(name, ())
    if text in names:
        return names.index(text) + (name == "month")
    return int(text) if text.isdecimal() else -1

"""Times that recur by the clocks of a place, written as cron does: minute, hour, day, month, day of the week."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

SECOND = 10**9
MINUTE = 60 * SECOND
#: What recurs lasts at most this many seconds.
LONGEST = 7 * 86400.0


@dataclass(frozen=True)
class Schedule:
    """When something starts, in a time zone, and for how many seconds it lasts each time: whole minutes."""

    text: str
    time_zone: str
    duration: float

    def __post_init__(self) -> None:
        zone = _zone(self.time_zone)
        if not 60 <= self.duration <= LONGEST or self.duration % 60:
            raise ValueError(
                f"duration must be 60 to {LONGEST:.0f} seconds, in whole minutes (of 60), got {self.duration!r}"
            )
        try:
            if len(self.text.split()) != 5:  # the library also takes seconds
                raise CronSimError("Wrong number of fields")
            CronSim(self.text, datetime.now(zone))
        except (CronSimError, ValueError) as error:
            raise ValueError(
                'schedule must be minute, hour, day, month and day of the week as in cron, such as "0 22 * * sat", '
                f"got {self.text!r:.100}: {error}"
            ) from None

    @property
    def length(self) -> int:
        return round(self.duration) * SECOND

    def covers(self, moment: int) -> bool:
        """Whether it lasts at this time, in nanoseconds."""
        return _covers(self, moment // MINUTE)

    def occurrences(self, since: int) -> Iterator[tuple[int, int]]:
        """From when to when it lasts, each time that ends after `since`, the earliest first."""
        before = datetime.fromtimestamp((since - self.length) // SECOND, _zone(self.time_zone))
        for one in CronSim(self.text, before):
            start = round(one.timestamp()) * SECOND
            if start + self.length > since:  # in an hour that clocks repeat, it begins with the first
                yield start, start + self.length


@lru_cache(maxsize=4096)
def _covers(schedule: Schedule, minute: int) -> bool:
    # It always lasts equally long, so the first that has not ended yet is the first that started.
    first, _ = next(schedule.occurrences(minute * MINUTE), (minute * MINUTE + 1, 0))
    return first <= minute * MINUTE


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # it looks for a file of this name
        raise ValueError(f"time_zone must be a time zone such as UTC or Europe/Vienna, got {name!r:.100}") from None

"""The calendar of a place: what its clocks show, and which days are holidays."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.zones import Zone

_COUNTRY = re.compile(r"([A-Z]{2,3})(?:-(\w+))?")
_DAY = 86_400


def check_holidays(name: str, value: Any) -> tuple[str, ...]:
    """Country codes and dates.

    >>> check_holidays("holidays", "2026-12-24, 2026-12-31")
    ('2026-12-24', '2026-12-31')
    """
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, Sequence) else (value,)
    return tuple(_holiday(name, part, value) for part in parts)


def _holiday(name: str, part: Any, given: Any) -> str:
    if isinstance(part, date):
        return (part.date() if isinstance(part, datetime) else part).isoformat()
    text = part.strip() if isinstance(part, str) else ""
    try:
        if _COUNTRY.fullmatch(text):
            _days_of(text, 2000)
            return text
        return date.fromisoformat(text).isoformat()
    except ImportError:
        raise ImportError(f"{name}={given!r} needs the library `holidays`: pip install 'tocsin[holidays]'") from None
    except (NotImplementedError, ValueError):
        accepted = "codes of countries or their regions ('DE', 'DE-BY') and dates ('2026-12-24')"
        raise ValueError(f"{name} must be {accepted}, got {given!r}") from None


@lru_cache(maxsize=256)
def _days_of(country: str, year: int) -> tuple[date, ...]:
    """The holidays of a country or region in a year."""
    from holidays import country_holidays

    code, _, region = country.partition("-")
    return tuple(country_holidays(code, subdiv=region or None, years=year))


class Calendar:
    """Tells how the times of observations lie in the days and weeks of a place.

    Parameters
    ----------
    zone : its time zone; None for UTC
    holidays : codes of countries, and dates
    interval : the seconds between two observations
    """

    def __init__(self, zone: str | None, holidays: Sequence[str], interval: float) -> None:
        self.zone = Zone(zone or "UTC")
        self._holidays, self._interval = tuple(holidays), interval

    def places(self, times: NDArray[Any] | None) -> NDArray[np.int64]:
        """For each time two numbers of observations: how far local time is ahead of UTC, and the way back to a Sunday.

        The latter is how long ago it was this time of day on the last Sunday before; 0 if it is no holiday.
        """
        if times is None or times.dtype.kind != "M" or np.isnat(times).any():
            given = "none" if times is None else "numbers" if times.dtype.kind != "M" else "NaT among them"
            raise ValueError(f"times must be given, as dates, with a zone or holidays, got {given}")
        ahead = self.zone.ahead(times)
        days = (times + ahead.astype("timedelta64[s]")).astype("datetime64[D]")
        since_sunday = (days.astype(np.int64) + 3) % 7 + 1  # 1970 began on a Thursday; on a Sunday itself it is 7
        back = np.where(self._are_holidays(days), since_sunday * _DAY, 0)
        return np.rint(np.stack([ahead, back], axis=-1) / self._interval).astype(np.int64)

    def _are_holidays(self, days: NDArray[np.datetime64]) -> NDArray[np.bool_]:
        if not self._holidays or not days.size:
            return np.zeros(days.shape, dtype=np.bool_)
        return np.isin(days, _dates(self._holidays, days.min().item().year, days.max().item().year))


@lru_cache(maxsize=256)
def _dates(holidays: tuple[str, ...], first: int, last: int) -> NDArray[np.datetime64]:
    """All holidays in these years."""
    days: list[Any] = [one for one in holidays if not _COUNTRY.fullmatch(one)]
    for country in set(holidays).difference(days):
        days += [day for year in range(first, last + 1) for day in _days_of(country, year)]
    return np.array(days, dtype="datetime64[D]")

"""Fast parsing of times: a request may have thousands, and one thread serves all requests."""

import math
import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from tocsin.service.observations import moment_of

_EPOCH = datetime(1970, 1, 1)
_SECOND = 10**9
_COMMON = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\dT\d\d:\d\d):([0-5]\d)(?:\.(\d{1,9}))?Z", re.ASCII)
# Unix times by size, as in `parse_time`, within 64-bit nanoseconds: from, up to, and the unit in nanoseconds.
_UNIX = tuple((10**digits, 2**63 // unit, unit) for digits, unit in ((9, 10**9), (12, 10**6), (15, 10**3), (18, 1)))


def time_of(time: Any) -> int:
    """The same as `moment_of`, but faster for common forms."""
    if type(time) is str:
        match = _COMMON.fullmatch(time)
        minute = _minute_of(match[1]) if match else None
        if match and minute is not None:
            return minute + int(match[2]) * _SECOND + int((match[3] or "0").ljust(9, "0"))
    elif type(time) is int:
        for least, limit, unit in _UNIX:
            if least <= time < limit:
                return time * unit
    elif type(time) is float and 1e9 <= time < 9e9:
        whole = math.floor(time)
        return whole * _SECOND + round((time - whole) * 1e6) * 1000
    try:
        return moment_of(time)
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"a time must be an ISO 8601 time or a Unix time, got {time!r:.100}") from error


@lru_cache(maxsize=4096)
def _minute_of(text: str) -> int | None:
    """The nanoseconds of a minute; None if it does not exist."""
    try:
        moment = datetime.fromisoformat(text) - _EPOCH
    except ValueError:
        return None
    return (moment.days * 86400 + moment.seconds) * _SECOND

"""Durations as people write them."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np

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

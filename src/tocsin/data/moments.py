"""Parsing of times from text to nanoseconds since 1970 (UTC)."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAT = np.iinfo(np.int64).min  # numpy's "not a time"
FIRST_YEAR, LAST_YEAR = 1678, 2261  # the full years that 64-bit nanoseconds can represent

_EPOCH = datetime(1970, 1, 1)
_PLAIN = re.compile(r"(?:1[7-9]|2[01])\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?", re.ASCII)
_LOOSE = re.compile(
    r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})"
    r"(?:(?:\s*T\s*|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"(?:\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?",
    re.ASCII | re.IGNORECASE,
)

Moments = tuple[NDArray[np.int64], NDArray[np.bool_] | None]


def read_moments(cells: Sequence[Any]) -> Moments:
    """Nanoseconds for each cell (`NAT` if it is not a time), and which had a time zone other than UTC."""
    plain = cells
    if cells and isinstance(cells[0], str) and cells[0].endswith(("Z", "+00:00")):
        plain = [cell.removesuffix("Z").removesuffix("+00:00") if isinstance(cell, str) else cell for cell in cells]
    try:
        if all(map(_PLAIN.fullmatch, plain)):
            return np.array(plain, dtype="datetime64[ns]").view(np.int64), None
    except (TypeError, ValueError):
        pass  # a cell that is not text, or a date such as 30 February: find out which
    stamps = np.full(len(cells), NAT, dtype=np.int64)
    zoned = np.zeros(len(cells), dtype=np.bool_)
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            stamps[i], zoned[i] = read_moment(cell)
    return stamps, zoned if zoned.any() else None


def read_moment(text: str) -> tuple[int, bool]:
    """One text: ISO 8601, or its common loose forms (slashes, single digits, 'UTC', a space before the zone)."""
    text = text.strip()
    match = _LOOSE.fullmatch(text)
    try:
        if match is None:
            return nanoseconds(datetime.fromisoformat(text))
        year, _, month, day, hour, minute, second, fraction, zone = match.groups()
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        stamp, _ = nanoseconds(moment)
        offset = _offset(zone)
        return (stamp if stamp == NAT else stamp + int((fraction or "").ljust(9, "0")) - offset), offset != 0
    except ValueError:
        return NAT, False


def nanoseconds(moment: datetime) -> tuple[int, bool]:
    """A datetime's nanoseconds in UTC (`NAT` beyond 64 bits), and whether its time zone was another."""
    offset = moment.utcoffset() or timedelta(0)
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return NAT, False
    return (moment.replace(tzinfo=None) - offset - _EPOCH) // timedelta(microseconds=1) * 1000, bool(offset)


def read_formatted(cells: Sequence[Any], form: str) -> Moments:
    """Texts in one given `strptime` format."""
    stamps = np.full(len(cells), NAT, dtype=np.int64)
    zoned = np.zeros(len(cells), dtype=np.bool_)
    for i, cell in enumerate(cells):
        with suppress(ValueError):  # text that does not fit the format stays NAT
            stamps[i], zoned[i] = nanoseconds(datetime.strptime(str(cell).strip(), form))
    return stamps, zoned if zoned.any() else None


def _offset(zone: str | None) -> int:
    if zone is None or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return (-minutes if zone[0] == "-" else minutes) * 60 * 10**9

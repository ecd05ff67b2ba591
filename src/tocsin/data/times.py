"""A column of times. Its first cells determine the parser for all of it.

- Texts are ISO 8601 (or a loose form of it). Dates such as 31/12/2024 are read once the column shows whether the day
    or the month comes first; with points (31.12.2024), the day does. `time_format` overrides both.
- Numbers that all have 10, 13, 16 or 19 digits before the point are Unix time in seconds, milliseconds, microseconds
  or nanoseconds; whole numbers that all read as YYYYMMDD are dates; all other numbers stay as they are.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import Argument, Message
from tocsin.data.numbers import Cells, is_missing, read_numbers
from tocsin.data.problems import DataError
from tocsin.data.zones import Zone

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
_ZONED = re.compile(r"\d\s*(?:Z|UTC|GMT)\s*$|:\d\d(?:[.,]\d+)?\s*[+-]\d\d(?::?\d\d)?\s*$", re.ASCII | re.IGNORECASE)

TIME_NAMES = ("time", "timestamp", "date", "datetime", "ds", "ts")
_UNIX_UNITS = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}  # digits before the point -> nanoseconds
_DAY = 86_400_000_000  # microseconds
_Unit = Literal["s", "ms", "us", "ns"]
_WRITTEN_UNITS: tuple[tuple[_Unit, int], ...] = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
_SLASHED = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})"
    r"(?:[T\s]\s*(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:[.,](\d{1,6}))?)?(?:\s*([AP])\.?M\.?)?)?",
    re.ASCII | re.IGNORECASE,
)
Read = tuple[NDArray[Any], NDArray[np.bool_] | None]


def _each(cells: Iterable[Any], stamp: Callable[[Any], tuple[int, bool]]) -> Read:
    """Cells read one by one."""
    stamps = list(map(stamp, cells))
    zoned = np.array([zone for _, zone in stamps], dtype=np.bool_)
    return np.array([one for one, _ in stamps], dtype=np.int64), zoned if zoned.any() else None


def parse_iso_times(cells: Sequence[Any]) -> Read:
    """Nanoseconds for each cell (`NAT` if it is not a time), and which had a time zone other than UTC."""
    plain = cells
    if cells and isinstance(cells[0], str) and cells[0].endswith(("Z", "+00:00")):
        plain = [cell.removesuffix("Z").removesuffix("+00:00") if isinstance(cell, str) else cell for cell in cells]
    try:
        if all(map(_PLAIN.fullmatch, plain)):
            return np.array(plain, dtype="datetime64[ns]").view(np.int64), None
    except (TypeError, ValueError):
        pass  # a cell that is not text, or a date such as 30 February: find out which
    return _each(cells, parse_iso_time)


def parse_iso_time(cell: Any) -> tuple[int, bool]:
    """One text: ISO 8601, or its common loose forms (slashes, single digits, 'UTC', a space before the zone)."""
    text = cell.strip() if isinstance(cell, str) else ""
    match = _LOOSE.fullmatch(text)
    try:
        if match is None:
            return nanoseconds(datetime.fromisoformat(text))
        year, _, month, day, hour, minute, second, fraction, zone = match.groups()
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        stamp, _ = nanoseconds(moment)
        offset = zone_offset(zone)
        return (stamp if stamp == NAT else stamp + int((fraction or "").ljust(9, "0")) - offset), offset != 0
    except ValueError:
        return NAT, False


def nanoseconds(moment: datetime) -> tuple[int, bool]:
    """A datetime's nanoseconds in UTC (`NAT` beyond 64 bits), and whether its time zone was another."""
    offset = moment.utcoffset() or timedelta(0)
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return NAT, False
    return (moment.replace(tzinfo=None) - offset - _EPOCH) // timedelta(microseconds=1) * 1000, bool(offset)


def has_zone(cell: Any) -> bool:
    """Whether a time has a time zone, rather than being what some clock shows.

    >>> has_zone("2026-10-25T02:30Z"), has_zone("2026-10-25 02:30")
    (True, False)
    """
    if isinstance(cell, str):
        return _ZONED.search(cell) is not None
    return getattr(cell, "tzinfo", None) is not None


def zone_offset(zone: str | None) -> int:
    """How many nanoseconds a time zone such as +02:00 is ahead of UTC; 0 for Z, UTC and no zone."""
    if zone is None or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return (-minutes if zone[0] == "-" else minutes) * 60 * 10**9


class TimeParser(ABC):
    """Reads cells into stored numbers, block by block, and converts them to times at the end."""

    dtype: type = np.int64
    of_numbers = False  # whether the cells are numbers, which need not be times at all
    of_moments = False  # whether they are moments, the same everywhere, even if no time zone is written
    iso = False  # whether they are ISO 8601 texts, which may also arrive parsed
    order = ""  # "day first" or "month first", if that had to be detected

    @abstractmethod
    def read(self, cells: Cells) -> Read:
        """The stored number of each cell (see `bad`), and which cells had a time zone other than UTC."""

    def bad(self, stored: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(stored == NAT)

    def conclude(self) -> None:  # noqa: B027 most rules have nothing to conclude
        """Called after the last block: raises DataError if the column is ambiguous."""

    def finish(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The times; NaT where there is no such date."""
        return stored.view("datetime64[ns]")


class _Texts(TimeParser):
    iso = True

    def read(self, cells: Cells) -> Read:
        if isinstance(cells, np.ndarray) and cells.dtype == "datetime64[ns]":
            return cells.view(np.int64), None
        return parse_iso_times(list(cells))


class _Formatted(TimeParser):
    """Texts in one given `strptime` format."""

    def __init__(self, form: str) -> None:
        self._form = form

    def read(self, cells: Cells) -> Read:
        return _each(cells, self._stamp)

    def _stamp(self, cell: Any) -> tuple[int, bool]:
        with suppress(ValueError):
            return nanoseconds(datetime.strptime(str(cell).strip(), self._form))
        return NAT, False


class _Stamps(TimeParser):
    """Cells that are already times: datetime64 arrays or datetimes."""

    def read(self, cells: Cells) -> Read:
        if isinstance(cells, np.ndarray):
            return _within_range(cells), None
        return _each(cells, lambda cell: nanoseconds(cell) if isinstance(cell, datetime) else (NAT, False))


class _Numbers(TimeParser):
    dtype = np.float64
    of_numbers = True
    of_moments = True

    def read(self, cells: Cells) -> Read:
        return read_numbers(cells)[0], None

    def bad(self, stored: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.isnan(stored))

    def finish(self, stored: NDArray[Any]) -> NDArray[Any]:
        return stored


class _UnixTimes(TimeParser):
    of_numbers = True
    of_moments = True

    def __init__(self, unit: int) -> None:
        self._unit = unit

    def read(self, cells: Cells) -> Read:
        most = (2**63 - 1) // self._unit
        whole = _whole_numbers(cells)
        if whole is not None:
            outside = (whole > most) | (whole < -most)
            return np.where(outside, NAT, np.where(outside, 0, whole) * self._unit), None
        real = read_numbers(cells)[0]
        real[~(np.abs(real) < most)] = np.nan
        bad = np.isnan(real)
        seconds = np.floor(np.where(bad, 0.0, real))
        # A double holds today's Unix time to a quarter of a microsecond: more digits would be noise.
        rest = np.round((np.where(bad, 0.0, real) - seconds) * (self._unit / 1000)) * 1000
        return np.where(bad, NAT, seconds.astype(np.int64) * self._unit + rest.astype(np.int64)), None


class _DigitDates(TimeParser):
    """Whole numbers such as 20241231."""

    of_numbers = True

    def read(self, cells: Cells) -> Read:
        number = read_numbers(cells)[0]
        whole = np.where((number == np.floor(number)) & (number > 0) & (number < 1e8), number, 0).astype(np.int64)
        return _dates(whole // 10000, whole // 100 % 100, whole % 100), None


class _SlashedDates(TimeParser):
    """Day or month first: stored unchanged, in one number, until the column shows which."""

    def __init__(self, day_first: bool | None = None) -> None:
        self._given = day_first
        self._day_first = ""  # the first date that can only be read this way
        self._month_first = ""
        self._either = ""

    def read(self, cells: Cells) -> Read:
        return np.fromiter(map(self._code, cells), np.int64, len(cells)), None

    def _code(self, cell: Any) -> int:
        match = _SLASHED.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if match is None:
            return NAT
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        hour, minute, whole_second = (int(match[group] or 0) for group in (5, 6, 7))
        if match[9]:
            if not 1 <= hour <= 12:
                return NAT
            hour = hour % 12 + (12 if match[9] in "pP" else 0)
        if not (1 <= min(first, second) <= 12 and max(first, second) <= 31 and FIRST_YEAR <= year <= LAST_YEAR):
            return NAT
        if hour > 23 or minute > 59 or whole_second > 59:
            return NAT
        if first > 12:
            self._day_first = self._day_first or match[0]
        elif second > 12:
            self._month_first = self._month_first or match[0]
        elif first != second and match[2] != ".":
            self._either = self._either or match[0]
        time_of_day = ((hour * 60 + minute) * 60 + whole_second) * 10**6 + int((match[8] or "").ljust(6, "0"))
        return ((year * 100 + first) * 100 + second) * _DAY + time_of_day

    @property
    def order(self) -> str:  # type: ignore[override]
        day_first = not self._month_first if self._given is None else self._given
        return "day first" if day_first else "month first"

    def conclude(self) -> None:
        if self._given is not None:
            return
        if self._day_first and self._month_first:
            raise DataError(
                Message(
                    f"times such as {self._day_first!r} and {self._month_first!r} disagree on whether the day or the "
                    "month comes first; write them as YYYY-MM-DD, or set ",
                    Argument("day_first"),
                )
            )
        if self._either and not self._day_first and not self._month_first:
            raise DataError(
                Message(
                    f"times such as {self._either!r} are ambiguous: the day or the month may come first, and no time "
                    "shows which; set ",
                    Argument("day_first"), ", or ", Argument("time_format"), " such as '%d/%m/%Y'",
                )
            )  # fmt: skip

    def finish(self, stored: NDArray[Any]) -> NDArray[Any]:
        bad = self.bad(stored)
        date, time_of_day = np.divmod(np.where(bad, 0, stored), _DAY)
        first, second = date // 100 % 100, date % 100
        day, month = (first, second) if self.order == "day first" else (second, first)
        days = _dates(date // 10000, month, day)
        bad |= days == NAT
        return np.where(bad, NAT, np.where(bad, 0, days) + time_of_day * 1000).view("datetime64[ns]")


_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11,
    "dec": 12, "mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12,
}  # fmt: skip
_NAMED = re.compile(
    r"(\d{1,2})[-/. ]+([A-Za-zä]{3})[a-zä]*\.?[-/. ]+(\d{4}|\d{2})"
    r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?)?"
)


class _NamedMonths(TimeParser):
    """Dates such as 01-Jan-25 00:00:00. Two digits of a year from 70 on are of the last century."""

    def read(self, cells: Cells) -> Read:
        return _each(cells, self._stamp)

    @staticmethod
    def _stamp(cell: Any) -> tuple[int, bool]:
        match = _NAMED.fullmatch(cell.strip()) if isinstance(cell, str) else None
        month = None if match is None else _MONTHS.get(match[2].lower())
        if match is None or month is None:
            return NAT, False
        year = int(match[3]) + (0 if len(match[3]) == 4 else 1900 if int(match[3]) >= 70 else 2000)
        hour, minute, second = (int(match[group] or 0) for group in (4, 5, 6))
        fraction = int((match[7] or "").ljust(6, "0"))
        with suppress(ValueError):  # no such day or hour
            return nanoseconds(datetime(year, month, int(match[1]), hour, minute, second, fraction))
        return NAT, False


def is_time_name(name: str) -> bool:
    """Whether a column has a time-like name, with or without a unit or time zone in brackets."""
    return re.split(r"[\[(]", name, maxsplit=1)[0].strip().lower() in TIME_NAMES


def choose_time_parser(
    cells: Cells, time_format: str | None = None, day_first: bool | None = None
) -> TimeParser | None:
    """The parser for most of these first cells, or None."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return _Stamps()
    sample = cells if isinstance(cells, np.ndarray) else [cell for cell in cells if not is_missing(cell)]
    if len(sample) == 0:
        return None
    if time_format is not None:
        return _Formatted(time_format)
    if isinstance(sample[0], datetime):
        return _Stamps()
    numbers = read_numbers(sample)[0]
    numbers = numbers[np.isfinite(numbers)]
    if 2 * len(numbers) >= len(sample) and len(numbers):
        return _number_parser(numbers)
    for new in (_Texts, partial(_SlashedDates, day_first), _NamedMonths):
        parser: TimeParser = new()
        if 2 * np.count_nonzero(parser.bad(parser.read(sample)[0])) < len(sample):
            return new()
    return None


def is_time(cell: str, time_format: str | None = None) -> bool:
    """Whether a text is a time (a plain number is not)."""
    parser = choose_time_parser([cell], time_format)
    return parser is not None and not parser.of_numbers and not parser.bad(parser.read([cell])[0])[0]


def parse_time(
    time: Any, time_format: str | None = None, *, zone: Zone | None = None, last: Any = None
) -> np.datetime64 | float:
    """One time, by the rules for columns: datetime64[ns] or a plain number. ValueError says what is accepted.

    A time without a time zone is what clocks in `zone` show, later than the `last` one; datetime64 is always in UTC.

    Examples
    --------
    >>> print(parse_time("2024-01-01T02:00+02:00"), parse_time(1704067200))
    2024-01-01T00:00:00.000000000 2024-01-01T00:00:00.000000000
    >>> parse_time("17.5")
    17.5
    """
    cells: Cells = np.array([time]) if isinstance(time, np.datetime64) else [time]
    parser = choose_time_parser(cells, time_format)
    found = None if parser is None else read_time(parser, cells, zone, last)
    if found is not None:
        return found[0]
    wanted = f"a time of the form {time_format!r}" if time_format else "an ISO 8601 time, a date, or a number"
    raise ValueError(f"a time must be {wanted}, got {time!r}")


def read_time(
    parser: TimeParser, cells: Cells, zone: Zone | None, last: Any
) -> tuple[np.datetime64 | float, np.timedelta64 | None] | None:
    """The time in the only cell, and how far clocks in `zone` were ahead if they showed it; None if it is no time."""
    stored = parser.read(cells)[0]
    if parser.bad(stored)[0]:
        return None
    parser.conclude()
    time = parser.finish(stored)[0]
    if time != time:  # NaN or NaT
        return None
    if zone is None or parser.of_moments or has_zone(cells[0]) or isinstance(cells, np.ndarray):
        return time if isinstance(time, np.datetime64) else float(time), None
    moment = zone.moment(time, last)
    return moment, time - moment


def parse_times(times: Any, shape: tuple[int, ...], zone: Zone | None = None) -> NDArray[Any]:
    """Times as datetime64 or numbers, from any kind of dates; `zone` is that of texts and dates without one."""
    array = np.asarray(times)
    if array.shape != shape:
        raise ValueError(f"times must have shape {shape}, got {array.shape}")
    if array.dtype.kind in "iufM":
        return array
    try:
        moments = [_column_of_times(column, zone) for column in ([array] if array.ndim == 1 else array.T)]
    except ValueError as error:
        raise ValueError(f"times must be dates or numbers: {error}") from None
    return np.array(moments).T.reshape(shape)


def _column_of_times(times: NDArray[Any], zone: Zone | None) -> list[np.datetime64 | float]:
    moments: list[np.datetime64 | float] = []
    for time in times:
        moments.append(parse_time(time, zone=zone, last=moments[-1] if moments else None))
    return moments


def format_times(times: NDArray[np.datetime64]) -> list[str | None]:
    """ISO 8601 texts, with seconds and no more digits than needed; None for NaT.

    Examples
    --------
    >>> format_times(np.array(["2024-01-01", "2024-01-01T00:00:00.250"], dtype="datetime64[ns]"))
    ['2024-01-01T00:00:00.000', '2024-01-01T00:00:00.250']
    """
    known = ~np.isnat(times)
    stamps = times.astype("datetime64[ns]").view(np.int64)[known]
    unit = next(unit for unit, size in _WRITTEN_UNITS if not (stamps % size).any())
    texts = np.datetime_as_string(times, unit=unit).tolist()
    return [text if there else None for text, there in zip(texts, known.tolist(), strict=True)]


def _number_parser(numbers: NDArray[np.float64]) -> TimeParser:
    size = np.abs(numbers)
    for digits, unit in _UNIX_UNITS.items():
        if np.all((size >= 10.0 ** (digits - 1)) & (size < 10.0**digits)):
            return _UnixTimes(unit)
    dates = _DigitDates()
    if np.all((numbers >= 19000101) & (numbers <= 21001231)) and not dates.bad(dates.read(numbers)[0]).any():
        return dates
    return _Numbers()


def _whole_numbers(cells: Cells) -> NDArray[np.int64] | None:
    """Exact integers, because a double is too short for nanoseconds; None if any cell is not an integer."""
    if isinstance(cells, np.ndarray):
        return cells.astype(np.int64) if cells.dtype.kind in "iu" else None
    try:
        return np.array([int(cell) if isinstance(cell, (int, str)) else int("") for cell in cells], dtype=np.int64)
    except (OverflowError, ValueError):
        return None


def _within_range(stamps: NDArray[Any]) -> NDArray[np.int64]:
    years = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
    inside = (years >= FIRST_YEAR) & (years <= LAST_YEAR)
    return np.where(inside, stamps, np.datetime64("NaT")).astype("datetime64[ns]").view(np.int64)


def _dates(year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nanoseconds of midnight, `NAT` if there is no such date."""
    good = (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(good, year - 1970, 0) * 12 + np.where(good, month - 1, 0)).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(good, day - 1, 0)
    good &= days.astype("datetime64[M]") == months
    return np.where(good, days.astype("datetime64[ns]").view(np.int64), NAT)

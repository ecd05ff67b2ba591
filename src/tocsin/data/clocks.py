"""Times of day in a separate column next to the column of dates."""

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import numpy as np

from tocsin.data.cells import Cells, is_missing, read_numbers

# With points as separators, seconds are required: 12.30 is more often a number.
_CLOCK = re.compile(
    r"(\d{1,2})(?::(\d{2})(?::(\d{2}(?:[.,]\d+)?))?|\.(\d{2})\.(\d{2}))(\s*[AP]\.?M\.?)?", re.ASCII | re.I
)
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|(?:19|20)\d{6}", re.ASCII)
_HOURS = ("hour", "hr", "hh")


def find_clock(sample: Mapping[str, Cells], dates: str, taken: set[str | None]) -> str | None:
    """The column with the times of day for a column of bare dates, or None."""
    if dates not in sample or not is_dates(sample[dates]):
        return None
    free = [name for name in sample if name not in taken and name != dates]
    for name in free:
        if is_clock(sample[name]):
            return name
    return next((name for name in free if name.strip().lower() in _HOURS and _are_hours(sample[name])), None)


def is_clock(cells: Cells) -> bool:
    """Whether cells are times of day."""
    full = _full(cells)
    return bool(full) and all(
        isinstance(cell, time) or (isinstance(cell, str) and _CLOCK.fullmatch(cell.strip()) is not None)
        for cell in full
    )


def is_dates(cells: Cells) -> bool:
    """Whether cells are dates without a time of day."""
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind == "M" and bool(np.all(cells == cells.astype("datetime64[D]")))
    full = _full(cells)
    return bool(full) and all(
        (isinstance(cell, str) and _DATE.fullmatch(cell.strip()) is not None)
        or (isinstance(cell, date) and not isinstance(cell, datetime))
        for cell in full
    )


def join(dates: Cells, clocks: Cells) -> list[Any]:
    """Each date joined with its time of day. If either is missing, the cell stays as it is."""
    return [
        f"{_date_text(day)} {_clock_text(clock)}" if not (is_missing(day) or is_missing(clock)) else day
        for day, clock in zip(dates, clocks, strict=True)
    ]


def _full(cells: Cells) -> list[Any]:
    return [cell for cell in cells if not is_missing(cell)]


def _are_hours(cells: Cells) -> bool:
    hours = read_numbers(cells)[0]
    hours = hours[np.isfinite(hours)]
    return hours.size > 0 and bool(np.all((hours == np.floor(hours)) & (hours >= 0) & (hours <= 23)))


def _date_text(cell: Any) -> str:
    if isinstance(cell, np.datetime64):
        return str(cell.astype("datetime64[D]"))
    text = str(cell).strip()
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if text.isdigit() else text


def _clock_text(cell: Any) -> str:
    text = str(cell).strip()
    match = _CLOCK.fullmatch(text)
    if match is not None and match[4]:
        return f"{match[1]}:{match[4]}:{match[5]}{match[6] or ''}"
    return f"{int(float(text))}:00" if re.fullmatch(r"\d{1,2}(\.0+)?", text) else text

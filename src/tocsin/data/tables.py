"""The structure of a table: blocks of rows, where it and its header begin, and its time, value and id columns."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from itertools import count, takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.numbers import PLAIN, TEXT, Cells, NumberFormat, detect_number_format, is_missing, read_numbers
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.times import choose_time_parser, is_time, is_time_name

SAMPLE = 1000  # rows used to identify the columns, at most
BLOCK = 65_536  # rows of a block, at most
BLOCK_CELLS = 2**20  # cells of a block, at most (but a row is never split)

DELIMITERS = ("\t", ";", "|", ",")  # the comma last: with another delimiter, it may be part of numbers and texts
_LOOKED_AT = 200  # lines
_UNIT = re.compile(
    r"\[.*\]|\(.*\)|%|‰|-|°.?|[µumkMGdch]?(?:m|s|g|A|V|W|Pa|Hz|bar|Wh|VA|var|J|N|mol|l|L|eV|Ohm|Ω)|[Kk]|degC|degF|deg|"
    r"min|h|hr|hours?|seconds?|ppm|ppb|rpm|psi|kn|mph|mmHg|inHg|in|ft|pH|units?|none|utc|"
    r"[A-Za-zµ°]{1,4}(?:[/*.·][A-Za-zµ°]{1,4}[²³23]?|[²³23]|\^-?\d|-\d)+|[A-Za-z]*(?:yy|mm|dd|hh)[-/.: yYmMdDhHsST]*",
)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows: their lines in the source, and their cells by column."""

    lines: NDArray[np.int64]
    cells: Mapping[str, Cells]


@dataclass(frozen=True)
class ExpectedTypes:
    """The expected content of columns, which lets readers go faster. Other cells are returned as usual.

    `numbers` are columns of numbers in the format `number_format`; `iso_times` is a column of ISO 8601 times.
    """

    numbers: Collection[str] = ()
    number_format: NumberFormat = PLAIN
    iso_times: str | None = None


ANYTHING = ExpectedTypes()


def rows_per_block(columns: int) -> int:
    """How many rows to read at once, given the number of columns."""
    return max(1, min(BLOCK, BLOCK_CELLS // columns))


class BlockReader(Protocol):
    """A table that can be read once, from top to bottom."""

    label: str  # the source's name in messages
    unit: str  # the word for a row in messages: "line" or "row"
    names: Sequence[str]
    notes: Sequence[str]  # what was detected about its format
    zoned: Collection[str]  # the columns of times that had a time zone and are in UTC

    def sample(self) -> Mapping[str, Cells]:
        """The first cells of every column, at most `SAMPLE` rows. Called once, before `blocks`."""
        ...

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        """All rows, from the first, with the named columns."""
        ...


@dataclass(frozen=True)
class Heading:
    """The number of rows before the header (None if there is none), and whether units follow it."""

    header: int | None
    units: bool

    @property
    def rows(self) -> int:
        """The number of rows that are not data."""
        return 0 if self.header is None else self.header + 1 + self.units


def find_table(lines: Sequence[str], given: str | None = None) -> tuple[str, int]:
    """The delimiter, and the number of lines before the table.

    The delimiter is the first of tab, semicolon, bar and comma that occurs equally often on (nearly) every line. If
    there is none, the lines before the first line of the common width are a preamble.
    """
    lines = lines[:_LOOKED_AT]
    widths = {delimiter: _widths(lines, delimiter) for delimiter in ([given] if given else DELIMITERS)}
    for delimiter, found in widths.items():
        first = found[:50]
        if first and first[0][1] > 1 and sum(width == first[0][1] for _, width in first) >= 0.8 * len(first):
            return delimiter, 0
    for delimiter, found in widths.items():
        start = _start(lines, found, delimiter)
        if start:
            return delimiter, start
    # No line is like the first: a file with one column, or one whose rows are all wrong and will be reported.
    return given or max(reversed(DELIMITERS), key=lines[0].count), 0


def find_heading(rows: Sequence[Sequence[str]], time_format: str | None, decimal: str | None) -> Heading:
    """The header among the first rows: a later row than the first if it names a time and only words come before it."""
    if looks_like_data(rows[0], time_format, decimal):
        return Heading(None, units=False)
    wordy = list(takewhile(lambda row: _is_words(row, time_format), rows[:20]))
    named = [i for i, row in enumerate(wordy) if any(map(is_time_name, row))]
    # Without a time's name, the first row that names most columns: a preamble fills few of them.
    filled = [sum(map(bool, map(str.strip, row))) for row in wordy]
    header = named[0] if named else filled.index(max(filled)) if filled else 0
    below = wordy[header + 1 : header + 2]
    return Heading(header, units=bool(below) and is_units(below[0]))


def looks_like_data(row: Sequence[str], time_format: str | None = None, decimal: str | None = None) -> bool:
    """Whether a first line holds numbers and times (at least one) rather than names."""
    full = [cell for cell in row if not is_missing(cell)]
    return bool(full) and all(_is_number(cell, decimal) or is_time(cell, time_format) for cell in full)


def is_units(row: Sequence[str]) -> bool:
    """Whether cells are units of measurement (or nothing)."""
    full = [cell.strip() for cell in row if cell.strip()]
    return bool(full) and all(_UNIT.fullmatch(cell) is not None for cell in full)


def read_heading(
    rows: Sequence[Sequence[str]], given: bool | None, time_format: str | None, decimal: str | None
) -> tuple[Heading, list[str]]:
    """The heading of a table and the names of its columns; `given` says whether there is a header, if that is known."""
    heading = find_heading(rows, time_format, decimal) if given is None else Heading(0 if given else None, units=False)
    top = [""] * len(rows[0]) if heading.header is None else rows[heading.header]
    return heading, column_names(_trimmed(top, rows[heading.rows : heading.rows + SAMPLE]))


def heading_notes(unit: str, before: int, units: int | None) -> list[str]:
    """How many lines or rows there are before the header, and which one holds units."""
    notes = [f"{before} {unit}{'s' if before > 1 else ''} before the header"] if before else []
    return [*notes, *([f"units in {unit} {units}"] if units is not None else [])]


def column_names(header: Iterable[str]) -> list[str]:
    """Names without surrounding blanks. An unnamed column is named by position; repeated names are numbered."""
    names: list[str] = []
    for position, cell in enumerate(header, start=1):
        name = cell.strip() or str(position)
        candidates = (name if n == 1 else f"{name}_{n}" for n in count(1))
        names.append(next(candidate for candidate in candidates if candidate not in names))
    return names


def _trimmed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sequence[str]:
    """A header without empty unnamed columns at its end."""
    width = len(header)
    while width > 1 and not header[width - 1].strip() and not any(any(row[width - 1 :]) for row in rows):
        width -= 1
    return header[:width]


def _widths(lines: Sequence[str], delimiter: str) -> list[tuple[int, int]]:
    """For each row, the line it ends on and its number of fields."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        return [(reader.line_num - 1, len(row)) for row in reader]
    except csv.Error:
        return []  # an overlong field


def _start(lines: Sequence[str], widths: list[tuple[int, int]], delimiter: str) -> int:
    """The line of the first row of the common width, if the lines before it may be a preamble; else 0."""
    common = Counter(width for _, width in widths if width > 1).most_common(1)
    if not common:
        return 0
    width = common[0][0]
    at = next(i for i, (_, one) in enumerate(widths) if one == width)
    rest = widths[at:]
    if len(rest) < 2 or sum(one == width for _, one in rest) < 0.8 * len(rest):
        return 0
    first = next(csv.reader([lines[widths[at][0]]], delimiter=delimiter, skipinitialspace=True))
    if looks_like_data(first) and widths[at - 1][1] > 1:
        return 0  # the line before is a header of another width: its rows are wrong, not the header
    return widths[at][0]


def _is_words(row: Sequence[str], time_format: str | None) -> bool:
    full = [cell for cell in row if cell.strip()]
    return not any(
        _is_number(cell, None) or is_time(cell, time_format) or (is_missing(cell) and cell.strip() != "-")
        for cell in full
    )


def _is_number(cell: str, decimal: str | None) -> bool:
    try:
        number_format = detect_number_format([[cell]], decimal)
    except ValueError:
        return True  # 1,234: a number either way
    return bool(np.isfinite(read_numbers([cell], number_format)[0][0]))


_LABELS = frozenset(
    {
        "anomaly", "anomalies", "anomalous", "changepoint", "label", "labels", "class", "target", "outlier", "outliers",
        "groundtruth", "fault", "faulty", "attack", "event", "alarm",
    }
)  # fmt: skip
_COUNTERS = frozenset(
    {"index", "idx", "unnamed:0", "no", "nr", "n", "row", "rownum", "rowid", "rownumber", "counter", "seq", "sequence",
     "sample", "record", "recordid", "obs", "#", "id", "rec"}
)  # fmt: skip
_MOST_CLASSES = 10
# With points as separators, seconds are required: 12.30 is more often a number.
_TIME_OF_DAY = re.compile(
    r"(\d{1,2})(?::(\d{2})(?::(\d{2}(?:[.,]\d+)?))?|\.(\d{2})\.(\d{2}))(\s*[AP]\.?M\.?)?", re.ASCII | re.I
)
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|(?:19|20)\d{6}", re.ASCII)
_HOURS = ("hour", "hr", "hh")
_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


@dataclass(frozen=True)
class Columns:
    """The columns in use; `time_of_day` holds the times of day if `time` holds only dates."""

    time: str | None
    values: tuple[str, ...]
    id: str | None
    time_of_day: str | None = None
    excluded: tuple[str, ...] = ()  # numeric, but labels or counters

    @property
    def used(self) -> tuple[str, ...]:
        """All of them, each once."""
        names = (self.time, self.time_of_day, self.id, *self.values)
        return tuple(dict.fromkeys(name for name in names if name is not None))


def choose_columns(
    label: str,
    sample: Mapping[str, Cells],
    log: ProblemLog,
    *,
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    ignore: Iterable[str] = (),
    number_format: NumberFormat = PLAIN,
    guess: bool = False,
) -> Columns:
    """The given columns; those not given are chosen by their names and first cells.

    The time is the first column with a name in `TIME_NAMES` (ignoring case), else the first whose cells are times. A
    column of times of day next to one of dates is joined with it. The values are all other columns in which at least
    half of the first non-missing cells are numbers; with `guess`, labels and counters are excluded. Excluded columns
    are logged.
    """
    names = list(sample)
    ignored = as_names(ignore) or ()
    for role, given in (("time", [time]), ("id", [id]), ("ignore", ignored)):
        for name in given:
            if name is not None:
                _require(label, role, name, names)
    chosen = as_names(values)
    taken = {id, *(chosen or ()), *ignored}
    if time is None:
        time = find_time(sample, taken)
    time_of_day = None if time is None else find_time_of_day(sample, time, taken)
    if chosen is not None:
        if not chosen:
            raise ArgumentError("values", "must name at least one column, got none")
        for name in chosen:
            _require(label, "values", name, names)
            if name in (time, id):
                raise ArgumentError("values", f"must not include the time or id column, got {name!r}")
        return Columns(time, chosen, id, time_of_day)
    others = [name for name in names if name not in (time, id, time_of_day, *ignored)]
    numeric = [name for name in others if _is_numeric(sample[name], number_format)]
    if not numeric:
        besides = f" besides {time!r}" if time else ""
        held = f"; {others[0]!r} is {_described(sample[others[0]])}" if others else ""
        raise DataError(f"{label} has no numeric column{besides}; its columns: {_list(names)}{held}")
    reasons = {
        name: why
        for name in (numeric if guess else ())
        if (why := why_excluded(name, sample[name], number_format, position=names.index(name) + 1))
    }
    if len(reasons) == len(numeric):
        reasons = {}  # there are no other columns
    for name in others:
        if name in reasons:
            place = Message(f"column {name}: {reasons[name]}; to use it, add it to ", Argument("values"))
            log.add("column left out", 1, [place])
        elif name not in numeric and not _is_nothing(name, sample[name], names):
            log.add("column left out", 1, [f"column {name}: {_described(sample[name])}"])
    return Columns(
        time=time,
        values=tuple(name for name in numeric if name not in reasons),
        id=id,
        time_of_day=time_of_day,
        excluded=tuple(reasons),
    )


def find_time(sample: Mapping[str, Cells], taken: set[str | None]) -> str | None:
    """The time column, by its name or else by its cells; None if there is none.

    A column with only times of day does not count: the column of dates next to it does.
    """
    free = [name for name in sample if name not in taken]
    named = [name for name in free if is_time_name(name)]
    for name in named:
        if not is_time_of_day(sample[name]) and choose_time_parser(sample[name]) is not None:
            return name
    if any(is_time_of_day(sample[name]) for name in named):
        dates = next((name for name in free if are_dates(sample[name])), None)
        if dates is not None:
            return dates
    for position, name in enumerate(free):
        if _are_times(sample[name], may_count=position == 0 and name == "1"):
            return name
    return named[0] if named else None


def shortened(cell: Any) -> str:
    """A cell for a message, shortened."""
    text = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return text if len(text) <= 40 else text[:37] + "..."


def as_names(values: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """One name or several, each once; None stays None."""
    if values is None or isinstance(values, str):
        return None if values is None else (values,)
    return tuple(dict.fromkeys(values))


def _require(label: str, role: str, name: str, names: Sequence[str]) -> None:
    if name in names:
        return
    close = get_close_matches(name.lower(), [known.lower() for known in names], n=1)
    hint = next((f"; did you mean {known!r}?" for known in names if [known.lower()] == close), "")
    listed = f"){hint or ';'} its columns: {_list(names)}"
    raise DataError(Message(f"{label} has no column {name!r} (given as ", Argument(role), listed))


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(map(repr, names[:20])) + more


def _are_times(cells: Cells, *, may_count: bool) -> bool:
    """Whether cells are times. Numbers are only if they `may_count`, look like Unix time and never decrease."""
    parser = choose_time_parser(cells)
    if parser is None or not parser.of_numbers:
        return parser is not None
    steps = np.diff(read_numbers(cells)[0])
    return may_count and parser.dtype is np.int64 and steps.size > 0 and bool(np.all(steps >= 0))


def _is_numeric(cells: Cells, number_format: NumberFormat) -> bool:
    numbers, why = read_numbers(cells, number_format)
    text = 0 if why is None else np.count_nonzero(why == TEXT)
    count = np.count_nonzero(np.isfinite(numbers))
    return bool(count and count >= text)


def _is_nothing(name: str, cells: Cells, names: Sequence[str]) -> bool:
    """Whether a column has neither a name nor a cell, because of an extra delimiter."""
    return name == str(names.index(name) + 1) and all(map(is_missing, cells))


def _described(cells: Cells) -> str:
    full = next((cell for cell in cells if not is_missing(cell)), None)
    return "empty in the first rows" if full is None else f"text such as {shortened(full)}"


def why_excluded(name: str, cells: Cells, number_format: NumberFormat, *, position: int) -> str | None:
    """Why a numeric column is not a feature by default; None if it may be one.

    A label has a typical name and few, whole values. A counter has a typical name or none, and increases by one from
    row to row.
    """
    called = re.sub(r"[\s_.-]|^is(?=[\s_.-]?[a-z])", "", name.strip().lower())
    numbers = read_numbers(cells, number_format)[0]
    numbers = numbers[np.isfinite(numbers)]
    if called in _LABELS and _few_whole(numbers):
        return "a label, by its name and values"
    if (called in _COUNTERS or name == str(position)) and numbers.size > 2 and bool(np.all(np.diff(numbers) == 1)):
        return "a row counter"
    return None


def is_label(name: str, cells: Cells) -> bool:
    """Whether a column holds labels, by its name and these cells."""
    why = why_excluded(name, cells, NumberFormat(), position=0)
    return why is not None and why.startswith("a label")


def _few_whole(numbers: np.ndarray) -> bool:
    return bool(np.all(numbers == np.floor(numbers))) and len(np.unique(numbers)) <= _MOST_CLASSES


def find_time_of_day(sample: Mapping[str, Cells], dates: str, taken: set[str | None]) -> str | None:
    """The column with the times of day for a column of bare dates, or None."""
    if dates not in sample or not are_dates(sample[dates]):
        return None
    free = [name for name in sample if name not in taken and name != dates]
    for name in free:
        if is_time_of_day(sample[name]):
            return name
    return next((name for name in free if name.strip().lower() in _HOURS and _are_hours(sample[name])), None)


def is_time_of_day(cells: Cells) -> bool:
    """Whether cells are times of day."""
    full = _full(cells)
    return bool(full) and all(
        isinstance(cell, time) or (isinstance(cell, str) and _TIME_OF_DAY.fullmatch(cell.strip()) is not None)
        for cell in full
    )


def are_dates(cells: Cells) -> bool:
    """Whether cells are dates without a time of day."""
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind == "M" and bool(np.all(cells == cells.astype("datetime64[D]")))
    full = _full(cells)
    return bool(full) and all(
        (isinstance(cell, str) and _DATE.fullmatch(cell.strip()) is not None)
        or (isinstance(cell, date) and not isinstance(cell, datetime))
        for cell in full
    )


def join_dates(dates: Cells, times: Cells) -> list[Any]:
    """Each date joined with its time of day. If either is missing, the cell stays as it is."""
    return [
        f"{_date_text(day)} {_time_of_day_text(time_of_day)}"
        if not (is_missing(day) or is_missing(time_of_day))
        else day
        for day, time_of_day in zip(dates, times, strict=True)
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


def _time_of_day_text(cell: Any) -> str:
    text = str(cell).strip()
    match = _TIME_OF_DAY.fullmatch(text)
    if match is not None and match[4]:
        return f"{match[1]}:{match[4]}:{match[5]}{match[6] or ''}"
    return f"{int(float(text))}:00" if re.fullmatch(r"\d{1,2}(\.0+)?", text) else text


def time_cells(cells: Mapping[str, Cells], columns: Columns, number_format: NumberFormat) -> Cells:
    """The time cells, from one column or two."""
    if columns.time is None:
        raise TypeError("there is no time column to read")
    times = cells[columns.time]
    if columns.time_of_day is not None:
        return join_dates(times, cells[columns.time_of_day])
    if number_format.decimal == "," and not isinstance(times, np.ndarray):
        return [
            cell.replace(",", ".") if isinstance(cell, str) and _WITH_COMMA.fullmatch(cell) else cell for cell in times
        ]
    return times

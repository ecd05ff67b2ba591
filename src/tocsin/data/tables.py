"""What all readers of tables share: blocks of rows, and where a table and its header begin."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.data.numbers import PLAIN, Cells, NumberFormat, detect_number_format, is_missing, read_numbers
from tocsin.data.times import is_time, is_time_name

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
    header = named[0] if named else 0
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


def column_names(header: Iterable[str]) -> list[str]:
    """Names without surrounding blanks. An unnamed column is named by position; repeated names are numbered."""
    names: list[str] = []
    for position, cell in enumerate(header, start=1):
        name = cell.strip() or str(position)
        candidates = (name if n == 1 else f"{name}_{n}" for n in count(1))
        names.append(next(candidate for candidate in candidates if candidate not in names))
    return names


def trimmed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sequence[str]:
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

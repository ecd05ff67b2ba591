"""CSV and its relatives, line by exact line."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tocsin.data.blocks import SAMPLE, Block
from tocsin.data.cells import Cells
from tocsin.data.header import Heading, column_names, find_heading, find_table, trimmed
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.text import TextChunks

MOST_LINES = 100  # that a quoted field may run over: beyond, its quote is taken for a stray one

Rows = tuple[list[list[str]], NDArray[np.int64]]


class DelimitedReader:
    """Reads fields separated by `delimiter` (found from the first lines if None), quoted by '"' or not.

    Blank lines and lines that start with '#' are passed over, and so are a preamble and units below the header; `notes`
    says so. `header` says whether the first line names the columns; None finds out: it does unless all its cells are
    numbers, times or empty. Nameless columns are called by position.
    A row with a wrong number of fields, or with a quote that is never closed, is kept out and reported.
    """

    unit = "line"

    def __init__(
        self,
        chunks: TextChunks,
        label: str,
        log: ProblemLog,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        time_format: str | None = None,
        decimal: str | None = None,
    ) -> None:
        self.label = label
        self._log = log
        self._lines = _Lines(chunks)
        first = self._lines.first()
        if not first:
            raise DataError(f"{label} holds no rows: only blank or comment lines")
        self._delimiter, before = find_table(first, delimiter)
        self._width = 0  # until the header is read
        rows, numbers = self._parse(first[before:], self._lines.first_numbers[before:], last=False)
        if not rows:
            raise DataError(f"{label} cannot be read as CSV: its first line opens a quote that is never closed")
        if header is None:
            heading = find_heading(rows[:SAMPLE], time_format, decimal)
        else:
            heading = Heading(0 if header else None, units=False)
        top = [""] * len(rows[0]) if heading.header is None else rows[heading.header]
        data = rows[heading.rows :]
        self.names: Sequence[str] = column_names(trimmed(top, data[:SAMPLE]))
        self.notes: Sequence[str] = self._noted(
            before + (heading.header or 0), numbers[heading.rows - 1] if heading.units else None
        )
        self._width = len(self.names)
        self._rows = chain([self._checked(data, numbers[heading.rows :])], self._further_rows())

    def _noted(self, before: int, units: int | None) -> list[str]:
        notes = [f"{before} lines before the header"] if before > 1 else ["1 line before the header"] if before else []
        return [*notes, *([f"units in line {units}"] if units is not None else [])]

    def sample(self) -> Mapping[str, Cells]:
        start = next(((rows, numbers) for rows, numbers in self._rows if rows), None)
        if start is None:
            return dict.fromkeys(self.names, ())
        self._rows = chain([start], self._rows)
        return {name: [row[i] for row in start[0][:SAMPLE]] for i, name in enumerate(self.names)}

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        places = [self.names.index(name) for name in columns]
        for rows, numbers in self._rows:
            cells = {name: [row[i] for row in rows] for name, i in zip(columns, places, strict=True)}
            yield Block(numbers, cells)

    def _further_rows(self) -> Iterator[Rows]:
        for lines, numbers, last in self._lines:
            yield self._checked(*self._parse(lines, numbers, last=last))

    def _parse(self, lines: list[str], numbers: NDArray[np.int64], *, last: bool) -> Rows:
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True))
        except csv.Error:
            rows = []  # a field too long to be one, behind a stray quote
        if len(rows) == len(lines) and not self._is_open(*lines[-1:]):
            return rows, numbers
        return self._parse_carefully(lines, numbers, last=last)

    def _parse_carefully(self, lines: list[str], numbers: NDArray[np.int64], *, last: bool) -> Rows:
        """Line by line, as some quoted field runs over several lines, or is never closed."""
        rows, kept, i = [], [], 0
        while i < len(lines):
            used = next((n for n in (1, MOST_LINES) if not self._is_open(*lines[i : i + n])), 0)
            if used == 0 and not last and i + MOST_LINES > len(lines):
                self._lines.push_back(lines[i:], numbers[i:])
                break
            row: list[str] = []
            if used:
                reader = csv.reader(lines[i : i + used], delimiter=self._delimiter, skipinitialspace=True)
                row, used = next(reader), reader.line_num
            if used == 0 or (used > 1 and self._width and len(row) != self._width):
                self._log.add("unclosed quote", 1, [f"line {numbers[i]}"])
                i += 1
                continue
            rows.append(row)
            kept.append(numbers[i])
            i += used
        return rows, np.array(kept, dtype=np.int64)

    def _is_open(self, *lines: str) -> bool:
        """Whether the first row of these lines is still within quotes at their end.

        Over several lines quotes must be flawless: what opens at one stray quote and ends at the next is no field.
        """
        strict = len(lines) > 1
        reader = csv.reader([*lines, "\n"], delimiter=self._delimiter, skipinitialspace=True, strict=strict)
        try:
            next(reader)
        except csv.Error:
            return True
        return reader.line_num > len(lines)

    def _checked(self, rows: list[list[str]], numbers: NDArray[np.int64]) -> Rows:
        width = self._width
        if set(map(len, rows)) <= {width}:
            return rows, numbers
        kept = []
        for i, row in enumerate(rows):
            if len(row) > width and not any(row[width:]):
                rows[i] = row[:width]  # only empty fields too many: a delimiter at the end of the line
            if len(rows[i]) == width:
                kept.append(i)
            else:
                place = f"line {numbers[i]}: {len(row)} instead of {width}"
                self._log.add("wrong number of fields", 1, [place])
        return [rows[i] for i in kept], numbers[kept]


class _Lines:
    """Chunks of lines that hold rows, with their numbers, and whether they are the last."""

    def __init__(self, chunks: TextChunks) -> None:
        self._chunks = iter(chunks)
        self._returned: tuple[list[str], NDArray[np.int64]] = ([], np.empty(0, dtype=np.int64))
        self.first_numbers = np.empty(0, dtype=np.int64)

    def first(self) -> list[str]:
        for lines, numbers, _ in self:
            if lines:
                self.first_numbers = numbers
                return lines
        return []

    def push_back(self, lines: list[str], numbers: NDArray[np.int64]) -> None:
        self._returned = (lines, numbers)

    def __iter__(self) -> Iterator[tuple[list[str], NDArray[np.int64], bool]]:
        for start, chunk in self._chunks:
            numbers = np.arange(start, start + len(chunk))
            lines = chunk
            if any(line.startswith("#") or not line.strip() for line in chunk):
                kept = [i for i, line in enumerate(chunk) if line.strip() and not line.startswith("#")]
                lines, numbers = [chunk[i] for i in kept], numbers[kept]
            yield self._with_returned(lines, numbers, last=False)
        if self._returned[0]:
            yield self._with_returned([], np.empty(0, dtype=np.int64), last=True)

    def _with_returned(
        self, lines: list[str], numbers: NDArray[np.int64], *, last: bool
    ) -> tuple[list[str], NDArray[np.int64], bool]:
        returned, self._returned = self._returned, ([], np.empty(0, dtype=np.int64))
        return returned[0] + lines, np.concatenate([returned[1], numbers]), last

"""CSV and similar formats, with exact line numbers."""

import csv
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.numbers import MISSING, Cells, read_numbers
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.sources import Chunk, TextChunks
from tocsin.data.tables import (
    ANYTHING,
    SAMPLE,
    ExpectedTypes,
    RowBlock,
    find_table,
    heading_notes,
    read_heading,
)

MOST_LINES = 100  # that a quoted field may span; beyond that, its quote counts as stray

Rows = tuple[list[list[str]], NDArray[np.int64]]

_NO_LINES = np.empty(0, dtype=np.int64)
AHEAD = 3  # chunks to read while another is processed
_SPACE = ord(" ")


class DelimitedReader:
    """Reads fields separated by `delimiter` (detected from the first lines if None), quoted by '"' or not.

    Blank lines and lines that start with '#' are skipped. So are a preamble and units below the header; `notes` says
    so. `header` says whether the first line holds column names. If None, it does unless all its cells are numbers,
    times or empty. Unnamed columns are named by position.
    A row with the wrong number of fields or an unclosed quote is skipped and reported.
    """

    unit = "line"
    zoned: Collection[str] = ()

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
        first, at, _ = next((found for found in self._lines if found[0]), ([], _NO_LINES, True))
        if not first:
            raise DataError(f"{label} has no rows, only blank or comment lines")
        self._delimiter, before = find_table(first, delimiter)
        self._width = 0  # until the header is read
        rows, numbers = self._parse(first[before:], at[before:], last=False)
        if not rows:
            raise DataError(f"{label} cannot be read as CSV: its first line opens a quote that is never closed")
        heading, names = read_heading(rows, header, time_format, decimal)
        units = numbers[heading.rows - 1] if heading.units else None
        self.names: Sequence[str] = names
        self.notes: Sequence[str] = heading_notes("line", before + (heading.header or 0), units)
        self._width = len(names)
        self._begun = [self._checked(rows[heading.rows :], numbers[heading.rows :])]

    def sample(self) -> Mapping[str, Cells]:
        if not self._begun[0][0]:
            further = (self._carefully(*lines) for lines in self._lines)
            self._begun = [next((rows for rows in further if rows[0]), self._begun[0])]
        start = self._begun[0][0][:SAMPLE]
        return {name: [row[i] for row in start] for i, name in enumerate(self.names)}

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        for rows in self._begun:
            yield self._block(rows, columns)
        plain = partial(FastRowReader, self.names, columns, self._delimiter, expected)
        for chunk, block in read_ahead(self._lines.chunks, plain):
            if block is None or self._lines.waiting:
                block = self._block(self._carefully(*self._lines.of(chunk)), columns)
            yield block
        if self._lines.waiting:
            yield self._block(self._carefully(*self._lines.of(None)), columns)

    def _block(self, rows: Rows, columns: Sequence[str]) -> RowBlock:
        places = [self.names.index(name) for name in columns]
        cells = {name: [row[i] for row in rows[0]] for name, i in zip(columns, places, strict=True)}
        return RowBlock(rows[1], cells)

    def _carefully(self, lines: list[str], numbers: NDArray[np.int64], last: bool) -> Rows:
        return self._checked(*self._parse(lines, numbers, last=last))

    def _parse(self, lines: list[str], numbers: NDArray[np.int64], *, last: bool) -> Rows:
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True))
        except csv.Error:
            rows = []  # an overlong field after a stray quote
        if len(rows) == len(lines) and not self._is_open(*lines[-1:]):
            return rows, numbers
        return self._parse_carefully(lines, numbers, last=last)

    def _parse_carefully(self, lines: list[str], numbers: NDArray[np.int64], *, last: bool) -> Rows:
        """Read line by line, because a quoted field spans several lines or is never closed."""
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
        """Whether a quote in the first row is still open at the end of these lines.

        Across lines, quotes must be well-formed: text between two stray quotes is not a field.
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
                rows[i] = row[:width]  # the extra fields are empty: a delimiter at the end of the line
            if len(rows[i]) == width:
                kept.append(i)
            else:
                place = f"line {numbers[i]}: {len(row)} instead of {width}"
                self._log.add("wrong number of fields", 1, [place])
        return [rows[i] for i in kept], numbers[kept]


class _Lines:
    """Lines with rows, their numbers, and whether they are the last."""

    def __init__(self, chunks: TextChunks) -> None:
        self.chunks = iter(chunks)
        self._returned: tuple[list[str], NDArray[np.int64]] = ([], _NO_LINES)

    @property
    def waiting(self) -> bool:
        """Whether lines were put back because they belong with those that follow."""
        return bool(self._returned[0])

    def push_back(self, lines: list[str], numbers: NDArray[np.int64]) -> None:
        self._returned = (lines, numbers)

    def __iter__(self) -> Iterator[tuple[list[str], NDArray[np.int64], bool]]:
        yield from map(self.of, self.chunks)
        if self.waiting:
            yield self.of(None)

    def of(self, chunk: Chunk | None) -> tuple[list[str], NDArray[np.int64], bool]:
        """The lines that were put back, followed by those of a chunk; by nothing after the last one."""
        lines = [] if chunk is None else chunk.lines
        numbers = _NO_LINES if chunk is None else np.arange(chunk.first, chunk.first + len(lines))
        if any(line.startswith("#") or not line.strip() for line in lines):
            kept = [i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")]
            lines, numbers = [lines[i] for i in kept], numbers[kept]
        returned, self._returned = self._returned, ([], _NO_LINES)
        return returned[0] + lines, np.concatenate([returned[1], numbers]), chunk is None


class FastRowReader:
    """Reads chunks of lines whose fields are all in their place into the same numbers that a careful reading gives."""

    def __init__(self, names: Sequence[str], columns: Sequence[str], delimiter: str, expected: ExpectedTypes) -> None:
        from tocsin.data.kernels import NUMBER, TEXT, TIME, UNUSED, read_rows  # compiled if there is much to read

        self._read = read_rows
        self._number_format = expected.number_format
        self._delimiter = ord(delimiter)
        self._kinds = np.full(len(names), UNUSED)
        self._places = np.zeros(len(names), dtype=np.int64)
        self._of: dict[int, list[str]] = {NUMBER: [], TIME: [], TEXT: []}
        for name in columns:
            kind = NUMBER if name in expected.numbers else TIME if name == expected.iso_times else TEXT
            self._kinds[names.index(name)] = kind
            self._places[names.index(name)] = len(self._of[kind])
            self._of[kind].append(name)
        self._numbers, self._times, self._texts = self._of[NUMBER], self._of[TIME], self._of[TEXT]

    def block(self, chunk: Chunk) -> RowBlock | None:
        """The rows of a chunk; None if anything is unusual."""
        raw = chunk.raw
        if raw is None or self._delimiter == _SPACE or not raw.isascii():
            return None
        rows = chunk.count
        numbers = np.empty((rows, len(self._numbers)))
        times = np.empty((rows, len(self._times)), dtype=np.int64)
        spans = np.empty((rows, 2 * len(self._texts)), dtype=np.int64)
        odd = np.empty((numbers.size, 4), dtype=np.int64)
        found, odd_cells = self._read(
            np.frombuffer(raw, dtype=np.uint8), self._delimiter, ord(self._number_format.decimal), self._kinds,
            self._places, numbers, times, spans, odd,
        )  # fmt: skip
        if found != rows or not self._fill_odd(raw, odd[:odd_cells], numbers):
            return None
        cells: dict[str, Cells] = {name: numbers[:, i] for i, name in enumerate(self._numbers)}
        cells |= {name: times[:, i].view("datetime64[ns]") for i, name in enumerate(self._times)}
        text = raw.decode("ascii") if self._texts else ""
        for i, name in enumerate(self._texts):
            first, last = spans[:, 2 * i].tolist(), spans[:, 2 * i + 1].tolist()
            cells[name] = [text[a:b] for a, b in zip(first, last, strict=True)]
        return RowBlock(np.arange(chunk.first, chunk.first + rows), cells)

    def _fill_odd(self, raw: bytes, odd: Any, numbers: Any) -> bool:
        """Fill in the cells that are not plain numbers; false if one is damaged and must be reported."""
        if not len(odd):
            return True
        row, place, first, last = (column.tolist() for column in odd.T)
        cells = [raw[a:b].decode("ascii") for a, b in zip(first, last, strict=True)]
        values, why = read_numbers(cells, self._number_format)
        numbers[row, place] = values
        return why is None or not np.any(why > MISSING)


def read_ahead(chunks: Iterable[Chunk], new: Callable[[], FastRowReader]) -> Iterator[tuple[Chunk, RowBlock | None]]:
    """Chunks with their blocks, in order. Compiled loops release the interpreter meanwhile."""
    with ThreadPoolExecutor(max_workers=AHEAD - 1, thread_name_prefix="tocsin-read") as pool:
        waiting: deque[tuple[Chunk, Future[RowBlock | None]]] = deque()
        plain: FastRowReader | None = None
        for chunk in chunks:
            plain = plain or new()
            waiting.append((chunk, pool.submit(plain.block, chunk)))
            if len(waiting) == AHEAD:
                first, block = waiting.popleft()
                yield first, block.result()
        for first, block in waiting:
            yield first, block.result()

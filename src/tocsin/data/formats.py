"""Readers of JSON lines, Excel workbooks and Parquet."""

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import Argument, Message
from tocsin.data.numbers import Cells
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.sources import SUFFIXES, OpenSource, TextChunks
from tocsin.data.tables import (
    ANYTHING,
    SAMPLE,
    ExpectedTypes,
    RowBlock,
    heading_notes,
    read_heading,
    rows_per_block,
)

Objects = tuple[list[dict[str, Any]], NDArray[np.int64]]

_LOOKED_AT = 200  # rows, to find where the table begins
Row = list[Any]


class JsonLinesReader:
    """Reads one object per line. The columns are the keys of the first rows; an absent key is a missing value.

    Blank lines are skipped. A line that is not an object is skipped and reported. Keys that appear only later are
    ignored and reported.
    """

    unit = "line"
    notes: Sequence[str] = ()
    zoned: Collection[str] = ()

    def __init__(self, chunks: TextChunks, label: str, log: ProblemLog) -> None:
        self.label = label
        self._log = log
        self._objects = self._read(chunks)
        start = next(((objects, numbers) for objects, numbers in self._objects if objects), None)
        if start is None:
            raise DataError(f"{label} has no JSON objects: expected one on every line")
        self._objects = chain([start], self._objects)
        self._first = start[0][:SAMPLE]
        self.names: Sequence[str] = list(dict.fromkeys(chain.from_iterable(self._first)))

    def sample(self) -> Mapping[str, Cells]:
        return {name: [row.get(name) for row in self._first] for name in self.names}

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        known = set(self.names)
        for objects, numbers in self._objects:
            unknown = set().union(*objects) - known
            for key in sorted(unknown):
                self._log.add("column left out", 1, [f"column {key}: not among the keys of the first {SAMPLE} rows"])
            known |= unknown
            yield RowBlock(numbers, {name: [row.get(name) for row in objects] for name in columns})

    def _read(self, chunks: TextChunks) -> Iterator[Objects]:
        for chunk in chunks:
            lines = chunk.lines
            numbers = np.arange(chunk.first, chunk.first + len(lines))
            try:
                objects = list(map(json.loads, lines))
            except (RecursionError, ValueError):
                objects = [None]
            if set(map(type, objects)) != {dict}:
                objects, numbers = self._read_carefully(lines, numbers)
            yield objects, numbers

    def _read_carefully(self, lines: list[str], numbers: NDArray[np.int64]) -> Objects:
        objects, kept = [], []
        for line, number in zip(lines, numbers, strict=True):
            if not line.strip():
                continue
            try:
                row = parse_object(line)
            except ValueError as error:
                self._log.add("invalid JSON", 1, [f"line {number}: {error}"])
                continue
            objects.append(row)
            kept.append(number)
        return objects, np.array(kept, dtype=np.int64)


def parse_object(line: str) -> dict[str, Any]:
    """The JSON object on one line, or ValueError with what was found instead."""
    shortened = line.strip()
    shortened = repr(shortened if len(shortened) <= 40 else shortened[:37] + "...")
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError(f"nested too deeply: {shortened}") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"{reason}: {shortened}") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {shortened}")
    return row


class ExcelReader:
    """Reads one sheet with python-calamine, which is imported only here. Rows are numbered as in Excel.

    The default is the first sheet that is not empty. A preamble and units below the header are skipped, as in text
    files. The format requires the whole sheet in memory.
    """

    unit = "row"
    zoned: Collection[str] = ()

    def __init__(
        self, source: OpenSource, sheet: str | None, skip: int, header: bool | None, time_format: str | None
    ) -> None:
        self.label = source.label
        calamine = import_calamine()
        try:
            workbook = calamine.CalamineWorkbook.from_filelike(source.stream)
            name, rows = _chosen(workbook, sheet, self.label)
        except (calamine.CalamineError, OSError) as error:
            raise DataError(f"{self.label} is not an Excel workbook, or is damaged: {error}") from error
        numbered = [(number, row) for number, row in enumerate(rows, start=1) if number > skip and any(map(_full, row))]
        if not numbered:
            raise DataError(f"{self.label}: sheet {name!r} has no rows{f' after {skip}' if skip else ''}")
        before = _rows_before(numbered)
        texts = [[_text(cell) for cell in row] for _, row in numbered[before : before + SAMPLE]]
        heading, names = read_heading(texts, header, time_format, None)
        self.names: Sequence[str] = names
        self._rows = numbered[before + heading.rows :]
        self._timed = {i for i in range(len(self.names)) if any(isinstance(row[i], datetime) for _, row in self._rows)}
        sheets = len(workbook.sheet_names)
        units = self._rows[0][0] - 1 if heading.units and self._rows else None
        self.notes: Sequence[str] = [
            *([f"sheet {name!r} of {sheets}"] if sheets > 1 else []),
            *heading_notes("row", before + (heading.header or 0), units),
        ]

    def sample(self) -> Mapping[str, Cells]:
        return self._cells(self._rows[:SAMPLE], self.names)

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        size = rows_per_block(len(columns))
        for first in range(0, len(self._rows), size):
            part = self._rows[first : first + size]
            yield RowBlock(np.array([number for number, _ in part], dtype=np.int64), self._cells(part, columns))

    def _cells(self, rows: Sequence[tuple[int, Row]], columns: Sequence[str]) -> Mapping[str, Cells]:
        places = [self.names.index(name) for name in columns]
        return {
            name: [self._midnight(cell, i) for cell in (_cell(row[i]) for _, row in rows)]
            for name, i in zip(columns, places, strict=True)
        }

    def _midnight(self, cell: Any, place: int) -> Any:
        """In a column of times, a date means its midnight. In a column of dates it becomes text, as in other files."""
        if not isinstance(cell, date) or isinstance(cell, datetime):
            return cell
        return datetime.combine(cell, time()) if place in self._timed else cell.isoformat()


def import_calamine() -> Any:
    """python-calamine, or an error that says how to install it."""
    try:
        import python_calamine
    except ImportError:
        raise DataError("Excel needs python-calamine: pip install 'tocsin[excel]'") from None
    return python_calamine


def _chosen(workbook: Any, sheet: str | None, label: str) -> tuple[str, list[Row]]:
    """The name and rows of the requested sheet, or of the first that is not empty."""
    names: list[str] = workbook.sheet_names
    listed = ", ".join(map(repr, names))
    if sheet is not None and sheet not in names:
        problem = f"{label} has no sheet {sheet!r} (given as "
        raise DataError(Message(problem, Argument("sheet"), f"); its sheets: {listed}"))
    for name in names if sheet is None else [sheet]:
        rows: list[Row] = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
        if sheet is not None or any(any(map(_full, row)) for row in rows):
            return name, rows
    raise DataError(f"{label} is empty; its sheets: {listed}")


def _rows_before(rows: Sequence[tuple[int, Row]]) -> int:
    """The number of rows before the first one that is as full as most."""
    counts = [sum(map(_full, row)) for _, row in rows[:_LOOKED_AT]]
    common = Counter(counts).most_common(1)[0][0]
    return next((i for i, count in enumerate(counts) if count >= common), 0)


def _full(cell: Any) -> bool:
    return not (isinstance(cell, str) and not cell.strip())


def _text(cell: Any) -> str:
    return str(_cell(cell) if _full(cell) else "")


def _cell(cell: Any) -> Any:
    """A cell as other readers return it: None if empty."""
    return cell if _full(cell) else None


class _ParquetRows(ABC):
    """Reads batches from pyarrow, which is imported only here. Rows are counted from 1."""

    unit = "row"
    notes: Sequence[str] = ()
    label: str
    names: Sequence[str]
    zoned: Collection[str]
    _arrow: Any

    def _use(self, schema: Any) -> None:
        self.names = schema.names
        self.zoned = [column.name for column in schema if getattr(column.type, "tz", None) is not None]
        if len(set(self.names)) < len(self.names):
            raise DataError(f"{self.label} has several columns with the same name: {', '.join(self.names)}")

    def sample(self) -> Mapping[str, Cells]:
        for batch in self._batches(min(SAMPLE, rows_per_block(len(self.names))), self.names):
            if batch.num_rows:
                return {name: arrow_cells(batch.column(name)) for name in self.names}
        return dict.fromkeys(self.names, ())

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
        row = 1
        for batch in self._batches(rows_per_block(len(columns)), columns):
            numbers = np.arange(row, row + batch.num_rows)
            yield RowBlock(numbers, {name: arrow_cells(batch.column(name)) for name in columns})
            row += batch.num_rows

    def _batches(self, size: int, columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from self._read(size, list(columns))
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.label} is damaged: {error}") from error

    @abstractmethod
    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        """Batches of at most this many rows, from the start."""


class ParquetReader(_ParquetRows):
    """Reads a Parquet file."""

    def __init__(self, source: OpenSource) -> None:
        self.label = source.label
        self._arrow = import_pyarrow()
        from pyarrow import parquet

        try:
            self._file = parquet.ParquetFile(source.stream)
            self._use(self._file.schema_arrow)
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.label} is not a Parquet file, or is damaged: {error}") from error

    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        batches: Iterable[Any] = self._file.iter_batches(batch_size=size, columns=columns)
        return batches


class ParquetFolderReader(_ParquetRows):
    """Reads the Parquet files in a folder and its subfolders as one table, in the order of their names.

    Folders such as `sensor=pump` add a column. Files whose names begin with '_' or '.' are not data.
    """

    def __init__(self, folder: str) -> None:
        self.label = folder
        self._arrow = import_pyarrow()
        from pyarrow import dataset

        files = [str(path) for path in sorted(Path(folder).rglob("*")) if _is_data(path, Path(folder))]
        if not files:
            raise DataError(
                f"{folder} is a folder without Parquet files; for other files use a pattern, '{folder}/*.csv'"
            )
        try:
            self._dataset = dataset.dataset(
                files, format="parquet", partitioning="hive", partition_base_dir=os.path.abspath(folder)
            )
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{folder} is a folder that cannot be read as one table: {error}") from error
        self._use(self._dataset.schema)
        self.notes = [f"{len(files):,} Parquet file{'s' if len(files) > 1 else ''}"]

    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        # Few batches ahead: the folder may be far larger than memory.
        scanner = self._dataset.scanner(columns=columns, batch_size=size, batch_readahead=2, fragment_readahead=1)
        batches: Iterable[Any] = scanner.to_batches()
        return batches


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return SUFFIXES.get(path.suffix.lower()) == "parquet" and path.is_file() and not hidden


def import_pyarrow() -> Any:
    """pyarrow, or an error that says how to install it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError("Parquet needs pyarrow: pip install 'tocsin[parquet]'") from None
    return pa


def arrow_cells(column: Any) -> Cells:
    """Numbers and times as arrays (NaN and NaT for null), anything else as a list."""
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if types.is_decimal(kind):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False))
    if types.is_timestamp(kind) or types.is_date(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))  # a zoned timestamp is stored in UTC
    cells: list[Any] = column.to_pylist()
    return cells

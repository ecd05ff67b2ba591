"""Sheets of Excel and LibreOffice workbooks."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np

from tocsin.data.blocks import NOTHING, SAMPLE, Expected, RowBlock, rows_per_block
from tocsin.data.cells import Cells
from tocsin.data.header import Heading, column_names, find_heading, trimmed
from tocsin.data.problems import DataError
from tocsin.data.sources import OpenSource

_LOOKED_AT = 200  # rows, to find where the table begins

Row = list[Any]


class ExcelReader:
    """Reads one sheet with python-calamine, which is imported only here. Rows are numbered as in Excel.

    The default is the first sheet that is not empty. A preamble and units below the header are skipped, as in text
    files. The format requires the whole sheet in memory.
    """

    unit = "row"

    def __init__(
        self, source: OpenSource, sheet: str | None, skip: int, header: bool | None, time_format: str | None
    ) -> None:
        self.label = source.label
        calamine = import_calamine()
        try:
            stream = source.stream if source.stream.seekable() else io.BytesIO(source.stream.read())
            workbook = calamine.CalamineWorkbook.from_filelike(stream)
            name, rows = _chosen(workbook, sheet, self.label)
        except (calamine.CalamineError, OSError) as error:
            raise DataError(f"{self.label} is not an Excel workbook, or is damaged: {error}") from error
        numbered = [(number, row) for number, row in enumerate(rows, start=1) if number > skip and any(map(_full, row))]
        if not numbered:
            raise DataError(f"{self.label}: sheet {name!r} has no rows{f' after {skip}' if skip else ''}")
        before = _rows_before(numbered)
        texts = [[_text(cell) for cell in row] for _, row in numbered[before : before + SAMPLE]]
        heading = Heading(0 if header else None, units=False)
        if header is None:
            heading = find_heading(texts, time_format, None)
        top = [""] * len(texts[0]) if heading.header is None else texts[heading.header]
        self.names: Sequence[str] = column_names(trimmed(top, texts[heading.rows :]))
        self._rows = numbered[before + heading.rows :]
        self._timed = {i for i in range(len(self.names)) if any(isinstance(row[i], datetime) for _, row in self._rows)}
        sheets = len(workbook.sheet_names)
        before += heading.header or 0
        self.notes: Sequence[str] = [
            *([f"sheet {name!r} of {sheets}"] if sheets > 1 else []),
            *([f"{before} row{'s' if before > 1 else ''} before the header"] if before else []),
            *([f"units in row {self._rows[0][0] - 1}"] if heading.units and self._rows else []),
        ]

    def sample(self) -> Mapping[str, Cells]:
        return self._cells(self._rows[:SAMPLE], self.names)

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
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
        raise DataError(f"{label} has no sheet {sheet!r} (given as `sheet`); its sheets: {listed}")
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

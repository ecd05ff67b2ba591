"""The cells with the times of rows, from one column or two."""

import re
from collections.abc import Mapping

import numpy as np

from tocsin.data.cells import Cells
from tocsin.data.clocks import join
from tocsin.data.columns import Columns
from tocsin.data.numerals import Numerals

_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


def time_cells(cells: Mapping[str, Cells], columns: Columns, numerals: Numerals) -> Cells:
    """The time cells, from one column or two."""
    if columns.time is None:
        raise TypeError("there is no time column to read")
    times = cells[columns.time]
    if columns.clock is not None:
        return join(times, cells[columns.clock])
    if numerals.decimal == "," and not isinstance(times, np.ndarray):
        return [
            cell.replace(",", ".") if isinstance(cell, str) and _WITH_COMMA.fullmatch(cell) else cell for cell in times
        ]
    return times

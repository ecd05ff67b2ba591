"""What every reader gives: names of columns, their first cells, and blocks of rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.data.cells import Cells
from tocsin.data.numerals import PLAIN, Numerals

SAMPLE = 1000  # rows by which the columns are told, at most
BLOCK = 65_536  # rows of a block, at most
BLOCK_CELLS = 2**20  # cells of a block, at most (but a row is never split)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows: their lines in the source, and their cells by column."""

    lines: NDArray[np.int64]
    cells: Mapping[str, Cells]


@dataclass(frozen=True)
class Expected:
    """What columns should hold, for readers that are quicker where they know it. Cells that do not are given as ever.

    `numbers` are columns of numbers, written as `numerals` says; `moments` is one of times in ISO 8601.
    """

    numbers: Collection[str] = ()
    numerals: Numerals = PLAIN
    moments: str | None = None


NOTHING = Expected()


def rows_per_block(columns: int) -> int:
    """How many rows of so many columns to take at once."""
    return max(1, min(BLOCK, BLOCK_CELLS // columns))


class BlockReader(Protocol):
    """A table that is read once, from top to bottom."""

    label: str  # what messages call the source
    unit: str  # what messages call a row: "line" or "row"
    names: Sequence[str]
    notes: Sequence[str]  # what was found of how it is written

    def sample(self) -> Mapping[str, Cells]:
        """The first cells of every column, at most `SAMPLE` rows. Called once, before `blocks`."""
        ...

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
        """All rows, from the first, with the named columns."""
        ...

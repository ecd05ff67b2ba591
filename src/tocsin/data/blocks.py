"""What every reader provides: column names, their first cells, and blocks of rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.data.cells import Cells
from tocsin.data.numerals import PLAIN, Numerals

SAMPLE = 1000  # rows used to identify the columns, at most
BLOCK = 65_536  # rows of a block, at most
BLOCK_CELLS = 2**20  # cells of a block, at most (but a row is never split)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows: their lines in the source, and their cells by column."""

    lines: NDArray[np.int64]
    cells: Mapping[str, Cells]


@dataclass(frozen=True)
class Expected:
    """The expected content of columns, which lets readers go faster. Other cells are returned as usual.

    `numbers` are columns of numbers in the format `numerals`; `moments` is a column of ISO 8601 times.
    """

    numbers: Collection[str] = ()
    numerals: Numerals = PLAIN
    moments: str | None = None


NOTHING = Expected()


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

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
        """All rows, from the first, with the named columns."""
        ...

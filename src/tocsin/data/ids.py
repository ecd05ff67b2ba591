"""Cells with a row's signal id."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.cells import Cells, is_missing


class Ids:
    """Numbers signals in order of first appearance; -1 for cells without an id."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {"": -1}

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        """The number of each cell's signal."""
        texts = list(map(_id_text, cells))
        found = list(map(self._codes.get, texts))
        if None in found:
            for text in texts:
                if text not in self._codes:
                    self._codes[text] = len(self.names)
                    self.names.append(text)
            found = list(map(self._codes.get, texts))
        return np.array(found, dtype=np.int64)


def _id_text(cell: Any) -> str:
    """An id as text. Only an empty cell is not an id: "NA" may be a name."""
    if isinstance(cell, str):
        return cell.strip()
    return "" if is_missing(cell) else str(cell)

"""Fast reading of plain rows from bytes. Anything else is left to `DelimitedReader`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from tocsin.data.blocks import Expected, RowBlock
from tocsin.data.cells import MISSING, Cells, read_numbers
from tocsin.data.text import Chunk

AHEAD = 3  # chunks to read while another is processed
_SPACE = ord(" ")


class PlainRows:
    """Reads chunks of lines whose fields are all in their place into the same numbers that a careful reading gives."""

    def __init__(self, names: Sequence[str], columns: Sequence[str], delimiter: str, expected: Expected) -> None:
        from tocsin.data.kernels import MOMENT, NUMBER, TEXT, UNUSED, read_rows  # compiled if there is much to read

        self._read = read_rows
        self._numerals = expected.numerals
        self._delimiter = ord(delimiter)
        self._kinds = np.full(len(names), UNUSED)
        self._places = np.zeros(len(names), dtype=np.int64)
        self._of: dict[int, list[str]] = {NUMBER: [], MOMENT: [], TEXT: []}
        for name in columns:
            kind = NUMBER if name in expected.numbers else MOMENT if name == expected.moments else TEXT
            self._kinds[names.index(name)] = kind
            self._places[names.index(name)] = len(self._of[kind])
            self._of[kind].append(name)
        self._numbers, self._moments, self._texts = self._of[NUMBER], self._of[MOMENT], self._of[TEXT]

    def block(self, chunk: Chunk) -> RowBlock | None:
        """The rows of a chunk; None if anything is unusual."""
        raw = chunk.raw
        if raw is None or self._delimiter == _SPACE or not raw.isascii():
            return None
        rows = chunk.count
        numbers = np.empty((rows, len(self._numbers)))
        moments = np.empty((rows, len(self._moments)), dtype=np.int64)
        spans = np.empty((rows, 2 * len(self._texts)), dtype=np.int64)
        odd = np.empty((numbers.size, 4), dtype=np.int64)
        found, odd_cells = self._read(
            np.frombuffer(raw, dtype=np.uint8), self._delimiter, ord(self._numerals.decimal), self._kinds, self._places,
            numbers, moments, spans, odd,
        )  # fmt: skip
        if found != rows or not self._fill_odd(raw, odd[:odd_cells], numbers):
            return None
        cells: dict[str, Cells] = {name: numbers[:, i] for i, name in enumerate(self._numbers)}
        cells |= {name: moments[:, i].view("datetime64[ns]") for i, name in enumerate(self._moments)}
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
        values, why = read_numbers(cells, self._numerals)
        numbers[row, place] = values
        return why is None or not np.any(why > MISSING)


def read_ahead(chunks: Iterable[Chunk], new: Callable[[], PlainRows]) -> Iterator[tuple[Chunk, RowBlock | None]]:
    """Chunks with their blocks, in order. Compiled loops release the interpreter meanwhile."""
    with ThreadPoolExecutor(max_workers=AHEAD - 1, thread_name_prefix="tocsin-read") as pool:
        waiting: deque[tuple[Chunk, Future[RowBlock | None]]] = deque()
        plain: PlainRows | None = None
        for chunk in chunks:
            plain = plain or new()
            waiting.append((chunk, pool.submit(plain.block, chunk)))
            if len(waiting) == AHEAD:
                first, block = waiting.popleft()
                yield first, block.result()
        for first, block in waiting:
            yield first, block.result()

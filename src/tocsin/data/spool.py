"""Rows of many signals, grouped by signal within bounded memory."""

import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.data.numbers import Cells, is_missing

LIMIT = 2_000_000  # numbers
_PIECE = 65_536  # rows written at a time


class SignalIds:
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


@dataclass(frozen=True, eq=False)
class _Segment:
    """Rows in the order of their signals: `codes[i]` owns the rows from `starts[i]` up to `starts[i + 1]`."""

    codes: NDArray[np.int64]
    starts: NDArray[np.int64]
    fetch: Callable[[int, int], NDArray[Any]]

    def rows(self, code: int) -> NDArray[Any]:
        place = int(np.searchsorted(self.codes, code))
        if place == len(self.codes) or self.codes[place] != code:
            return self.fetch(0, 0)
        return self.fetch(int(self.starts[place]), int(self.starts[place + 1]))


class Spool:
    """Collects rows and returns them signal by signal, each in order of arrival.

    A row has a code (the number of its signal), a stored time (none if `time_dtype` is None), a line and `features`
    values. At most `limit` numbers (and at least one added chunk) stay in memory. Then they go to a temporary file,
    which is removed by `close` or with the spool itself.
    """

    def __init__(self, features: int, time_dtype: type | None, limit: int = LIMIT) -> None:
        self._limit = checks.integer("limit", limit, least=1)
        fields: list[Any] = [("line", np.int64), ("values", np.float64, (features,))]
        self._dtype = np.dtype(fields if time_dtype is None else [("time", time_dtype), *fields])
        self._features = features
        self._waiting: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        self._held = 0
        self._segments: list[_Segment] = []
        self._file: IO[bytes] | None = None
        self._written = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._close: Callable[[], Any] = _nothing

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each signal, by code."""
        return self._counts

    def add(
        self,
        codes: NDArray[np.int64],
        times: NDArray[Any] | None,
        lines: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        rows = np.empty(len(codes), dtype=self._dtype)
        if times is not None:
            rows["time"] = times
        rows["line"] = lines
        rows["values"] = values
        counts = np.bincount(codes, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self._waiting.append((codes, rows))
        self._held += len(codes) * self._features
        if self._held >= self._limit:
            self._write_out()

    def rows(self, code: int) -> NDArray[Any]:
        """All rows of one signal, as records with the fields `time` (if any), `line` and `values`."""
        if self._waiting:
            self._segments.append(self._gather())
        parts = [segment.rows(code) for segment in self._segments]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=self._dtype), *parts])

    def close(self) -> None:
        """Release all rows and the temporary file."""
        self._waiting.clear()
        self._segments.clear()
        self._close()

    def _gather(self) -> _Segment:
        """The pending rows as one segment in memory."""
        codes = np.concatenate([part for part, _ in self._waiting])
        rows = np.concatenate([part for _, part in self._waiting])
        self._waiting.clear()
        self._held = 0
        fetch: Callable[[int, int], NDArray[Any]] = partial(_slice, rows)
        if np.any(codes[1:] < codes[:-1]):
            order = np.argsort(codes, kind="stable")
            codes = codes[order]
            fetch = partial(_pick, rows, order)
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        return _Segment(codes[starts], np.append(starts, len(codes)), fetch)

    def _write_out(self) -> None:
        segment = self._gather()
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tocsin-")  # noqa: SIM115
            self._close = weakref.finalize(self, self._file.close)
        file, offset = self._file, self._written
        count = int(segment.starts[-1])
        file.seek(offset)
        for first in range(0, count, _PIECE):
            file.write(segment.fetch(first, min(first + _PIECE, count)).tobytes())
        self._written += count * self._dtype.itemsize
        self._segments.append(_Segment(segment.codes, segment.starts, partial(_read, file, offset, self._dtype)))


def _slice(rows: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Rows in memory that arrived in the order of their signals."""
    return rows[first:last]


def _pick(rows: NDArray[Any], order: NDArray[np.intp], first: int, last: int) -> NDArray[Any]:
    """Rows in memory in order of arrival; only requested rows are copied."""
    return rows[order[first:last]]


def _read(file: IO[bytes], offset: int, dtype: np.dtype[Any], first: int, last: int) -> NDArray[Any]:
    """Rows of a segment in a file."""
    file.seek(offset + first * dtype.itemsize)
    return np.frombuffer(file.read((last - first) * dtype.itemsize), dtype=dtype)


def _nothing() -> None:
    """A placeholder to close while there is no file."""

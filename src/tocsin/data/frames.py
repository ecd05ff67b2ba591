"""Frames into signals, and results back into the caller's kind of frame (pandas, polars, pyarrow, ...)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tocsin.data.blocks import NOTHING, SAMPLE, Block, Expected, rows_per_block
from tocsin.data.cells import Cells
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.signals import Signals, assemble
from tocsin.data.spool import LIMIT
from tocsin.data.timeline import LONGEST_GAP
from tocsin.data.wishes import Wishes


def signals_from_frame(
    frame: Any,
    *,
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    separate: bool = False,
    interval: Any = None,
    time_format: str | None = None,
    longest_gap: int = LONGEST_GAP,
    limit: int = LIMIT,
    name: str = "signal",
) -> Signals:
    """The signals of any eager frame that narwhals takes; the same as `read_signals` gives for the same content.

    A pandas frame whose index holds times and which has no other time column is read with its index as the time.
    Rows are counted from 1.
    """
    wishes = Wishes(
        time=time,
        values=values,
        id=id,
        separate=separate,
        interval=interval,
        time_format=time_format,
        longest_gap=longest_gap,
        limit=limit,
    )
    return assemble(_FrameReader(_eager(frame)), wishes, name, ProblemLog())


def frame_like(frame: Any, columns: Mapping[str, ArrayLike]) -> Any:
    """A new frame with these columns, of the same kind as `frame`."""
    import narwhals as nw

    plain = {name: _plain(column) for name, column in columns.items()}
    return nw.to_native(nw.from_dict(plain, backend=_eager(frame).implementation))


def _eager(frame: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TypeError(
            f"frame must be an eager frame (pandas, polars, pyarrow or another that narwhals takes), got {type(frame)}"
        ) from None


def _plain(column: ArrayLike) -> Any:
    array = np.asarray(column)
    return array.tolist() if array.dtype.kind in "OU" else array


class _FrameReader:
    label = "the frame"
    unit = "row"
    notes: Sequence[str] = ()

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        self._series = {str(name): frame[name] for name in frame.columns}
        index = nw.maybe_get_index(frame)
        if index is not None and str(index.dtype).startswith("datetime64"):
            called = str(index.name or "time")
            if called not in self._series:
                self._series = {called: nw.from_native(index.to_series(), series_only=True), **self._series}
        if not self._series:
            raise DataError("the frame has no columns")
        self.names: Sequence[str] = list(self._series)

    def sample(self) -> Mapping[str, Cells]:
        return {name: _cells(series.head(SAMPLE)) for name, series in self._series.items()}

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[Block]:
        count = len(next(iter(self._series.values())))
        size = rows_per_block(len(columns))
        for first in range(0, count, size):
            last = min(first + size, count)
            yield Block(
                np.arange(first + 1, last + 1), {name: _cells(self._series[name][first:last]) for name in columns}
            )


def _cells(series: Any) -> Cells:
    """Numbers and moments as arrays (NaN and NaT for null), all else as a list (None for null)."""
    import narwhals as nw

    kind = series.dtype
    if kind.is_integer() and not series.is_null().any():
        return np.asarray(series.to_numpy())
    if kind.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if isinstance(kind, nw.Datetime):
        if kind.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(series.to_numpy())
    missing = series.is_null().to_list()
    return [None if null else _cell(cell) for cell, null in zip(series.to_list(), missing, strict=True)]


def _cell(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date) and not isinstance(cell, datetime) else cell

"""Reads signals from frames, and returns results as the caller's kind of frame (pandas, polars, pyarrow, ...)."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from tocsin.data.blocks import NOTHING, SAMPLE, Expected, RowBlock, rows_per_block
from tocsin.data.cells import Cells
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.signals import Signals, assemble
from tocsin.data.spool import LIMIT
from tocsin.data.timeline import LONGEST_GAP
from tocsin.data.wishes import Wishes

VALUE = "value"  # the name of an unnamed series


def signals_from_frame(
    frame: Any,
    *,
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    ignore: str | Iterable[str] = (),
    separate: bool = False,
    interval: Any = None,
    every: Any = None,
    aggregate: str = "mean",
    time_format: str | None = None,
    longest_gap: int = LONGEST_GAP,
    limit: int = LIMIT,
    name: str = "signal",
) -> Signals:
    """The signals of any eager frame that narwhals supports, as `read_signals` gives them for the same content.

    A series counts as a frame with one column. If a pandas index holds times and there is no other time column, the
    index is the time. Rows are counted from 1.
    """
    wishes = Wishes(
        time=time,
        values=values,
        id=id,
        ignore=ignore,
        separate=separate,
        interval=interval,
        every=every,
        aggregate=aggregate,
        time_format=time_format,
        longest_gap=longest_gap,
        limit=limit,
    )
    return assemble(_FrameReader(eager_frame(frame)), wishes, name, ProblemLog())


def frame_like(frame: Any, columns: Mapping[str, Any]) -> Any:
    """A new frame with these columns, of the same kind as `frame`."""
    import narwhals as nw

    plain = {name: _plain(column) for name, column in columns.items()}
    return nw.to_native(nw.from_dict(plain, backend=eager_frame(frame).implementation))


def is_frame(data: Any) -> bool:
    """Whether it is a frame or series, eager or not, of a library that narwhals supports; arrays and lists are not."""
    if type(data).__module__.partition(".")[0] in ("builtins", "numpy"):  # the usual case, without narwhals
        return False
    import narwhals as nw

    known = nw.from_native(_from_arrow(data), pass_through=True, allow_series=True)
    return isinstance(known, (nw.DataFrame, nw.LazyFrame, nw.Series))


def eager_frame(data: Any) -> Any:
    """A frame, or a series as a frame with one column, in narwhals; TypeError for anything else."""
    import narwhals as nw

    try:
        known = nw.from_native(_from_arrow(data), eager_only=True, allow_series=True)
    except TypeError:
        raise TypeError(
            "frame must be an eager frame or series (pandas, polars, pyarrow or another that narwhals supports), "
            f"got {type(data)}"
        ) from None
    return known.alias(str(known.name or VALUE)).to_frame() if isinstance(known, nw.Series) else known


def time_index(frame: Any) -> tuple[str, Any] | None:
    """The index of a pandas frame and its name, if it holds times and no column has that name."""
    import narwhals as nw

    index = nw.maybe_get_index(frame)
    if index is None or not str(index.dtype).startswith("datetime64"):
        return None
    called = str(index.name or "time")
    return None if called in map(str, frame.columns) else (called, index)


def _from_arrow(data: Any) -> Any:
    """Arrow arrays and batches in a form that narwhals supports."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is None:
        return data
    if isinstance(data, arrow.Array):
        return arrow.chunked_array([data])
    return arrow.Table.from_batches([data]) if isinstance(data, arrow.RecordBatch) else data


def _plain(column: Any) -> Any:
    array = np.asarray(column)
    if array.dtype.kind not in "OU":
        return array
    return array.tolist() if array.size else array.astype(str)  # an empty list has no type


class _FrameReader:
    label = "the frame"
    unit = "row"
    notes: Sequence[str] = ()

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        self._series = {str(name): frame[name] for name in frame.columns}
        index = time_index(frame)
        if index is not None:
            name, times = index
            self._series = {name: nw.from_native(times.to_series(), series_only=True), **self._series}
        if not self._series:
            raise DataError("the frame has no columns")
        self.names: Sequence[str] = list(self._series)

    def sample(self) -> Mapping[str, Cells]:
        return {name: _cells(series.head(SAMPLE)) for name, series in self._series.items()}

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
        count = len(next(iter(self._series.values())))
        size = rows_per_block(len(columns))
        for first in range(0, count, size):
            last = min(first + size, count)
            yield RowBlock(
                np.arange(first + 1, last + 1), {name: _cells(self._series[name][first:last]) for name in columns}
            )


def _cells(series: Any) -> Cells:
    """Numbers and times as arrays (NaN and NaT for null), anything else as a list (None for null)."""
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

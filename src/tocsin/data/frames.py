"""Reads signals from frames, and returns results as the caller's kind of frame (pandas, polars, pyarrow, ...)."""

import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin.data.numbers import Cells
from tocsin.data.options import ReadOptions
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.reading import Signals, assemble
from tocsin.data.spool import LIMIT
from tocsin.data.tables import ANYTHING, SAMPLE, ExpectedTypes, RowBlock, rows_per_block
from tocsin.data.timeline import LONGEST_GAP

VALUE = "value"  # the name of an unnamed series

# If the data were arrays, result frames use the first of these libraries that is installed.
LIBRARIES = ("pandas", "polars", "pyarrow")


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
    options = ReadOptions(
        time=time, values=values, id=id, ignore=ignore, separate=separate, interval=interval, every=every,
        aggregate=aggregate, time_format=time_format, longest_gap=longest_gap, limit=limit,
    )  # fmt: skip
    return assemble(_FrameReader(eager_frame(frame)), options, name, ProblemLog())


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

    def blocks(self, columns: Sequence[str], expected: ExpectedTypes = ANYTHING) -> Iterator[RowBlock]:
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


@dataclass(frozen=True, eq=False)
class Origin:
    """The caller's kind of frame, the time column with its type and time zone, and the index; empty for arrays.

    `indexed` means that the times were in the index, `regrouped` that rows no longer match those of the frame.
    """

    kind: Any = None
    time: str | None = None
    dtype: Any = None
    index: Any = None
    indexed: bool = False
    regrouped: bool = False

    @classmethod
    def of(cls, data: Any, time: str | None, *, regrouped: bool = False) -> Self:
        """The origin for a frame whose times are in the column `time`."""
        frame = eager_frame(data)
        index = time_index(frame)
        if index is not None and index[0] == time:
            dtype = eager_frame(index[1].to_series()[:0]).schema.dtypes()[0]
        else:
            index, dtype = None, None if time is None else frame.schema[time]
        own = frame.to_native().index if frame.implementation.is_pandas_like() else None
        return cls(
            kind=frame[:0].to_native(),
            time=time,
            dtype=dtype,
            index=own,
            indexed=index is not None,
            regrouped=regrouped,
        )

    @property
    def zone(self) -> str | None:
        """The time zone of the caller's times."""
        return getattr(self.dtype, "time_zone", None)

    def frame(self, columns: Mapping[str, Any], lines: NDArray[np.int64] | None = None) -> Any:
        """Verdicts as a frame of the caller's kind, with the caller's name for the column `time`.

        `lines` are their row numbers in the caller's frame, counted from 1. If these are all the rows in order, the
        result has the caller's index. Times that were in the index are in the index again.
        """
        time = "time" if self.time is None or self.time in columns else self.time
        named = {(time if name == "time" else name): column for name, column in columns.items()}
        if self.index is None:
            return self.table(named, {time})
        whole = lines is not None and np.array_equal(lines, np.arange(1, len(self.index) + 1)) and not self.regrouped
        if whole and (self.indexed or self.time is None):
            del named[time]  # it is in the index
        result = self.table(named, {time})
        if whole:
            result.index = self.index
        elif self.indexed:
            result = result.set_index(time).rename_axis(index=self.index.name)
        return result

    def table(self, columns: Mapping[str, Any], times: Collection[str]) -> Any:
        """Columns as a frame of the caller's kind; those in `times` get the type of the caller's times."""
        frame = eager_frame(frame_like(self._some_frame(), columns))
        return frame.with_columns(self._moments(frame[name]) for name in times if name in columns).to_native()

    def _some_frame(self) -> Any:
        if self.kind is not None:
            return self.kind
        found: Any = next((library for library in LIBRARIES if importlib.util.find_spec(library)), None)
        if found is None:
            raise ImportError("a frame needs a dataframe library: pip install pandas, polars or pyarrow")
        import narwhals as nw

        return nw.from_dict({"value": [0.0]}, backend=found).to_native()

    def _moments(self, series: Any) -> Any:
        """Times in the caller's type and time zone, if it can hold them."""
        import narwhals as nw

        own, kind = series.dtype, self.dtype
        if kind is None or not isinstance(own, nw.Datetime):
            whole = kind is not None and kind.is_integer() and own.is_float() and (series == series.round()).all()
            return series.cast(kind) if whole else series
        if isinstance(kind, nw.Datetime):
            if self.zone is not None:
                series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone)
            return series.cast(kind)
        if kind == nw.Date:
            days = series.cast(nw.Date)
            return days if (days.cast(own) == series).all() else series
        return series

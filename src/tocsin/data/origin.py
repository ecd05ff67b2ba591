"""What results need to know about their data to be returned in the same form."""

import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin.data.frames import eager_frame, frame_like, time_index

# If the data were arrays, result frames use the first of these libraries that is installed.
LIBRARIES = ("pandas", "polars", "pyarrow")


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

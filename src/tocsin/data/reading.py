"""Signals from files and frames (pandas, polars, pyarrow, ...), and results as the caller's kind of frame."""

import importlib.util
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.assembly import LIMIT, Assembly, ReadOptions
from tocsin.data.delimited import DelimitedReader
from tocsin.data.formats import JsonLinesReader
from tocsin.data.guarded import GuardedReader, guarded_reader
from tocsin.data.numbers import PLAIN, Cells, NumberFormat, detect_number_format, is_missing
from tocsin.data.problems import DataError, Problem, ProblemLog, check_losses, merge_problems, no_rows_error
from tocsin.data.sources import ENCODING_NAMES, Source, TextChunks, open_source
from tocsin.data.tables import (
    ANYTHING,
    SAMPLE,
    BlockReader,
    Columns,
    ExpectedTypes,
    RowBlock,
    choose_columns,
    is_time_of_day,
    rows_per_block,
    shortened,
    time_cells,
)
from tocsin.data.timeline import LONGEST_GAP, Signal
from tocsin.data.times import TimeParser, choose_time_parser, has_zone
from tocsin.data.zones import Zone


class Signals:
    """The signals of one source. Their number is known; each is assembled on demand.

    Iteration follows the order of first appearance and may be repeated. `rows` is the number of observations read,
    before duplicates are dropped and gaps filled. `problems` are those that belong to no single signal. `columns` are
    the columns used, and `summary` says in one line how the source was read. Closing (or leaving a `with` block)
    removes the temporary file, if there is one.
    """

    def __init__(self, assembly: Assembly, name: str) -> None:
        self._assembly = assembly
        self._name = name
        self._closed = False
        self._codes = np.flatnonzero(assembly.spool.counts)
        self.rows = int(assembly.spool.counts.sum())
        self.columns = assembly.columns
        self.summary = assembly.summary
        self.summary.signals = len(self._codes)
        self.problems: tuple[Problem, ...] = assembly.general_problems()

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[Signal]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Signal:
        """Assemble the signal with this number (from 0). DataError if it cannot be; the others may be fine."""
        if self._closed:
            raise ValueError("these signals are closed; read them again")
        return self._assembly.signal(int(self._codes[number]), self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the data; signals already returned stay valid."""
        self._closed = True
        self._assembly.spool.close()


def assemble(reader: BlockReader, options: ReadOptions, name: str, log: ProblemLog) -> Signals:
    """Read everything from a reader."""
    sample = reader.sample()
    if not any(len(cells) for cells in sample.values()):
        raise no_rows_error(reader.label, log)
    try:
        number_format = _number_format(sample, options)
    except DataError as error:
        raise DataError(Message(f"{reader.label}: ", error)) from error
    columns = choose_columns(
        reader.label, sample, log, time=options.time, values=options.values, id=options.id, ignore=options.ignore,
        number_format=number_format, guess=options.guess,
    )  # fmt: skip
    parser = zone = None
    if columns.time is not None:
        cells = time_cells(sample, columns, number_format)
        parser = choose_time_parser(cells, options.time_format, options.day_first)
        if parser is None:
            first = next((shortened(cell) for cell in cells if not is_missing(cell)), "nothing")
            raise DataError(
                Message(
                    f"{reader.label}: the time column {columns.time!r} holds no readable times, but {first}; "
                    "accepted: ISO 8601, dates, numbers, or the form in ",
                    Argument("time_format"),
                )
            )
        known = parser.of_moments or columns.time in reader.zoned or any(map(has_zone, cells))
        zone = None if options.zone is None or known else Zone(options.zone)
    elif options.every is not None:
        needed = " needs times, but no column holds any; set "
        raise DataError(
            Message(f"{reader.label}: ", Argument("every"), needed, Argument("time"), " to the time column")
        )
    assembly = Assembly(
        reader=reader, columns=columns, parser=parser, zone=zone, options=options, number_format=number_format, log=log
    )
    try:
        for block in reader.blocks(columns.used, _expected(columns, parser, number_format)):
            assembly.add(block)
        if parser is not None:
            parser.conclude()
        problems = merge_problems(assembly.all_problems())
        if assembly.numbers == 0:
            names = ", ".join(map(repr, columns.values))
            raise DataError(
                Message(f"no observation could be read from {names}. Found: ", Message.joined(". ", problems))
            )
        check_losses(assembly.rows, problems, options.most_lost, assembly.damaged_rows)
    except DataError as error:
        assembly.spool.close()
        named = str(error).startswith(reader.label)
        raise DataError(Message("" if named else f"{reader.label}: ", error)) from error
    return Signals(assembly, name)


def _expected(columns: Columns, parser: TimeParser | None, number_format: NumberFormat) -> ExpectedTypes:
    """What a reader may expect of most cells."""
    iso = parser is not None and parser.iso and columns.time_of_day is None
    return ExpectedTypes(frozenset(columns.values), number_format, columns.time if iso else None)


def _number_format(sample: Mapping[str, Cells], options: ReadOptions) -> NumberFormat:
    """The number format. Only text shows it, and times do not count."""
    columns = [
        cells
        for name, cells in sample.items()
        if name not in (options.time, options.id) and not isinstance(cells, np.ndarray) and not is_time_of_day(cells)
    ]
    return detect_number_format(columns, options.decimal) if options.guess or options.decimal else PLAIN


def read_signals(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    ignore: str | Iterable[str] = (),
    separate: bool = False,
    interval: Any = None,
    every: Any = None,
    aggregate: str = "mean",
    time_format: str | None = None,
    day_first: bool | None = None,
    zone: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    missing: str | float | Iterable[str | float] | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    skip: int = 0,
    sheet: str | None = None,
    longest_gap: int = LONGEST_GAP,
    most_lost: float = 1.0,
    limit: int = LIMIT,
    name: str | None = None,
) -> Signals:
    """Read the signals of a CSV, TSV, JSON lines (gzipped or not), Parquet or Excel file, or a folder of Parquet files.

    Parameters
    ----------
    source : a path, "-" for standard input, or an open file. A folder is read as one table.
    format : "csv", "tsv", "jsonl", "parquet" or "excel"; by default by the suffix, else by the first bytes.
    time, values, id : column names. By default the time column is detected by its name or its cells, the values are
        the other numeric columns except labels and counters, and there is no id. With an id column, each id is a
        signal; without one, the file is one signal. A separate column of times of day is joined with the column of
        dates.
    ignore : names of columns to ignore.
    separate : treat each value column as a separate signal, not as a feature.
    interval : the sampling interval ("5min", a timedelta, a number of seconds; for times that are numbers, a number).
        By default it is inferred for each signal.
    every, aggregate : aggregate observations over intervals of, say, "1min" by their "mean", "last", "max", "sum" or
        "count". `every` is then the interval.
    time_format : the format of times, as for `datetime.strptime`.
    day_first : whether the day comes before the month in times such as 01/02/2024. By default detected.
    zone : the time zone of times that are written without one ("Europe/Berlin"): they are converted to UTC. Where
        clocks are set back, an hour comes twice, in the order of the file. By default such times are left as they are.
    delimiter, decimal, header, encoding : the format of a text file. By default all are detected: the delimiter (tab,
        semicolon, bar or comma), the decimal point or comma, whether there is a header, and UTF-8, UTF-16 or Latin-1.
    missing : numbers and words that mark a missing measurement, besides the usual ones; "none" detects no numbers.
    skip : how many lines of a text file (or rows of a sheet) to skip at its start. By default a preamble is detected.
    sheet : the sheet of an Excel workbook; by default the first that is not empty.
    longest_gap : how many missing observations to insert for one gap, at most.
    most_lost : the share of rows that may be lost before reading fails.
    limit : how many numbers to hold in memory before using a temporary file.
    name : the signal's name if the file is one signal; by default the file's name without suffixes.

    Returns
    -------
    Signals, which iterates over `Signal`s. Problems with single cells, rows and times are in their `problems`.
    DataError is raised only if the file cannot be read at all.
    """
    options = ReadOptions(
        time=time, values=values, id=id, ignore=ignore, separate=separate, interval=interval, every=every,
        aggregate=aggregate, time_format=time_format, day_first=day_first, zone=zone, decimal=decimal, missing=missing,
        longest_gap=longest_gap, most_lost=most_lost, limit=limit, guess=True,
    )  # fmt: skip
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ArgumentError("delimiter", f"must be one character, such as ',' or ';', got {delimiter!r}")
    log = ProblemLog()
    with ExitStack() as resources:
        reader: BlockReader
        if isinstance(source, (str, PathLike)) and os.path.isdir(source) and format in (None, "parquet"):
            folder = os.fspath(source)
            reader = GuardedReader(folder, folder, "parquet", resources)
            return assemble(reader, options, name or Path(folder).resolve().name, log)
        opened = resources.enter_context(open_source(source, format))
        if sheet is not None and opened.format != "excel":
            raise ArgumentError("sheet", f"must be given only for Excel workbooks, got {sheet!r} for {opened.label}")
        if opened.format == "parquet":
            reader = guarded_reader(source, opened, resources)
        elif opened.format == "excel":
            given = (sheet, checks.integer("skip", skip, least=0), header, time_format)
            reader = guarded_reader(source, opened, resources, *given)
        else:
            chunks = TextChunks(opened, encoding, log, skip)
            if opened.format == "jsonl":
                reader = JsonLinesReader(chunks, opened.label, log)
            else:
                separator = "\t" if opened.format == "tsv" and delimiter is None else delimiter
                reader = DelimitedReader(
                    chunks,
                    opened.label,
                    log,
                    delimiter=separator,
                    header=header,
                    time_format=time_format,
                    decimal=decimal,
                )
            if chunks.encoding in ENCODING_NAMES:
                reader.notes = [ENCODING_NAMES[chunks.encoding], *reader.notes]
        return assemble(reader, options, name or opened.name, log)


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
    zone: str | None = None,
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
        aggregate=aggregate, time_format=time_format, zone=zone, longest_gap=longest_gap, limit=limit,
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
        self.zoned: Collection[str] = [name for name, series in self._series.items() if _zone_of(series.dtype)]

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


def _zone_of(dtype: Any) -> str | None:
    zone: str | None = getattr(dtype, "time_zone", None)
    return zone


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

    `indexed` means that the times were in the index, `regrouped` that rows no longer match those of the frame. `local`
    is the time zone of times that have none in the frame.
    """

    kind: Any = None
    time: str | None = None
    dtype: Any = None
    index: Any = None
    indexed: bool = False
    regrouped: bool = False
    local: str | None = None

    @classmethod
    def of(cls, data: Any, time: str | None, *, regrouped: bool = False, local: str | None = None) -> Self:
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
            local=local,
        )

    @property
    def zone(self) -> str | None:
        """The time zone of the caller's times."""
        return _zone_of(self.dtype) or self.local

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
        if self.zone is not None:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone)
            series = series if _zone_of(kind) else series.dt.replace_time_zone(None)
        if isinstance(kind, nw.Datetime):
            return series.cast(kind)
        if kind == nw.Date:
            days = series.cast(nw.Date)
            return days if (days.cast(own) == series).all() else series
        return series

"""Reading of signals from files."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.assembly import Assembly
from tocsin.data.columns import Columns, choose_columns, is_time_of_day, shortened, time_cells
from tocsin.data.delimited import DelimitedReader
from tocsin.data.formats import ExcelReader, JsonLinesReader, ParquetFolderReader, ParquetReader
from tocsin.data.numbers import PLAIN, Cells, NumberFormat, detect_number_format, is_missing
from tocsin.data.options import ReadOptions
from tocsin.data.problems import DataError, Problem, ProblemLog, check_losses, merge_problems, no_rows_error
from tocsin.data.sources import ENCODING_NAMES, Source, TextChunks, open_source
from tocsin.data.spool import LIMIT
from tocsin.data.tables import BlockReader, ExpectedTypes
from tocsin.data.timeline import LONGEST_GAP, Signal
from tocsin.data.times import TimeParser, choose_time_parser


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
    parser = None
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
    elif options.every is not None:
        needed = " needs times, but no column holds any; set "
        raise DataError(
            Message(f"{reader.label}: ", Argument("every"), needed, Argument("time"), " to the time column")
        )
    assembly = Assembly(
        reader=reader, columns=columns, parser=parser, options=options, number_format=number_format, log=log
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
        aggregate=aggregate, time_format=time_format, day_first=day_first, decimal=decimal, missing=missing,
        longest_gap=longest_gap, most_lost=most_lost, limit=limit, guess=True,
    )  # fmt: skip
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ArgumentError("delimiter", f"must be one character, such as ',' or ';', got {delimiter!r}")
    log = ProblemLog()
    with ExitStack() as resources:
        reader: BlockReader
        if isinstance(source, (str, PathLike)) and os.path.isdir(source) and format in (None, "parquet"):
            folder = os.fspath(source)
            return assemble(ParquetFolderReader(folder), options, name or Path(folder).resolve().name, log)
        opened = resources.enter_context(open_source(source, format))
        if sheet is not None and opened.format != "excel":
            raise ArgumentError("sheet", f"must be given only for Excel workbooks, got {sheet!r} for {opened.label}")
        if opened.format == "parquet":
            reader = ParquetReader(opened, resources)
        elif opened.format == "excel":
            reader = ExcelReader(opened, sheet, checks.integer("skip", skip, least=0), header, time_format)
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

"""Reading of signals from files."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin import checks
from tocsin.data.delimited import DelimitedReader
from tocsin.data.encodings import NAMES
from tocsin.data.excel import ExcelReader
from tocsin.data.json_lines import JsonLinesReader
from tocsin.data.parquet import ParquetFolderReader, ParquetReader
from tocsin.data.problems import ProblemLog
from tocsin.data.signals import Signals, assemble
from tocsin.data.sources import Source, open_source
from tocsin.data.spool import LIMIT
from tocsin.data.text import TextChunks
from tocsin.data.timeline import LONGEST_GAP
from tocsin.data.wishes import Wishes

if TYPE_CHECKING:
    from tocsin.data.blocks import BlockReader


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
        day_first=day_first,
        decimal=decimal,
        missing=missing,
        longest_gap=longest_gap,
        most_lost=most_lost,
        limit=limit,
        guess=True,
    )
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one character, such as ',' or ';', got {delimiter!r}")
    log = ProblemLog()
    with ExitStack() as resources:
        reader: BlockReader
        if isinstance(source, (str, PathLike)) and os.path.isdir(source) and format in (None, "parquet"):
            folder = os.fspath(source)
            return assemble(ParquetFolderReader(folder), wishes, name or Path(folder).resolve().name, log)
        opened = resources.enter_context(open_source(source, format))
        if sheet is not None and opened.format != "excel":
            raise ValueError(f"sheet must be given only for Excel workbooks, got {sheet!r} for {opened.label}")
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
            if chunks.encoding in NAMES:
                reader.notes = [NAMES[chunks.encoding], *reader.notes]
        return assemble(reader, wishes, name or opened.name, log)

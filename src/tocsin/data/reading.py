"""Files into signals."""

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
    format : "csv", "tsv", "jsonl", "parquet" or "excel"; by default what the suffix says, else what the first bytes
        look like.
    time, values, id : names of columns. By default the time is found by its name or its cells, the values are the
        other numeric columns but for labels and counters, and there is no id. With an id, every id is a signal;
        without, the file is one. Times of day in a column of their own belong to the column of dates.
    ignore : names of columns to leave out.
    separate : make every value column a signal of its own, instead of the features of one.
    interval : the sampling interval ("5min", a timedelta, a number of seconds; for times that are numbers, a number).
        By default it is inferred for each signal.
    every, aggregate : put together what there is in every "1min", say: by its "mean", "last", "max", "sum" or "count".
        That is then the interval.
    time_format : how times are written, in the words of `datetime.strptime`.
    day_first : whether the day comes before the month in times such as 01/02/2024. By default they show it.
    delimiter, decimal, header, encoding : how a text file is written. By default all are found out: the delimiter (tab,
        semicolon, bar or comma), the decimal point or comma, whether there is a header, and UTF-8, UTF-16 or Latin-1.
    missing : numbers and words that mean that nothing was measured, besides those that plainly do; "none" to find none.
    skip : how many lines of a text file (or rows of a sheet) to pass over at its start. By default a preamble is found.
    sheet : the sheet of an Excel workbook; by default the first that holds anything.
    longest_gap : how many observations are put in for one gap, at most.
    most_lost : the share of rows that may be lost for whatever reason before it is an error.
    limit : how many numbers are held in memory before they go to a temporary file.
    name : what to call the signal of a file that is one; by default the file's name without suffixes.

    Returns
    -------
    Signals, which iterates over `Signal`s. What is wrong with single cells, rows and times is in their `problems`;
    DataError is raised only if nothing can be made of the file.
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
            raise ValueError(f"sheet must be given for Excel workbooks only, got {sheet!r} for {opened.label}")
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

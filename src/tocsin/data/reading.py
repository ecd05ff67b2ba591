"""Files into signals."""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tocsin.data.assembly import Signals, Wishes, assemble
from tocsin.data.delimited import DelimitedReader
from tocsin.data.json_lines import JsonLinesReader
from tocsin.data.parquet import ParquetReader
from tocsin.data.problems import ProblemLog
from tocsin.data.sources import Source, open_source
from tocsin.data.spool import LIMIT
from tocsin.data.text import TextChunks
from tocsin.data.timeline import LONGEST_GAP

if TYPE_CHECKING:
    from tocsin.data.blocks import Reader


def read_signals(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    separate: bool = False,
    interval: Any = None,
    time_format: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
    encoding: str = "utf-8",
    longest_gap: int = LONGEST_GAP,
    limit: int = LIMIT,
    name: str | None = None,
) -> Signals:
    """Read the signals of a CSV, TSV, JSON lines or Parquet file, gzipped or not.

    Parameters
    ----------
    source : a path, "-" for standard input, or an open file.
    format : "csv", "tsv", "jsonl" or "parquet"; by default what the suffix says, else what the first bytes look like.
    time, values, id : names of columns. By default the time is found by its name or its cells, the values are the
        other numeric columns, and there is no id. With an id, every id is a signal; without, the file is one.
    separate : make every value column a signal of its own, instead of the features of one.
    interval : the sampling interval ("5min", a timedelta, a number of seconds; for times that are numbers, a number).
        By default it is inferred for each signal.
    time_format : how times are written, in the words of `datetime.strptime`.
    delimiter, decimal, header, encoding : how a text file is written. By default the delimiter (tab, semicolon, bar or
        comma) and whether there is a header are found out.
    longest_gap : how many observations are put in for one gap, at most.
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
        separate=separate,
        interval=interval,
        time_format=time_format,
        decimal=decimal,
        longest_gap=longest_gap,
        limit=limit,
    )
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one character, such as ',' or ';', got {delimiter!r}")
    log = ProblemLog()
    with ExitStack() as resources:
        opened = resources.enter_context(open_source(source, format))
        reader: Reader
        if opened.format == "parquet":
            reader = ParquetReader(opened, resources)
        else:
            chunks = TextChunks(opened, encoding, log)
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
        return assemble(reader, wishes, name or opened.name, log)

"""Lines of a live stream, with one observation each."""

import csv
import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.checks import Argument, Message
from tocsin.data.assembly import ReadSummary, id_text
from tocsin.data.formats import parse_object
from tocsin.data.numbers import (
    MISSING,
    PLAIN,
    NumberFormat,
    NumberFormatDetector,
    read_numbers,
    split_missing,
    without_words,
)
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.tables import (
    Columns,
    as_names,
    choose_columns,
    column_names,
    find_table,
    find_time,
    find_time_of_day,
    is_label,
    is_units,
    looks_like_data,
    shortened,
    time_cells,
)
from tocsin.data.timeline import ParsedObservation
from tocsin.data.times import TimeParser, choose_time_parser, read_time
from tocsin.data.zones import Zone

LINE_FORMATS = ("auto", "csv", "jsonl", "plain")

_SEPARATOR = re.compile(r"\s*[,;|]\s*|\s+")
_NO_COMMA = re.compile(r"\s*[;|]\s*|\s+")  # if the comma is the decimal point
_ZONE = re.compile(r":\d\d(?:[.,]\d+)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)\s*$")
_EVIDENT = 20  # observations used to detect the number format, besides those that do not fit it
_ID = "id"  # the default id column


class LineError(DataError):
    """A line that is not an observation. The message gives the line, its content and what is accepted."""


def _zone_of(cell: Any) -> str | None:
    """The time zone that a date was written with."""
    found = _ZONE.search(cell) if isinstance(cell, str) else None
    return None if found is None else found[1]


def _written(ahead: np.timedelta64) -> str:
    """A time zone by how far it is ahead of UTC, such as +02:00."""
    minutes = int(ahead // np.timedelta64(1, "m"))
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"


class LineParser:
    """Parses the lines of a stream into observations.

    The first observation determines the columns and the time format. A later line that does not fit raises LineError
    and changes nothing, so the caller can report it and continue.

    Parameters
    ----------
    format : "plain" (numbers separated by blanks or commas), "csv" (a header line, or none if the first line holds
        only numbers and times), "jsonl" (objects), or "auto": decide by the first line.
    time, values, id : column names, as for `read_signals`. By default a column named "id" is the id, and every
        column with a number or nothing in the first observation is a feature, unless it is a label.
    ignore : names of columns to ignore.
    time_format : the format of times, as for `datetime.strptime`.
    day_first : whether the day comes before the month in times such as 01/02/2024. If not given, the first line must
        show it.
    zone : the time zone of times that are written without one. Where clocks are set back, an hour comes twice: a time
        is the first that is later than the last one of its signal.
    delimiter : the separator of CSV fields; by default detected from the first line.
    decimal : the decimal point, "." or ","; by default detected from cells that can be read in only one way.
    missing : numbers and words that mark a missing measurement. Unlike in a file, none is detected.
    skip : how many lines to skip at the start.

    Examples
    --------
    >>> parser = LineParser()
    >>> parser.parse('{"id": "pump", "time": 0, "pressure": 2.5, "flow": null}')
    ParsedObservation(id='pump', time=0.0, values=(2.5, nan), zone=None)
    >>> parser.features
    ('pressure', 'flow')
    """

    def __init__(
        self,
        format: str = "auto",  # noqa: A002
        *,
        time: str | None = None,
        values: str | Iterable[str] | None = None,
        id: str | None = None,  # noqa: A002
        ignore: str | Iterable[str] = (),
        time_format: str | None = None,
        day_first: bool | None = None,
        zone: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        missing: str | float | Iterable[str | float] | None = None,
        skip: int = 0,
    ) -> None:
        self._format = checks.choice("format", format, LINE_FORMATS)
        self._time = time
        self._values = as_names(values)
        self._id = id
        self._ignored = as_names(ignore) or ()
        self._time_format = time_format
        self._day_first = day_first
        self._zone = None if zone is None else Zone(zone)
        self._last: dict[str | None, Any] = {}  # the time of each signal's last line, with a zone
        self._delimiter = delimiter
        if decimal is not None:
            checks.choice("decimal", decimal, (".", ","))
        self._decimal = decimal
        self._format_detector = NumberFormatDetector(decimal)
        self._number_format = PLAIN if decimal is None else NumberFormat(decimal)
        self._seen = 0  # observations used as evidence
        self._missing, self._words, _ = split_missing(missing)
        self._skip = checks.integer("skip", skip, least=0)
        self._names: list[str] | None = None
        self._headed = self._format in ("auto", "csv")  # unless the first line shows that there is no header
        self._columns: Columns | None = None
        self._known: frozenset[str] = frozenset()
        self._time_parser: TimeParser | None = None
        self.line = 0  # how many lines were parsed

    @property
    def features(self) -> tuple[str, ...] | None:
        """The feature names; None before the first observation."""
        return None if self._columns is None else self._columns.values

    @property
    def summary(self) -> ReadSummary | None:
        """How the lines are read; None before the first observation."""
        if self._columns is None:
            return None
        columns, number_format = self._columns, self._number_format
        return ReadSummary(columns, self._time_parser, number_format=number_format, excluded=columns.excluded)

    def parse(self, text: str) -> ParsedObservation | None:
        """The observation on the next line; None for a blank line, a comment or the header."""
        self.line += 1
        text = text.removeprefix("\ufeff").strip()
        if not text or text.startswith("#") or self.line <= self._skip:
            return None
        try:
            if self._format == "auto":
                self._format = self._guessed(text)
            row = self._row(text)
            if row is None:
                return None
            if self._seen < _EVIDENT:
                self._seen += 1
                # The first line must show how to read it. Ambiguous later lines are read like the first.
                with suppress(DataError) if self._columns else nullcontext():
                    self._learn_number_format(row.values())
            columns = self._columns or self._choose(row)
            id_ = self._id_of(row, columns)
            time, zone = self._time_of(row, columns, self._last.get(id_))
            observation = ParsedObservation(id_, time, self._values_of(row, columns), zone)
        except (csv.Error, ValueError) as error:
            raise LineError(Message(f"line {self.line}: ", error)) from None
        if self._columns is None:
            self._columns, self._known = columns, frozenset(row)
        if self._zone is not None:
            self._last[id_] = time
        return observation

    def _row(self, text: str) -> Mapping[str, Any] | None:
        if self._format == "jsonl":
            return parse_object(text)
        if self._format == "plain":
            cells = self._separator.split(text)
        else:
            if self._delimiter is None:
                self._delimiter = find_table([text])[0]
            cells = next(csv.reader([text], delimiter=self._delimiter, skipinitialspace=True))
        if self._names is None:
            header = self._format == "csv" and not looks_like_data(cells, self._time_format)
            self._names = column_names(cells if header else [""] * len(cells))
            if self._format == "plain" and len(cells) == 1:
                self._names = ["value"]
            if header:
                return None
            self._headed = False
        if self._headed and self._columns is None and is_units(cells):
            return None
        if len(cells) != len(self._names):
            raise ValueError(f"{len(cells)} fields, but the first line had {len(self._names)}: {shortened(text)}")
        return dict(zip(self._names, cells, strict=True))

    def _choose(self, row: Mapping[str, Any]) -> Columns:
        sample = {name: [cell] for name, cell in row.items()}
        id_ = self._id or (_ID if _ID in row and _ID not in (self._time, *(self._values or ())) else None)
        taken = {id_, *(self._values or ()), *self._ignored}
        time = self._time or find_time(sample, taken)
        time_of_day = None if time is None else find_time_of_day(sample, time, taken)
        values = self._values
        labels: tuple[str, ...] = ()
        if values is None:
            others = [name for name in row if name not in (time, time_of_day, *taken)]
            numbers = tuple(name for name in others if self._is_value(row[name]))
            if not numbers:
                raise ValueError(f"expected at least one number, got {shortened(dict(row))}")
            labels = tuple(name for name in numbers if is_label(name, [row[name]]))
            values = tuple(name for name in numbers if name not in labels)
            if not values:
                values, labels = numbers, ()
        chosen = choose_columns(
            "the line", sample, ProblemLog(), time=time, values=values, id=id_, ignore=self._ignored
        )
        return replace(chosen, excluded=labels)

    def _id_of(self, row: Mapping[str, Any], columns: Columns) -> str | None:
        if columns.id is None:
            return None
        text = id_text(row.get(columns.id))
        if not text:
            raise ValueError(f"column {columns.id}: expected an id, got {shortened(row.get(columns.id))}")
        return text

    def _time_of(self, row: Mapping[str, Any], columns: Columns, last: Any) -> tuple[Any, str | None]:
        """The time of a line, and the time zone that it is shown in."""
        if columns.time is None:
            return None, None
        names = [name for name in (columns.time, columns.time_of_day) if name is not None]
        (cell,) = time_cells({name: [row.get(name)] for name in names}, columns, self._number_format)
        parser = self._time_parser or choose_time_parser([cell], self._time_format, self._day_first)
        found = None if parser is None else read_time(parser, [cell], self._zone, last)
        if parser is not None and found is not None:
            self._time_parser = parser
            moment, ahead = found
            return moment, _zone_of(cell) if ahead is None else _written(ahead)
        accepted = f"one of the form {self._time_format!r}" if self._time_format else "ISO 8601, a date or a number"
        problem = f"column {columns.time}: {shortened(cell)} is not a time; accepted: {accepted}, as on the first line"
        hint = () if self._time_format else (", or the form in ", Argument("time_format"))
        raise ValueError(Message(problem, *hint))

    def _values_of(self, row: Mapping[str, Any], columns: Columns) -> tuple[float, ...]:
        absent = [name for name in columns.values if name not in row]
        if absent:
            raise ValueError(f"no {', '.join(absent)}; every line must have {', '.join(columns.values)}")
        if self._columns is not None and self._values is None and not row.keys() <= self._known:
            added = [name for name in row if name not in self._known and self._is_value(row[name])]
            if added:
                raise ValueError(
                    f"{', '.join(added)} besides {', '.join(columns.values)}, the only fields on the first line"
                )
        cells = without_words([row[name] for name in columns.values], self._words)
        numbers, why = read_numbers(cells, self._number_format)
        if why is not None and np.any(why > MISSING) and self._learn_number_format(cells):
            numbers, why = read_numbers(cells, self._number_format)
        if self._missing:
            numbers[np.isin(numbers, self._missing)] = np.nan
        for i in np.flatnonzero(why > MISSING).tolist() if why is not None else ():
            raise ValueError(
                Message(
                    f"column {columns.values[i]}: {shortened(cells[i])} is not a finite number; accepted: a number, "
                    "or null, NaN, NA or nothing for a missing one (or a value in ",
                    Argument("missing"),
                    ")",
                )
            )
        return tuple(numbers.tolist())

    def _learn_number_format(self, cells: Iterable[Any]) -> bool:
        """Learn the number format from some cells; true if it changed."""
        for cell in cells:
            self._format_detector.add([cell])
        self._format_detector.fix_decimal()
        found = self._format_detector.conclude()
        if found is None or found == self._number_format:
            return False
        self._number_format = found
        return True

    @property
    def _separator(self) -> re.Pattern[str]:
        return _NO_COMMA if self._decimal == "," else _SEPARATOR

    def _guessed(self, text: str) -> str:
        if text.startswith("{"):
            return "jsonl"
        return "plain" if all(map(self._is_value, self._separator.split(text))) else "csv"

    def _is_value(self, cell: Any) -> bool:
        why = read_numbers(without_words([cell], self._words), self._number_format)[1]
        return why is None or bool(why[0] <= MISSING)

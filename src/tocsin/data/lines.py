"""Lines of a live stream, one observation each."""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.data.cells import MISSING, is_missing, read_numbers
from tocsin.data.columns import Columns, choose_columns, find_time, shown
from tocsin.data.header import column_names, find_table, looks_like_data
from tocsin.data.json_lines import parse_object
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.times import TimeRule, choose_time_rule

LINE_FORMATS = ("auto", "csv", "jsonl", "plain")

_SEPARATOR = re.compile(r"\s*[,;|]\s*|\s+")
_ID = "id"  # the column that is the id where none is given


class LineError(DataError):
    """A line that is no observation; the message names the line, what it holds and what is accepted."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation: of which signal (None if lines name none), when (None if they do not say), and its features."""

    id: str | None
    time: np.datetime64 | float | None
    values: tuple[float, ...]


class LineParser:
    """Makes observations of the lines of a stream.

    The first observation settles the columns and the rule for the times; a later line that does not fit raises
    LineError and changes nothing, so a caller may report it and go on.

    Parameters
    ----------
    format : "plain" (numbers separated by blanks or commas), "csv" (a header line, or none if the first line holds
        only numbers and times), "jsonl" (objects), or "auto": what the first line looks like.
    time, values, id : names of columns, as for `read_signals`; but a column called "id" is the id by itself, and every
        column that holds a number or nothing in the first observation is a feature.
    time_format : how times are written, in the words of `datetime.strptime`.
    delimiter : what separates CSV fields; by default found from the first line.

    Examples
    --------
    >>> parser = LineParser()
    >>> parser.parse('{"id": "pump", "time": 0, "pressure": 2.5, "flow": null}')
    Observation(id='pump', time=0.0, values=(2.5, nan))
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
        time_format: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        self._format = checks.choice("format", format, LINE_FORMATS)
        self._time = time
        self._values = (values,) if isinstance(values, str) else None if values is None else tuple(values)
        self._id = id
        self._time_format = time_format
        self._delimiter = delimiter
        self._names: list[str] | None = None
        self._columns: Columns | None = None
        self._known: frozenset[str] = frozenset()
        self._rule: TimeRule | None = None
        self.line = 0  # how many lines were parsed

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the features; None before the first observation."""
        return None if self._columns is None else self._columns.values

    def parse(self, text: str) -> Observation | None:
        """The observation on the next line; None if it is blank, a comment or the header."""
        self.line += 1
        text = text.removeprefix("\ufeff").strip()
        if not text or text.startswith("#"):
            return None
        try:
            if self._format == "auto":
                self._format = _guessed(text)
            row = self._row(text)
            if row is None:
                return None
            columns = self._columns or self._choose(row)
            observation = Observation(
                self._id_of(row, columns), self._time_of(row, columns), self._values_of(row, columns)
            )
        except (csv.Error, ValueError) as error:
            raise LineError(f"line {self.line}: {error}") from None
        if self._columns is None:
            self._columns, self._known = columns, frozenset(row)
        return observation

    def _row(self, text: str) -> Mapping[str, Any] | None:
        if self._format == "jsonl":
            return parse_object(text)
        if self._format == "plain":
            cells = _SEPARATOR.split(text)
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
        if len(cells) != len(self._names):
            raise ValueError(f"{len(cells)} fields, but there were {len(self._names)} at first: {shown(text)}")
        return dict(zip(self._names, cells, strict=True))

    def _choose(self, row: Mapping[str, Any]) -> Columns:
        sample = {name: [cell] for name, cell in row.items()}
        id_ = self._id or (_ID if _ID in row and _ID not in (self._time, *(self._values or ())) else None)
        time = self._time or find_time(sample, {id_, *(self._values or ())})
        values = self._values
        if values is None:
            values = tuple(name for name in row if name not in (time, id_) and _is_value(row[name]))
            if not values:
                raise ValueError(f"no number, but at least one is needed: {shown(dict(row))}")
        return choose_columns("the line", sample, ProblemLog(), time=time, values=values, id=id_)

    def _id_of(self, row: Mapping[str, Any], columns: Columns) -> str | None:
        if columns.id is None:
            return None
        cell = row.get(columns.id)
        text = cell.strip() if isinstance(cell, str) else "" if is_missing(cell) else str(cell)
        if not text:
            raise ValueError(f"column {columns.id}: an id is needed, got {shown(cell)}")
        return text

    def _time_of(self, row: Mapping[str, Any], columns: Columns) -> np.datetime64 | float | None:
        if columns.time is None:
            return None
        cell = row.get(columns.time)
        rule = self._rule or choose_time_rule([cell], self._time_format)
        if rule is not None:
            stored = rule.read([cell])[0]
            if not rule.bad(stored)[0]:
                rule.settle()
                time = rule.finish(stored)[0]
                if time == time:  # neither NaN nor NaT
                    self._rule = rule
                    return time if isinstance(time, np.datetime64) else float(time)
        accepted = f"one of the form {self._time_format!r}" if self._time_format else "ISO 8601, a date or a number"
        raise ValueError(f"column {columns.time}: {shown(cell)} is not a time; accepted: {accepted}, like the first")

    def _values_of(self, row: Mapping[str, Any], columns: Columns) -> tuple[float, ...]:
        absent = [name for name in columns.values if name not in row]
        if absent:
            raise ValueError(f"no {', '.join(absent)}; every line must hold {', '.join(columns.values)}")
        if self._columns is not None and self._values is None and not row.keys() <= self._known:
            added = [name for name in row if name not in self._known and _is_value(row[name])]
            if added:
                raise ValueError(f"{', '.join(added)} besides {', '.join(columns.values)}, which were all at first")
        cells = [row[name] for name in columns.values]
        numbers, why = read_numbers(cells)
        for i in np.flatnonzero(why > MISSING) if why is not None else ():
            raise ValueError(
                f"column {columns.values[i]}: {shown(cells[i])} is not a finite number; accepted: a number, "
                "or null, NaN, NA or nothing for a missing one"
            )
        return tuple(numbers.tolist())


def _guessed(text: str) -> str:
    if text.startswith("{"):
        return "jsonl"
    return "plain" if all(map(_is_value, _SEPARATOR.split(text))) else "csv"


def _is_value(cell: Any) -> bool:
    why = read_numbers([cell])[1]
    return why is None or bool(why[0] <= MISSING)

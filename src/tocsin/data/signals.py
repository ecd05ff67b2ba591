"""All the signals of a reader."""

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np

from tocsin.data.assembly import Assembly
from tocsin.data.blocks import BlockReader, Expected
from tocsin.data.cells import Cells, is_missing
from tocsin.data.clocks import is_clock
from tocsin.data.columns import Columns, choose_columns, shown
from tocsin.data.losses import check_losses, nothing_read
from tocsin.data.numerals import PLAIN, Numerals, find_numerals
from tocsin.data.problems import DataError, Problem, ProblemLog, merge_problems
from tocsin.data.signal import Signal
from tocsin.data.time_cells import time_cells
from tocsin.data.times import TimeRule, choose_time_rule
from tocsin.data.wishes import Wishes


class Signals:
    """The signals of one source. Their number is known; each is assembled on demand.

    Iteration follows the order of first appearance and may be repeated. `rows` is the number of observations read,
    before duplicates are dropped and gaps filled. `problems` are those that belong to no single signal. `columns` are
    the columns used, and `understood` says in one line how the source was read. Closing (or leaving a `with` block)
    removes the temporary file, if there is one.
    """

    def __init__(self, assembly: Assembly, name: str) -> None:
        self._assembly = assembly
        self._name = name
        self._closed = False
        self._codes = np.flatnonzero(assembly.spool.counts)
        self.rows = int(assembly.spool.counts.sum())
        self.columns = assembly.columns
        self.understood = assembly.understood
        self.understood.signals = len(self._codes)
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


def assemble(reader: BlockReader, wishes: Wishes, name: str, log: ProblemLog) -> Signals:
    """Read everything from a reader."""
    sample = reader.sample()
    if not any(len(cells) for cells in sample.values()):
        raise nothing_read(reader.label, log)
    try:
        numerals = _numerals(sample, wishes)
    except DataError as error:
        raise DataError(f"{reader.label}: {error}") from error
    columns = choose_columns(
        reader.label,
        sample,
        log,
        time=wishes.time,
        values=wishes.values,
        id=wishes.id,
        ignore=wishes.ignore,
        numerals=numerals,
        guess=wishes.guess,
    )
    rule = None
    if columns.time is not None:
        cells = time_cells(sample, columns, numerals)
        rule = choose_time_rule(cells, wishes.time_format, wishes.day_first)
        if rule is None:
            first = next((shown(cell) for cell in cells if not is_missing(cell)), "nothing")
            raise DataError(
                f"{reader.label}: the time column {columns.time!r} holds no readable times, but {first}; "
                "accepted: ISO 8601, dates, numbers, or the form in `time_format`"
            )
    elif wishes.every is not None:
        raise DataError(f"{reader.label}: `every` needs times, but no column holds any; set `time` to the time column")
    assembly = Assembly(reader=reader, columns=columns, rule=rule, wishes=wishes, numerals=numerals, log=log)
    try:
        for block in reader.blocks(columns.used, _expected(columns, rule, numerals)):
            assembly.add(block)
        if rule is not None:
            rule.conclude()
        problems = merge_problems(assembly.all_problems())
        if assembly.numbers == 0:
            raise DataError(_nothing_there(columns, problems))
        check_losses(assembly.rows, problems, wishes.most_lost, assembly.spoilt)
    except DataError as error:
        assembly.spool.close()
        message = str(error)
        raise DataError(message if message.startswith(reader.label) else f"{reader.label}: {message}") from error
    return Signals(assembly, name)


def _expected(columns: Columns, rule: TimeRule | None, numerals: Numerals) -> Expected:
    """What a reader may expect of most cells."""
    iso = rule is not None and rule.iso and columns.clock is None
    return Expected(frozenset(columns.values), numerals, columns.time if iso else None)


def _numerals(sample: Mapping[str, Cells], wishes: Wishes) -> Numerals:
    """The number format. Only text shows it, and times do not count."""
    columns = [
        cells
        for name, cells in sample.items()
        if name not in (wishes.time, wishes.id) and not isinstance(cells, np.ndarray) and not is_clock(cells)
    ]
    return find_numerals(columns, wishes.decimal) if wishes.guess or wishes.decimal else PLAIN


def _nothing_there(columns: Columns, problems: tuple[Problem, ...]) -> str:
    found = ". ".join(map(str, problems))
    return f"no observation could be read from {', '.join(map(repr, columns.values))}. Found: {found}"

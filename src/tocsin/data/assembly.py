"""From a reader's blocks to signals: cells become numbers, rows find their signal, problems their place."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.data.blocks import Block, Reader
from tocsin.data.cells import KIND_OF, Cells, is_missing, read_numbers
from tocsin.data.columns import Columns, choose_columns, shown
from tocsin.data.problems import DataError, Problem, ProblemLog, merge_problems
from tocsin.data.signal import Signal
from tocsin.data.spool import LIMIT, Spool
from tocsin.data.timeline import LONGEST_GAP, as_interval, lay_out
from tocsin.data.times import TimeRule, choose_time_rule


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the caller asks of a table, whatever it is read from; see `read_signals`."""

    time: str | None = None
    values: str | Iterable[str] | None = None
    id: str | None = None
    separate: bool = False
    interval: Any = None
    time_format: str | None = None
    decimal: str = "."
    longest_gap: int = LONGEST_GAP
    limit: int = LIMIT

    def __post_init__(self) -> None:
        checks.choice("decimal", self.decimal, (".", ","))
        checks.integer("longest_gap", self.longest_gap, least=0)
        checks.integer("limit", self.limit, least=1)
        if self.interval is not None:
            as_interval(self.interval, dated=True)


class Signals:
    """Signals of one source: how many there are is known, and each is put together when it is asked for.

    Iterating gives them in the order of their first appearance, and may be done again. `rows` is how many observations
    were read, before duplicates are dropped and gaps filled. `problems` are those that belong to no one signal.
    `columns` says which were used. Closing (or leaving a `with` block) removes the temporary file, if there is one.
    """

    def __init__(self, assembly: "_Assembly", name: str) -> None:
        self._assembly = assembly
        self._name = name
        self._closed = False
        self._codes = np.flatnonzero(assembly.spool.counts)
        self.rows = int(assembly.spool.counts.sum())
        self.columns = assembly.columns
        self.problems: tuple[Problem, ...] = assembly.general_problems()

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[Signal]:
        if self._closed:
            raise ValueError("these signals were closed; read them again")
        for code in self._codes.tolist():
            yield self._assembly.signal(code, self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the data; the signals already given out stay good."""
        self._closed = True
        self._assembly.spool.close()


def assemble(reader: Reader, wishes: Wishes, name: str, log: ProblemLog) -> Signals:
    """Read everything a reader has."""
    sample = reader.sample()
    if not any(len(cells) for cells in sample.values()):
        raise DataError(f"{reader.label} holds no rows")
    columns = choose_columns(
        reader.label, sample, log, time=wishes.time, values=wishes.values, id=wishes.id, decimal=wishes.decimal
    )
    rule = None
    if columns.time is not None:
        rule = choose_time_rule(sample[columns.time], wishes.time_format)
        if rule is None:
            first = next((shown(cell) for cell in sample[columns.time] if not is_missing(cell)), "nothing")
            raise DataError(
                f"{reader.label}: the time column {columns.time!r} holds no times that can be read, but {first}; "
                "accepted are ISO 8601, dates, numbers, or what time_format says"
            )
    assembly = _Assembly(reader.unit, columns, rule, wishes, log)
    try:
        for block in reader.blocks(columns.used):
            assembly.add(block)
        if rule is not None:
            rule.settle()
        if assembly.numbers == 0:
            raise DataError(_nothing_there(columns, merge_problems(assembly.all_problems())))
    except DataError as error:
        assembly.spool.close()
        message = str(error)
        raise DataError(message if message.startswith(reader.label) else f"{reader.label}: {message}") from error
    return Signals(assembly, name)


def _nothing_there(columns: Columns, problems: tuple[Problem, ...]) -> str:
    found = ". ".join(map(str, problems))
    return f"no observation could be read from {', '.join(map(repr, columns.values))}. Found: {found}"


class _Assembly:
    """Rows on their way into the spool, and back out as signals."""

    def __init__(self, unit: str, columns: Columns, rule: TimeRule | None, wishes: Wishes, log: ProblemLog) -> None:
        self.columns = columns
        self.numbers = 0  # finite ones, so far
        self._unit = unit
        self._rule = rule
        self._wishes = wishes
        self._log = log
        self._logs: defaultdict[int, ProblemLog] = defaultdict(ProblemLog)
        self._ids = _Ids()
        self._parts = len(columns.values) if wishes.separate else 1  # signals in one row
        features = len(columns.values) // self._parts
        self.spool = Spool(features, None if rule is None else rule.dtype, wishes.limit)

    def add(self, block: Block) -> None:
        """Take in some rows."""
        codes, keep = self._read_ids(block)
        times = None
        if self._rule is not None:
            times, keep = self._read_times(block, codes, keep)
        read = [read_numbers(block.cells[name], self._wishes.decimal) for name in self.columns.values]
        values = np.column_stack([numbers for numbers, _ in read])
        self._log_cells(block, codes, keep, [why for _, why in read])
        lines = block.lines
        if not keep.all():
            codes, values, lines = codes[keep], values[keep], lines[keep]
            times = None if times is None else times[keep]
        self.numbers += int(np.isfinite(values).sum())
        if self._parts > 1:
            codes = (codes[:, np.newaxis] * self._parts + np.arange(self._parts)).ravel()
            lines = np.repeat(lines, self._parts)
            times = None if times is None else np.repeat(times, self._parts)
            values = values.reshape(-1, 1)
        if len(codes):
            self.spool.add(codes, times, lines, values)

    def signal(self, code: int, name: str) -> Signal:
        """Put one signal together."""
        log = ProblemLog()
        for problem in self._logs.get(code, ()):
            log.add(problem.kind, problem.count, problem.where)
        rows = self.spool.rows(code)
        values, lines = np.ascontiguousarray(rows["values"]), np.ascontiguousarray(rows["line"])
        owner, part = divmod(code, self._parts)
        if self.columns.id is not None:
            name = self._ids.names[owner]
        features = self.columns.values
        if self._wishes.separate:
            features = features[part : part + 1]
            name = features[0] if self.columns.id is None else f"{name}/{features[0]}"
        interval = self._wishes.interval
        if self._rule is None:
            interval = None if interval is None else as_interval(interval, dated=not isinstance(interval, (int, float)))
            return Signal(name, features, None, values, lines, interval, tuple(log))
        times = self._rule.finish(np.ascontiguousarray(rows["time"]))
        del rows  # its memory is no longer needed once it has been taken apart
        good = times == times  # a date such as 31/02/2024 shows only once day and month are told apart
        if not good.all():
            log.add("bad time", int((~good).sum()), (f"{self._unit} {line}: no such date" for line in lines[~good]))
            times, values, lines = times[good], values[good], lines[good]
        if interval is not None:
            interval = as_interval(interval, dated=times.dtype.kind == "M")
        try:
            timeline = lay_out(
                times, values, lines, log=log, interval=interval, longest_gap=self._wishes.longest_gap, unit=self._unit
            )
        except DataError as error:
            raise DataError(f"signal {name!r}: {error}") from error
        return Signal(name, features, timeline.times, timeline.values, timeline.lines, timeline.interval, tuple(log))

    def general_problems(self) -> tuple[Problem, ...]:
        """Those of no one signal, and of signals of which nothing is left."""
        counts = self.spool.counts
        lost = [log for code, log in self._logs.items() if code >= len(counts) or counts[code] == 0]
        return merge_problems(problem for log in (self._log, *lost) for problem in log)

    def all_problems(self) -> Iterator[Problem]:
        yield from self._log
        for log in self._logs.values():
            yield from log

    def _read_ids(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.columns.id is None:
            return np.zeros(len(block.lines), dtype=np.int64), np.ones(len(block.lines), dtype=np.bool_)
        codes = self._ids.codes(block.cells[self.columns.id])
        known = codes >= 0
        if not known.all():
            self._log.add("no id", int((~known).sum()), (f"{self._unit} {line}" for line in block.lines[~known]))
        return codes, known

    def _read_times(
        self, block: Block, codes: NDArray[np.int64], keep: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if self._rule is None or self.columns.time is None:
            raise TypeError("there is no time column to read")
        cells = block.cells[self.columns.time]
        times, zoned = self._rule.read(cells)

        def place(row: int) -> str:
            return f"{self._unit} {block.lines[row]}, column {self.columns.time}: {shown(cells[row])}"

        bad = self._rule.bad(times)
        if bad.any():
            self._report("bad time", np.flatnonzero(keep & bad), codes, place)
        if zoned is not None:
            self._report("zone", np.flatnonzero(keep & zoned & ~bad), codes, place)
        return times, keep & ~bad

    def _log_cells(
        self,
        block: Block,
        codes: NDArray[np.int64],
        keep: NDArray[np.bool_],
        reasons: list[NDArray[np.uint8] | None],
    ) -> None:
        if all(why is None for why in reasons):
            return
        none = np.zeros(len(keep), dtype=np.uint8)
        whys = np.column_stack([none if why is None else why for why in reasons])
        whys[~keep] = 0
        names = self.columns.values
        for reason, kind in KIND_OF.items():
            rows, parts = np.nonzero(whys == reason)

            def place(i: int, rows: NDArray[Any] = rows, parts: NDArray[Any] = parts, cited: bool = reason > 1) -> str:
                name = names[parts[i]]
                cell = f": {shown(block.cells[name][rows[i]])}" if cited else ""
                return f"{self._unit} {block.lines[rows[i]]}, column {name}{cell}"

            owners = codes[rows] * self._parts + (parts if self._parts > 1 else 0)
            self._count(kind, owners, place)

    def _report(self, kind: str, rows: NDArray[np.intp], codes: NDArray[np.int64], place: Callable[[int], str]) -> None:
        """Log a problem of whole rows: with their signals, or for all where a row is shared by several."""
        if self._parts > 1:
            self._log.add(kind, len(rows), (place(row) for row in rows))
        else:
            self._count(kind, codes[rows], lambda i: place(int(rows[i])))

    def _count(self, kind: str, owners: NDArray[np.int64], place: Callable[[int], str]) -> None:
        """Log one problem for each owner; `place(i)` names the one of `owners[i]`."""
        order = np.argsort(owners, kind="stable")
        starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
        for group in np.split(order, starts[1:]) if len(order) else ():
            self._logs[int(owners[group[0]])].add(kind, len(group), (place(int(i)) for i in group))


class _Ids:
    """Numbers for signals, in the order of their first appearance; -1 for cells that name none."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {"": -1}

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        texts = list(map(_id_text, cells))
        found = list(map(self._codes.get, texts))
        if None in found:
            for text in texts:
                if text not in self._codes:
                    self._codes[text] = len(self.names)
                    self.names.append(text)
            found = list(map(self._codes.get, texts))
        return np.array(found, dtype=np.int64)


def _id_text(cell: Any) -> str:
    """An id as text. Only an empty cell is no id: "NA" may well name something."""
    if isinstance(cell, str):
        return cell.strip()
    return "" if is_missing(cell) else str(cell)

"""From a reader's blocks to signals: what a caller asks for, cells to numbers, rows to signals, problems."""

import tempfile
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.leftovers import check_room
from tocsin.data.numbers import (
    KIND_OF,
    MISSING,
    PLAIN,
    Cells,
    NumberFormat,
    Sentinels,
    is_missing,
    read_numbers,
    split_missing,
    without_words,
)
from tocsin.data.problems import DataError, Problem, ProblemLog, check_losses, merge_problems
from tocsin.data.tables import BlockReader, Columns, RowBlock, shortened, time_cells
from tocsin.data.timeline import (
    AGGREGATES,
    LONGEST_GAP,
    Interval,
    Signal,
    Timeline,
    as_interval,
    duration_text,
    regularize,
    resample,
)
from tocsin.data.times import TimeParser
from tocsin.data.zones import Zone, check_zone

OFTEN = 0.01  # of all steps: more irregular steps than this are mentioned

LIMIT = 2_000_000  # numbers


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """See `read_signals`. With `guess`, labels, counters and sentinels are detected."""

    time: str | None = None
    values: str | Iterable[str] | None = None
    id: str | None = None
    ignore: str | Iterable[str] = ()
    separate: bool = False
    interval: Any = None
    every: Any = None
    aggregate: str = "mean"
    time_format: str | None = None
    day_first: bool | None = None
    zone: str | None = None
    decimal: str | None = None
    missing: str | float | Iterable[str | float] | None = None
    longest_gap: int = LONGEST_GAP
    most_lost: float = 1.0
    limit: int = LIMIT
    guess: bool = False

    def __post_init__(self) -> None:
        if self.decimal is not None:
            checks.choice("decimal", self.decimal, (".", ","))
        if self.zone is not None:
            check_zone("zone", self.zone)
        checks.choice("aggregate", self.aggregate, AGGREGATES)
        checks.integer("longest_gap", self.longest_gap, least=0)
        checks.number("most_lost", self.most_lost, least=0, most=1)
        checks.integer("limit", self.limit, least=1)
        for name in ("interval", "every"):
            if getattr(self, name) is not None:
                as_interval(getattr(self, name), dated=True, name=name)
        if self.interval is not None and self.every is not None:
            given = f", which sets it, got {self.interval!r}"
            raise ArgumentError("interval", Message("must not be given with ", Argument("every", subject=True), given))


@dataclass
class ReadSummary:
    """How a table was read. Its signals add their part as they are assembled."""

    columns: Columns
    parser: TimeParser | None = None
    zone: Zone | None = None  # of times without one
    notes: Sequence[str] = ()
    number_format: NumberFormat = PLAIN
    excluded: Sequence[str] = ()  # labels and counters
    aggregate: str | None = None
    signals: int = 1
    separate: bool = False
    intervals: set[Interval | None] = field(default_factory=set)
    steps: int = 0  # from one observation to the next; of these,
    irregular: int = 0  # irregular ones that are not gaps,
    gaps: int = 0  # gaps,
    filled: int = 0  # and observations inserted for the gaps
    sentinels: Counter[float] = field(default_factory=Counter)

    def __str__(self) -> str:
        return str(self.message)

    @property
    def message(self) -> Message:
        """The line, in which arguments are marked."""
        features = len(self.columns.values)
        parts: list[str] = [self._time(), *self.notes, *self.number_format.in_words()]
        if self.signals > 1 or self.separate:
            parts.append(_count(self.signals, "signal"))
        if not self.separate:
            parts.append(_count(features, "feature"))
        if self.excluded:
            parts.append(f"not {', '.join(self.excluded)}")
        parts.extend(self._steps())
        parts.extend(
            f"{count:,} {'values were' if count > 1 else 'value was'} {value:g} and "
            f"{'count' if count > 1 else 'counts'} as missing"
            for value, count in self.sentinels.items()
        )
        return Message.joined("; ", parts)

    def _time(self) -> str:
        if self.columns.time is None:
            return "no time: rows in file order"
        names = " + ".join(name for name in (self.columns.time, self.columns.time_of_day) if name is not None)
        order = f", {self.parser.order}" if self.parser is not None and self.parser.order else ""
        zone = "" if self.zone is None else f", {self.zone.name}"
        return f"time: {names}{order}{zone}"

    def _steps(self) -> Iterable[str]:
        known = [interval for interval in self.intervals if interval is not None]
        by = f" ({self.aggregate})" if self.aggregate else ""
        if len(known) == 1:
            yield f"every {duration_text(known[0])}{by}"
        elif known:
            yield f"every {duration_text(min(known))} to {duration_text(max(known))}"
        if self.irregular > OFTEN * self.steps:
            off = f"{self.irregular:,} of {self.steps:,} steps"
            yield Message(f"{off} are irregular and count as one each (", Argument("every"), " regularises them)")
        if self.gaps > OFTEN * self.steps:
            yield f"{self.gaps:,} gaps, {self.filled:,} observations in all, count as missing"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


_PIECE = 65_536  # rows written at a time


class SignalIds:
    """Numbers signals in order of first appearance; -1 for cells without an id."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {"": -1}

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        """The number of each cell's signal."""
        texts = list(map(id_text, cells))
        found = list(map(self._codes.get, texts))
        if None in found:
            for text in texts:
                if text not in self._codes:
                    self._codes[text] = len(self.names)
                    self.names.append(text)
            found = list(map(self._codes.get, texts))
        return np.array(found, dtype=np.int64)


def id_text(cell: Any) -> str:
    """An id as text. Only an empty cell is not an id: "NA" may be a name."""
    if isinstance(cell, str):
        return cell.strip()
    return "" if is_missing(cell) else str(cell)


@dataclass(frozen=True, eq=False)
class _Segment:
    """Rows in the order of their signals: `codes[i]` owns the rows from `starts[i]` up to `starts[i + 1]`."""

    codes: NDArray[np.int64]
    starts: NDArray[np.int64]
    fetch: Callable[[int, int], NDArray[Any]]

    def rows(self, code: int) -> NDArray[Any]:
        place = int(np.searchsorted(self.codes, code))
        if place == len(self.codes) or self.codes[place] != code:
            return self.fetch(0, 0)
        return self.fetch(int(self.starts[place]), int(self.starts[place + 1]))


class Spool:
    """Collects rows and returns them signal by signal, each in order of arrival.

    A row has a code (the number of its signal), a stored time (none if `time_dtype` is None), a line and `features`
    values. At most `limit` numbers (and at least one added chunk) stay in memory. Then they go to a temporary file,
    which is removed by `close` or with the spool itself.
    """

    def __init__(self, features: int, time_dtype: type | None, limit: int = LIMIT) -> None:
        self._limit = checks.integer("limit", limit, least=1)
        fields: list[Any] = [("line", np.int64), ("values", np.float64, (features,))]
        self._dtype = np.dtype(fields if time_dtype is None else [("time", time_dtype), *fields])
        self._features = features
        self._waiting: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        self._held = 0
        self._segments: list[_Segment] = []
        self._file: IO[bytes] | None = None
        self._written = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._close: Callable[[], Any] = lambda: None

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each signal, by code."""
        return self._counts

    def add(
        self,
        codes: NDArray[np.int64],
        times: NDArray[Any] | None,
        lines: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        rows = np.empty(len(codes), dtype=self._dtype)
        if times is not None:
            rows["time"] = times
        rows["line"] = lines
        rows["values"] = values
        counts = np.bincount(codes, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self._waiting.append((codes, rows))
        self._held += len(codes) * self._features
        if self._held >= self._limit:
            self._write_out()

    def rows(self, code: int) -> NDArray[Any]:
        """All rows of one signal, as records with the fields `time` (if any), `line` and `values`."""
        if self._waiting:
            self._segments.append(self._gather())
        parts = [segment.rows(code) for segment in self._segments]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=self._dtype), *parts])

    def close(self) -> None:
        """Release all rows and the temporary file."""
        self._waiting.clear()
        self._segments.clear()
        self._close()

    def _gather(self) -> _Segment:
        """The pending rows as one segment in memory."""
        codes = np.concatenate([part for part, _ in self._waiting])
        rows = np.concatenate([part for _, part in self._waiting])
        self._waiting.clear()
        self._held = 0
        # Where they arrived in the order of their signals, nothing is copied; elsewhere, only requested rows are.
        order = np.argsort(codes, kind="stable") if np.any(codes[1:] < codes[:-1]) else None
        if order is not None:
            codes = codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))

        def fetch(first: int, last: int) -> NDArray[Any]:
            return rows[first:last] if order is None else rows[order[first:last]]

        return _Segment(codes[starts], np.append(starts, len(codes)), fetch)

    def _write_out(self) -> None:
        segment = self._gather()
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tocsin-")  # noqa: SIM115
            self._close = weakref.finalize(self, self._file.close)
        file, offset = self._file, self._written
        count = int(segment.starts[-1])
        check_room(count * self._dtype.itemsize)
        file.seek(offset)
        for first in range(0, count, _PIECE):
            file.write(segment.fetch(first, min(first + _PIECE, count)).tobytes())
        self._written += count * self._dtype.itemsize
        dtype = self._dtype  # not the spool itself: the file is removed with it

        def fetch(first: int, last: int) -> NDArray[Any]:
            file.seek(offset + first * dtype.itemsize)
            return np.frombuffer(file.read((last - first) * dtype.itemsize), dtype=dtype)

        self._segments.append(_Segment(segment.codes, segment.starts, fetch))


class Assembly:
    """Rows on their way into the spool, and back out as signals."""

    def __init__(
        self,
        reader: BlockReader,
        columns: Columns,
        parser: TimeParser | None,
        zone: Zone | None,
        options: ReadOptions,
        number_format: NumberFormat,
        log: ProblemLog,
    ) -> None:
        self.columns = columns
        self.numbers = 0  # finite numbers so far
        self.rows = 0  # with a time and an id
        self.damaged_rows = 0  # of these, rows without any value because their cells are damaged
        self._unit = reader.unit
        self._time_parser = parser
        self._zone = zone  # of times without one
        self._options = options
        self._number_format = number_format
        self._log = log
        self._logs: defaultdict[int, ProblemLog] = defaultdict(lambda: ProblemLog(reader.unit))
        self._ids = SignalIds()
        self._parts = len(columns.values) if options.separate else 1  # signals in one row
        features = len(columns.values) // self._parts
        self.spool = Spool(features, None if parser is None else parser.dtype, options.limit)
        numbers, self._words, find = split_missing(options.missing)
        self._assembled: set[int] = set()
        self._found: list[tuple[float, ...]] | None = None
        self._sentinels = Sentinels(len(columns.values), numbers, find=find and options.guess)
        self.summary = ReadSummary(
            columns=columns,
            parser=parser,
            zone=zone,
            notes=reader.notes,
            number_format=number_format,
            excluded=columns.excluded,
            aggregate=None if options.every is None else options.aggregate,
            separate=options.separate,
        )

    def add(self, block: RowBlock) -> None:
        codes, keep = self._read_ids(block)
        read = [
            read_numbers(without_words(block.cells[name], self._words), self._number_format)
            for name in self.columns.values
        ]
        values = np.column_stack([numbers for numbers, _ in read])
        times = None
        if self._time_parser is not None:
            empty = np.all([why == MISSING if why is not None else np.zeros_like(keep) for _, why in read], axis=0)
            times, keep = self._read_times(block, codes, keep, empty)
        self._log_cells(block, codes, keep, [why for _, why in read])
        lines = block.lines
        if not keep.all():
            codes, values, lines = codes[keep], values[keep], lines[keep]
            times = None if times is None else times[keep]
        self._sentinels.look(values)
        self.numbers += int(np.isfinite(values).sum())
        self.rows += len(codes)
        damaged = [why[keep] > MISSING for _, why in read if why is not None]
        if damaged:
            self.damaged_rows += int(np.count_nonzero(np.any(damaged, axis=0) & np.isnan(values).all(axis=1)))
        if self._parts > 1:
            codes = (codes[:, np.newaxis] * self._parts + np.arange(self._parts)).ravel()
            lines = np.repeat(lines, self._parts)
            times = None if times is None else np.repeat(times, self._parts)
            values = values.reshape(-1, 1)
        if len(codes):
            self.spool.add(codes, times, lines, values)

    def signal(self, code: int, name: str) -> Signal:
        log = ProblemLog(self._unit)
        for problem in self._logs.get(code, ()):
            log.add(problem.kind, problem.count, problem.where)
        rows = self.spool.rows(code)
        values, lines = np.ascontiguousarray(rows["values"]), np.ascontiguousarray(rows["line"])
        parser = self._time_parser
        times = None if parser is None else parser.finish(np.ascontiguousarray(rows["time"]))
        del rows  # frees its memory
        owner, part = divmod(code, self._parts)
        if self.columns.id is not None:
            name = self._ids.names[owner]
        features = self.columns.values
        if self._options.separate:
            features = features[part : part + 1]
            name = features[0] if self.columns.id is None else f"{name}/{features[0]}"
        first_time = code not in self._assembled  # a signal may be assembled again
        self._assembled.add(code)
        cleared = self._clear_sentinels(values, lines, part, log)
        if first_time:
            self.summary.sentinels.update(cleared)
        interval = self._options.interval
        if times is not None:
            try:
                timeline = self._timeline(Timeline(times, values, lines), log)
            except DataError as error:
                raise DataError(Message(f"signal {name!r}: ", error)) from error
            times, values, lines, interval = timeline.times, timeline.values, timeline.lines, timeline.interval
        elif interval is not None:
            interval = as_interval(interval, dated=not isinstance(interval, (int, float)))
        signal = Signal(name, features, times, values, lines, interval, tuple(log))
        if first_time:
            self._note_steps(signal)
        return signal

    def _timeline(self, read: Timeline, log: ProblemLog) -> Timeline:
        """A signal's observations at regular times; DataError if too many are lost on the way."""
        count = len(read.times)
        good = read.times == read.times  # a 31/02/2024 shows only once the order of day and month is known
        if not good.all():
            places = (f"{self._unit} {line}: no such date" for line in read.lines[~good])
            log.add("bad time", int((~good).sum()), places)
            read = read.of(good)
        if self._zone is not None:
            read = replace(read, times=self._zone.moments(read.times))
        options, dated = self._options, read.times.dtype.kind == "M"
        interval = None if options.interval is None else as_interval(options.interval, dated=dated)
        if options.every is not None:
            interval = as_interval(options.every, dated=dated, name="every")
            read = resample(read, interval, options.aggregate, log)
        timeline = regularize(read, log, interval, options.longest_gap)
        late = [problem for problem in log if problem.kind == "duplicate time"]
        check_losses(count - sum(problem.count for problem in late), late, options.most_lost)
        return timeline

    def _note_steps(self, signal: Signal) -> None:
        """Add a signal's steps to the summary."""
        counts = {problem.kind: problem.count for problem in signal.problems}
        self.summary.intervals.add(signal.interval)
        self.summary.steps += max(signal.observed - 1, 0)
        self.summary.irregular += counts.get("irregular step", 0)
        self.summary.gaps += counts.get("gap", 0)
        self.summary.filled += len(signal) - signal.observed

    def _clear_sentinels(
        self, values: NDArray[np.float64], lines: NDArray[np.int64], part: int, log: ProblemLog
    ) -> Counter[float]:
        """Replace numbers that mean missing with NaN, and count them."""
        cleared: Counter[float] = Counter()
        if self._found is None:
            self._found = self._sentinels.conclude()  # all rows are read by now
        for column in range(values.shape[1]):
            feature = part + column
            for sentinel in self._found[feature]:
                rows = np.flatnonzero(values[:, column] == sentinel)
                if not rows.size:
                    continue
                name = self.columns.values[feature]
                places = (f"{self._unit} {lines[row]}, column {name}: {sentinel:g}" for row in rows)
                log.add("sentinel", rows.size, places)
                values[rows, column] = np.nan
                cleared[sentinel] += rows.size
        return cleared

    def general_problems(self) -> tuple[Problem, ...]:
        """Problems that belong to no single signal, or to signals without any rows left."""
        counts = self.spool.counts
        lost = [log for code, log in self._logs.items() if code >= len(counts) or counts[code] == 0]
        return merge_problems(problem for log in (self._log, *lost) for problem in log)

    def all_problems(self) -> Iterator[Problem]:
        yield from self._log
        for log in self._logs.values():
            yield from log

    def _read_ids(self, block: RowBlock) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.columns.id is None:
            return np.zeros(len(block.lines), dtype=np.int64), np.ones(len(block.lines), dtype=np.bool_)
        codes = self._ids.codes(block.cells[self.columns.id])
        known = codes >= 0
        if not known.all():
            self._log.add("no id", int((~known).sum()), (f"{self._unit} {line}" for line in block.lines[~known]))
        return codes, known

    def _read_times(
        self, block: RowBlock, codes: NDArray[np.int64], keep: NDArray[np.bool_], empty: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if self._time_parser is None:
            raise TypeError("there is no time column to read")
        cells = time_cells(block.cells, self.columns, self._number_format)
        times, zoned = self._time_parser.read(cells)

        def place(row: int) -> str:
            return f"{self._unit} {block.lines[row]}, column {self.columns.time}: {shortened(cells[row])}"

        bad = self._time_parser.bad(times)
        if bad.any():
            reported = [
                row for row in np.flatnonzero(keep & bad).tolist() if not (empty[row] and is_missing(cells[row]))
            ]
            self._report("bad time", np.array(reported, dtype=np.intp), codes, place)  # an empty row is not a problem
        if zoned is not None:
            self._report("zone", np.flatnonzero(keep & zoned & ~bad), codes, place)
        return times, keep & ~bad

    def _log_cells(
        self,
        block: RowBlock,
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
                cell = f": {shortened(block.cells[name][rows[i]])}" if cited else ""
                return f"{self._unit} {block.lines[rows[i]]}, column {name}{cell}"

            owners = codes[rows] * self._parts + (parts if self._parts > 1 else 0)
            self._count(kind, owners, place)

    def _report(self, kind: str, rows: NDArray[np.intp], codes: NDArray[np.int64], place: Callable[[int], str]) -> None:
        """Log a problem with whole rows: per signal, or for all signals if they share a row."""
        if self._parts > 1:
            self._log.add(kind, len(rows), (place(row) for row in rows))
        else:
            self._count(kind, codes[rows], lambda i: place(int(rows[i])))

    def _count(self, kind: str, owners: NDArray[np.int64], place: Callable[[int], str]) -> None:
        """Log one problem for each owner; `place(i)` gives the place for `owners[i]`."""
        order = np.argsort(owners, kind="stable")
        starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
        for group in np.split(order, starts[1:]) if len(order) else ():
            self._logs[int(owners[group[0]])].add(kind, len(group), (place(int(i)) for i in group))

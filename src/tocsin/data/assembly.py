"""From a reader's blocks to signals: turns cells into numbers, assigns rows to signals and locates problems."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import Message
from tocsin.data.columns import Columns, shortened, time_cells
from tocsin.data.numbers import (
    KIND_OF,
    MISSING,
    NumberFormat,
    Sentinels,
    is_missing,
    read_numbers,
    split_missing,
    without_words,
)
from tocsin.data.options import ReadOptions, ReadSummary
from tocsin.data.problems import DataError, Problem, ProblemLog, check_losses, merge_problems
from tocsin.data.resampling import resample
from tocsin.data.spool import SignalIds, Spool
from tocsin.data.tables import BlockReader, RowBlock
from tocsin.data.timeline import Signal, Timeline, as_interval, regularize
from tocsin.data.times import TimeParser


class Assembly:
    """Rows on their way into the spool, and back out as signals."""

    def __init__(
        self,
        reader: BlockReader,
        columns: Columns,
        parser: TimeParser | None,
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
        self._options = options
        self._number_format = number_format
        self._log = log
        self._logs: defaultdict[int, ProblemLog] = defaultdict(ProblemLog)
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
            notes=reader.notes,
            number_format=number_format,
            excluded=columns.excluded,
            aggregate=None if options.every is None else options.aggregate,
            separate=options.separate,
        )

    def add(self, block: RowBlock) -> None:
        """Add some rows."""
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
        """Assemble one signal."""
        log = ProblemLog()
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
                timeline = self._timeline(times, values, lines, log)
            except DataError as error:
                raise DataError(Message(f"signal {name!r}: ", error)) from error
            times, values, lines, interval = timeline.times, timeline.values, timeline.lines, timeline.interval
        elif interval is not None:
            interval = as_interval(interval, dated=not isinstance(interval, (int, float)))
        signal = Signal(name, features, times, values, lines, interval, tuple(log))
        if first_time:
            self._note_steps(signal)
        return signal

    def _timeline(
        self, times: NDArray[Any], values: NDArray[np.float64], lines: NDArray[np.int64], log: ProblemLog
    ) -> Timeline:
        """A signal's observations at regular times; DataError if too many are lost on the way."""
        count = len(times)
        good = times == times  # 31/02/2024 is known to be no date only once the order of day and month is known
        if not good.all():
            log.add("bad time", int((~good).sum()), (f"{self._unit} {line}: no such date" for line in lines[~good]))
            times, values, lines = times[good], values[good], lines[good]
        options, dated = self._options, times.dtype.kind == "M"
        interval = None if options.interval is None else as_interval(options.interval, dated=dated)
        if options.every is not None:
            interval = as_interval(options.every, dated=dated, name="every")
            times, values, lines = resample(times, values, lines, interval, options.aggregate, log, self._unit)
        timeline = regularize(
            times, values, lines, log=log, interval=interval, longest_gap=options.longest_gap, unit=self._unit
        )
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

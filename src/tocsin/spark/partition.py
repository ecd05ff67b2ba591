"""From the rows of one partition, in Arrow, to rows of the result table."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data import DataError, Problem, Signal
from tocsin.data.assembly import Spool
from tocsin.data.numbers import KIND_OF, read_numbers
from tocsin.data.problems import ProblemLog
from tocsin.data.timeline import Timeline, as_interval, regularize
from tocsin.data.times import NAT, choose_time_parser
from tocsin.detection import detect_signals
from tocsin.spark.plan import SparkPlan
from tocsin.spark.rows import Layout


class DetectPartition:
    """Judges all signals of a partition, which must contain each signal completely. For `mapInArrow`."""

    def __init__(self, plan: SparkPlan) -> None:
        self.plan = plan

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Rows for the verdicts, incidents and problems of each signal, in the order of first appearance."""
        layout = Layout(self.plan.features, self.plan.clock, streamed=False)
        gathered = _Gathered(self.plan)
        settings = self.plan.detector_settings()
        for batch in batches:
            gathered.add(batch)
        if gathered.nameless:
            yield layout.problems(None, [Problem("no id", gathered.nameless, ())])
        for name in gathered.names:
            try:
                signal = gathered.signal(name)
            except ValueError as error:
                yield layout.message(name, "not judged", "error", str(error))
                continue
            yield from self._judged(signal, settings, layout)
        gathered.close()

    def _judged(self, signal: Signal, settings: dict[str, Any], layout: Layout) -> Iterator[Any]:
        pieces: list[Any] = []
        (result,) = detect_signals(
            [signal], settings, sink=lambda name, columns: pieces.append(layout.verdicts(name, columns))
        )
        if signal.problems:
            yield layout.problems(signal.name, signal.problems)
        if result.error is not None:
            yield layout.message(signal.name, "not judged", "error", result.error)
            return
        if result.warning is not None:
            yield layout.message(signal.name, "too short", "note", result.warning)
        yield from pieces
        if result.incident_list:
            yield layout.incidents(signal.name, result.incident_list)


class _Gathered:
    """Rows of a partition by signal, in bounded memory."""

    def __init__(self, plan: SparkPlan) -> None:
        self.nameless = 0
        self.names: dict[str, int] = {}
        self._plan = plan
        self._rows = 0
        self._bad: defaultdict[int, list[int]] = defaultdict(list)
        self._spool = Spool(len(plan.features), np.int64 if plan.dated else np.float64)

    def add(self, batch: Any) -> None:
        signal, time, *values = batch.columns
        lines = self._rows + 1 + np.arange(batch.num_rows)
        self._rows += batch.num_rows
        coded = signal.dictionary_encode()
        known = [self.names.setdefault(name, len(self.names)) if name else -1 for name in coded.dictionary.to_pylist()]
        codes = np.array(known, dtype=np.int64)[coded.indices.to_numpy()]
        times, bad = read_times(time.to_numpy(), self._plan)
        self.nameless += int((codes < 0).sum())
        for code, line in zip(codes[bad & (codes >= 0)].tolist(), lines[bad & (codes >= 0)].tolist(), strict=True):
            self._bad[code].append(line)
        good = (codes >= 0) & ~bad
        if good.any():
            table = np.column_stack([column.to_numpy() for column in values])
            self._spool.add(codes[good], times[good], lines[good], table[good])

    def signal(self, name: str) -> Signal:
        """One signal, laid out as one that was read from a file."""
        code, log = self.names[name], ProblemLog("row")
        bad = self._bad.get(code, [])
        if bad:
            log.add("bad time", len(bad), (f"row {line}" for line in bad))
        if code >= len(self._spool.counts) or not self._spool.counts[code]:
            raise DataError(f"signal {name!r} has no observation with a readable time, of {len(bad)}")
        rows = self._spool.rows(code)
        times, values, lines = (np.ascontiguousarray(rows[field]) for field in ("time", "values", "line"))
        if self._plan.shuffled:
            times, values = in_order(times, values)
            lines = np.arange(1, len(times) + 1)
        if self._plan.dated:
            times = times.view("datetime64[ns]")
        values = self._numbers(values, lines, log)
        given = self._plan.settings.get("interval")
        interval = None if given is None else as_interval(given, dated=self._plan.dated)
        timeline = regularize(Timeline(times, values, lines), log, interval, self._plan.longest_gap)
        return Signal(
            name=name,
            features=self._plan.features,
            times=timeline.times,
            values=timeline.values,
            lines=timeline.lines,
            interval=timeline.interval,
            problems=tuple(log),
        )

    def close(self) -> None:
        self._spool.close()

    def _numbers(self, values: NDArray[np.float64], lines: NDArray[Any], log: ProblemLog) -> NDArray[np.float64]:
        columns = []
        for feature, column in zip(self._plan.features, values.T, strict=True):
            numbers, why = read_numbers(column)
            columns.append(numbers)
            for reason, kind in KIND_OF.items():
                places = lines[why == reason] if why is not None else lines[:0]
                if len(places):
                    log.add(kind, len(places), (f"row {line}, column {feature}" for line in places))
        return np.column_stack(columns)


def read_times(carried: NDArray[Any], plan: SparkPlan) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Times as stored in a spool, nanoseconds or numbers, and which of them are missing."""
    if not plan.dated:
        return carried, ~np.isfinite(carried)
    moments = carried.view("datetime64[us]")
    rule = choose_time_parser(moments)
    times = moments.view(np.int64) if rule is None else rule.read(moments)[0]
    return times, np.asarray(times == NAT)


def in_order(times: NDArray[Any], values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Rows by time, equal times by value, the smallest first and NaN last.

    After a shuffle there is no first row: the result must not depend on the order of arrival.
    """
    order = np.lexsort((*values.T[::-1], times))
    return times[order], values[order]

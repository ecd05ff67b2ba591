"""A signal's history for a chart: fewer observations than are stored, chosen so that nothing strange is lost."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from tocsin_monitor.observations import Status
from tocsin_monitor.store import encoding, schema
from tocsin_monitor.store.reader import StoreReader
from tocsin_monitor.store.rows import ObservationRow, SignalRow

#: The fewest observations that can be asked for: those of one bucket of a signal with 64 features fit in.
LEAST_POINTS = 200
# So many rows are in memory at once.
_PIECE = 20_000
# What a bucket keeps besides the least and the greatest value of each feature: the lowest p, the alarm with the lowest
# p, the first missing value, and the first and the last observation in maintenance.
_OTHERS = 5


@dataclass(frozen=True, slots=True)
class Thinned:
    """Observations by time, and whether some were left out between them."""

    rows: list[ObservationRow]
    thinned: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """Columns of observations that follow each other."""

    times: NDArray[np.int64]
    values: NDArray[np.float64]
    p: NDArray[np.float64]
    alarm: NDArray[np.bool_]
    maintenance: NDArray[np.bool_]


@dataclass(slots=True)
class _Bucket:
    """The best found so far for each reason to keep an observation: how good it is, and its time."""

    best: dict[object, tuple[float, int]] = field(default_factory=dict)

    def offer(self, reason: object, cost: float, time: int) -> None:
        known = self.best.get(reason)
        if known is None or cost < known[0]:
            self.best[reason] = cost, time

    def look_through(self, piece: _Piece, first: int, last: int) -> None:
        """Take in the observations of a piece from one position up to another."""
        times = piece.times[first:last]
        values = piece.values[first:last]
        for feature in range(values.shape[1]):
            self._least(("least", feature), values[:, feature], times)
            self._least(("greatest", feature), -values[:, feature], times)
        p, alarm = piece.p[first:last], piece.alarm[first:last]
        self._least("p", p, times)
        # An alarm whose p is not known is one all the same.
        self._least("alarm", np.where(alarm, np.nan_to_num(p, nan=2.0), np.nan), times)
        self._edge("missing", np.asarray(np.isnan(values).any(axis=1)), times)
        self._edge("maintenance begins", piece.maintenance[first:last], times)
        self._edge("maintenance ends", piece.maintenance[first:last], times, newest=True)

    def _edge(
        self, reason: object, which: NDArray[np.bool_], times: NDArray[np.int64], *, newest: bool = False
    ) -> None:
        """Keep the first of these observations, or the newest. Times are compared as whole numbers: they are long."""
        found = times[which]
        if len(found):
            time = int(found[-1 if newest else 0])
            self.offer(reason, -time if newest else time, time)

    def _least(self, reason: object, cost: NDArray[np.float64], times: NDArray[np.int64]) -> None:
        there = np.flatnonzero(~np.isnan(cost))
        if len(there):
            at = there[cost[there].argmin()]
            self.offer(reason, float(cost[at]), int(times[at]))


def thinned_history(reader: StoreReader, signal: SignalRow, start: int | None, end: int | None, points: int) -> Thinned:
    """At most `points` of the observations from `start` to `end`, both included; all of them where they are as few.

    Time is cut into equal buckets. Each keeps the observations with the least and the greatest value of every feature,
    with the lowest p, an alarm, a missing value, and where maintenance begins and ends: what stands out at any zoom
    stands out here too. Memory is bounded by `points`, whatever is stored.
    """
    span = _span(reader, signal, start, end)
    if span is None:
        return Thinned([], thinned=False)
    first, last = span
    whole = reader.observations(signal.id, after=first - 1, until=last, limit=points + 1)
    if len(whole) <= points:
        return Thinned(whole, thinned=False)
    del whole
    kept = {first, last}
    count = max(1, (points - len(kept)) // (2 * len(signal.features) + _OTHERS))
    width = -(-(last - first + 1) // count)
    at, bucket = -1, _Bucket()
    for piece in _pieces(reader, signal, first, last):
        numbers = (piece.times.view(np.uint64) - np.uint64(first % 2**64)) // np.uint64(width)
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for begin, stop in pairwise(edges):
            if numbers[begin] != at:
                kept.update(time for _, time in bucket.best.values())
                at, bucket = int(numbers[begin]), _Bucket()
            bucket.look_through(piece, begin, stop)
    kept.update(time for _, time in bucket.best.values())
    found = reader.observations_at((signal.id, time) for time in sorted(kept))
    return Thinned(sorted(found.values(), key=lambda row: row.time), thinned=True)


def _span(reader: StoreReader, signal: SignalRow, start: int | None, end: int | None) -> tuple[int, int] | None:
    """The first and the last time that there is."""
    columns = schema.observations.c
    wanted = select(columns.time).where(columns.signal == signal.id)
    if start is not None:
        wanted = wanted.where(columns.time >= start)
    if end is not None:
        wanted = wanted.where(columns.time <= end)
    first = reader.connection.execute(wanted.order_by(columns.time).limit(1)).scalars().first()
    last = reader.connection.execute(wanted.order_by(columns.time.desc()).limit(1)).scalars().first()
    return None if first is None or last is None else (first, last)


def _pieces(reader: StoreReader, signal: SignalRow, first: int, last: int) -> Iterator[_Piece]:
    """Observations by time, as columns, some at a time."""
    several = len(signal.features) > 1
    place = "?" if reader.connection.dialect.name == "sqlite" else "%s"
    # Plain SQL and the driver's own rows: there may be millions.
    result = reader.connection.exec_driver_sql(
        f"SELECT time, status, {'parts' if several else 'value'}, p, alarm FROM observations"  # noqa: S608
        f" WHERE signal = {place} AND time BETWEEN {place} AND {place} ORDER BY time",
        (signal.id, first, last),
        execution_options={"stream_results": True},
    )
    with closing(result):
        cursor = result.cursor
        while cursor is not None and (rows := cursor.fetchmany(_PIECE)):
            times, status, values, p, alarm = zip(*rows, strict=True)
            numbers = [encoding.parts_values(one) for one in values] if several else values
            yield _Piece(
                np.array(times, dtype=np.int64),
                np.array(numbers, dtype=np.float64).reshape(len(rows), -1),
                np.array(p, dtype=np.float64),
                np.array(alarm, dtype=bool),
                np.array(status) == int(Status.MAINTENANCE),
            )

"""Exports stored observations, verdicts and incidents as columns of tables."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin_monitor.fields import DeclaredField, declared
from tocsin_monitor.levels import level_of
from tocsin_monitor.store import IncidentRow, ObservationRow, SignalRow, StoreReader

# Rows read at once.
PIECE = 10_000
_PARTS = ("value", "forecast", "low", "high")
# Of an incident.
_LEFT_OUT = ("contributions", "feature_p", "snoozed_until", "event")

Columns = dict[str, NDArray[Any]]


class Export:
    """The tables of some signals, from one time to another, both included (None: no limit).

    The features of all exported signals are columns. A feature that a signal lacks is missing in its rows. If a signal
    has a single feature, its column is "value".
    """

    def __init__(self, reader: StoreReader, signals: Sequence[SignalRow], start: int | None, end: int | None) -> None:
        self._reader, self._signals, self._start, self._end = reader, signals, start, end
        self._features = list(dict.fromkeys(name for signal in signals for name in _features(signal)))

    def observations(self) -> Iterator[Columns]:
        for signal, rows in self._pieces():
            yield {**self._keys(signal, rows), **self._parts(signal, rows, "value", prefix="")}

    def verdicts(self) -> Iterator[Columns]:
        """The observations with their verdicts. Those without a verdict have no p."""
        for signal, rows in self._pieces():
            judged = [row.judged for row in rows]
            columns = self._keys(signal, rows)
            for part in _PARTS:
                columns |= self._parts(signal, rows, part, prefix=f"{part} ")
            yield columns | {
                "p": np.array([one.p for one in judged], dtype=np.float64),
                "severity": np.array([one.severity for one in judged], dtype=np.float64),
                "alarm": np.array([one.alarm for one in judged], dtype=np.bool_),
                "warm": np.array([one.warm for one in judged], dtype=np.bool_),
            }

    def incidents(self) -> Iterator[Columns]:
        names = {signal.id: signal.name for signal in self._signals}
        before = None
        while rows := self._reader.incidents(
            signal_ids=list(names), since=self._start, before_id=before, limit=PIECE
        ):  # fmt: skip
            before = rows[-1].id
            yield _incidents([row for row in rows if self._end is None or row.start <= self._end], names)

    def _pieces(self) -> Iterator[tuple[SignalRow, list[ObservationRow]]]:
        for signal in self._signals:
            after = None if self._start is None else self._start - 1
            while rows := self._reader.observations(signal.id, after=after, until=self._end, limit=PIECE):
                after = rows[-1].time
                yield signal, rows

    def _keys(self, signal: SignalRow, rows: Sequence[ObservationRow]) -> Columns:
        return {
            "signal": np.full(len(rows), signal.name, dtype=object),
            "time": np.array([row.time for row in rows], dtype="datetime64[ns]"),
            "status": np.array([row.status.name.lower() for row in rows], dtype=object),
        }

    def _parts(self, signal: SignalRow, rows: Sequence[ObservationRow], part: str, *, prefix: str) -> Columns:
        """A column for each feature of all signals."""
        places = {name: place for place, name in enumerate(_features(signal))}
        found = np.array([getattr(row.judged, part) for row in rows], dtype=np.float64)
        nothing = np.full(len(rows), np.nan)
        return {
            (part if name == "value" else f"{prefix}{name}"): found[:, places[name]] if name in places else nothing
            for name in self._features
        }


def _features(signal: SignalRow) -> tuple[str, ...]:
    return signal.features if len(signal.features) > 1 else ("value",)


def _incidents(rows: Sequence[IncidentRow], names: dict[int, str]) -> Columns:
    columns = {field.name: _column(field, rows) for field in declared(IncidentRow) if field.name not in _LEFT_OUT}
    levels = np.array([level_of(row) for row in rows], dtype=object)
    return {**columns, "signal": np.array([names[row.signal] for row in rows], dtype=object), "level": levels}


def _column(field: DeclaredField, rows: Sequence[IncidentRow]) -> NDArray[Any]:
    given = [getattr(row, field.name) for row in rows]
    if field.is_time:
        return np.array(["NaT" if time is None else np.datetime64(time, "ns") for time in given], "datetime64[ns]")
    if field.origin is tuple:
        return np.array([", ".join(one) for one in given], dtype=object)
    if field.optional or field.type not in (int, float, bool):
        return np.array(["" if one is None else str(one) for one in given], dtype=object)
    return np.array(given, dtype=field.type)

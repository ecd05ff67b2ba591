"""How values become columns of the store, and columns values again, bit for bit."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tocsin_monitor.fields import declared
from tocsin_monitor.observations import Status, StoredVerdict, VerdictColumns
from tocsin_monitor.store import schema
from tocsin_monitor.store.rows import IncidentRow, ObservationColumns, ObservationRow

NAN = float("nan")
_INFINITE = (float("inf"), float("-inf"))
_STATUSES = tuple(Status)  # indexing is faster than Status(number)
_PARTS = ("value", "forecast", "low", "high", "feature_p")


def observation_to_columns(row: ObservationRow) -> tuple[Any, ...]:
    """The columns of an observation, in the order of the table."""
    judged = row.judged
    p = None if judged.p != judged.p else float(judged.p)
    merged = None if judged.merged != judged.merged else float(judged.merged)
    if len(judged.value) == 1:
        value, forecast, low = judged.value[0], judged.forecast[0], judged.low[0]
        high, feature_p = judged.high[0], judged.feature_p[0]
        return (
            row.signal,
            row.time,
            int(row.status),
            None if value != value else float(value),
            None if forecast != forecast else float(forecast),
            None if low != low else float(low),
            None if high != high else float(high),
            p,
            merged,
            None if feature_p != feature_p else float(feature_p),
            bool(judged.alarm),
            bool(judged.warm),
            None,
        )
    parts = _parts_to_text([getattr(judged, name) for name in _PARTS])
    nothing = (None,) * 4
    alarm, warm = bool(judged.alarm), bool(judged.warm)
    return (row.signal, row.time, int(row.status), *nothing, p, merged, None, alarm, warm, parts)


def _parts_to_text(parts: Sequence[Sequence[float]]) -> str:
    """The numbers of `_PARTS` of an observation with several features, as JSON."""
    text = json.dumps(dict(zip(_PARTS, parts, strict=True)))
    if "N" in text or "I" in text:  # NaN or Infinity, which JSON lacks; nothing else contains these letters
        plain = ([_plain(number) for number in numbers] for numbers in parts)
        text = json.dumps(dict(zip(_PARTS, plain, strict=True)))
    return text


def observation_from_columns(columns: Sequence[Any]) -> ObservationRow:
    """The inverse of `observation_to_columns`."""
    signal, time, status, value, forecast, low, high, p, merged, feature_p, alarm, warm, parts = columns
    p, merged = NAN if p is None else p, NAN if merged is None else merged
    if parts is None:
        judged = StoredVerdict(
            (NAN if value is None else value,),
            (NAN if forecast is None else forecast,),
            (NAN if low is None else low,),
            (NAN if high is None else high,),
            p,
            merged,
            (NAN if feature_p is None else feature_p,),
            bool(alarm),
            bool(warm),
        )
    else:
        several = {
            name: tuple(NAN if number is None else float(number) for number in numbers)
            for name, numbers in json.loads(parts).items()
        }
        judged = StoredVerdict(p=p, merged=merged, alarm=bool(alarm), warm=bool(warm), **several)
    return ObservationRow(signal, time, _STATUSES[status], judged)


def observation_columns(rows: Sequence[Sequence[Any]]) -> ObservationColumns:
    """Columns from rows (time, status, value, parts)."""
    times, statuses, values, parts = zip(*rows, strict=True) if rows else ((), (), (), ())
    several = [parts_values(one) for one in parts if one is not None]
    # None becomes NaN.
    found = np.array(several or values, dtype=np.float64).reshape(len(rows), -1 if rows else 1)
    return ObservationColumns(np.array(times, dtype=np.int64), np.array(statuses, dtype=np.int64), found)


def parts_values(parts: str) -> list[float]:
    """The values alone of an observation with several features."""
    return [NAN if number is None else float(number) for number in json.loads(parts)["value"]]


def values_to_bytes(times: Sequence[int], values: Sequence[tuple[float, ...]]) -> bytes:
    """All times, then a row of values for each."""
    return np.array(times, dtype="<i8").tobytes() + np.array(values, dtype="<f8").tobytes()


def values_from_bytes(stored: bytes, count: int) -> tuple[list[int], list[tuple[float, ...]]]:
    """The inverse of `values_to_bytes`, for `count` times."""
    times = np.frombuffer(stored, dtype="<i8", count=count)
    values = np.frombuffer(stored, dtype="<f8", offset=times.nbytes).reshape(count, -1)
    return times.tolist(), [tuple(row) for row in values.tolist()]


def values_to_text(values: Iterable[float]) -> str:
    """The values of the features, in order, as JSON."""
    return json.dumps([_plain(number) for number in values])


def values_from_text(text: str) -> tuple[float, ...]:
    """The inverse of `values_to_text`."""
    return tuple(NAN if number is None else float(number) for number in json.loads(text))


def numbers_to_text(numbers: Mapping[str, float]) -> str:
    """Numbers by name, as JSON."""
    return json.dumps({name: _plain(number) for name, number in numbers.items()})


def numbers_from_text(text: str) -> dict[str, float]:
    """The inverse of `numbers_to_text`."""
    return {name: NAN if number is None else float(number) for name, number in json.loads(text).items()}


def incident_to_columns(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of an incident as they are stored."""
    return {name: _TEXTS[name][0](value) if name in _TEXTS else value for name, value in fields.items()}


def incident_from_columns(columns: dict[str, Any]) -> IncidentRow:
    """An incident as it was stored."""
    found: dict[str, Any] = {}
    for name, value in columns.items():
        missing = NAN if name in _NUMBERS and value is None else value
        found[name] = _TEXTS[name][1](value) if name in _TEXTS else missing
    return IncidentRow(**found)


def names_to_text(names: Iterable[str]) -> str:
    """Names, in order, as JSON."""
    return json.dumps(list(names))


def names_from_text(text: str) -> tuple[str, ...]:
    """The inverse of `names_to_text`."""
    return tuple(json.loads(text))


def _plain(number: float) -> float | str | None:
    """A number as JSON can write it: null for NaN, text for infinities."""
    if number != number:
        return None
    return str(float(number)) if number in _INFINITE else float(number)


_NAMES = ", ".join(schema.observations.c.keys())
_INSERT = f"INSERT INTO observations ({_NAMES}) VALUES ({', '.join('?' * len(schema.observations.c))})"  # noqa: S608
_COPY = f"COPY observations ({_NAMES}) FROM STDIN (FORMAT BINARY)"
_COPY_TYPES = ("int8", "int8", "int2", *["float8"] * 7, "bool", "bool", "text")


def insert_observations(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add observations, given as columns. It is an error if one is stored already: nothing is overwritten."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_INSERT, list(rows))
        return
    with connection.connection.cursor() as cursor, cursor.copy(_COPY) as copy:  # type: ignore[attr-defined]
        copy.set_types(_COPY_TYPES)
        for row in rows:
            copy.write_row(row)


_VERDICT = ("forecast", "low", "high", "p", "merged", "feature_p", "alarm", "warm", "parts")
_KEY = ("signal", "time")
# Rows in one statement of SQLite, which takes a limited number of values. One row in each statement would give up the
# interpreter's lock for each, and get it back only when other threads let it.
_UPDATED = 500
_SET = ", ".join(f"{name} = new.{name}" for name in _VERDICT)
_UPDATE = f"""
UPDATE observations SET {_SET} FROM new WHERE observations.signal = new.signal AND observations.time = new.time
"""  # noqa: S608
_ARRAYS = ("int8", "int8", *["float8"] * 6, "bool", "bool", "text")


def update_verdicts(
    connection: Connection, signal: int, observations: ObservationColumns, verdicts: VerdictColumns
) -> None:
    """Store verdicts on observations of a signal that are stored already, and leave their values as they are."""
    times = observations.times.tolist()
    columns = [[signal] * len(times), times, *_verdict_columns(observations, verdicts)]
    names = ", ".join((*_KEY, *_VERDICT))
    if connection.dialect.name != "sqlite":
        news = f"SELECT * FROM unnest({', '.join(f'%s::{kind}[]' for kind in _ARRAYS)})"  # noqa: S608
        connection.exec_driver_sql(f"WITH new({names}) AS ({news}) {_UPDATE}", tuple(columns))
        return
    rows = list(zip(*columns, strict=True))
    for first in range(0, len(rows), _UPDATED):
        some = rows[first : first + _UPDATED]
        places = ", ".join([f"({', '.join('?' * len(columns))})"] * len(some))
        connection.exec_driver_sql(
            f"WITH new({names}) AS (VALUES {places}) {_UPDATE}", tuple(chain.from_iterable(some))
        )


def _verdict_columns(observations: ObservationColumns, verdicts: VerdictColumns) -> list[list[Any]]:
    """The columns `_VERDICT`."""
    p, merged = _nullable(verdicts.p), _nullable(verdicts.merged)
    flags = [verdicts.alarm.tolist(), verdicts.warm.tolist()]
    count, features = observations.values.shape
    nothing: list[Any] = [None] * count
    if features == 1:
        forecast, low, high, feature_p = (
            _nullable(column[:, 0]) for column in (verdicts.forecast, verdicts.low, verdicts.high, verdicts.feature_p)
        )
        return [forecast, low, high, p, merged, feature_p, *flags, nothing]
    parts = zip(
        observations.values.tolist(), verdicts.forecast.tolist(), verdicts.low.tolist(), verdicts.high.tolist(),
        verdicts.feature_p.tolist(), strict=True,
    )  # fmt: skip
    return [nothing, nothing, nothing, p, merged, nothing, *flags, [_parts_to_text(some) for some in parts]]


def _nullable(numbers: NDArray[np.float64]) -> list[float | None]:
    """The numbers, with None for NaN."""
    return [None if number != number else number for number in numbers.tolist()]


# How the fields of an incident that no database has are stored and read.
_CODES: dict[Any, Any] = {Mapping: (numbers_to_text, numbers_from_text), tuple: (names_to_text, names_from_text)}
_TEXTS = {one.name: _CODES[one.origin] for one in declared(IncidentRow) if one.origin in _CODES}
_NUMBERS = frozenset(one.name for one in declared(IncidentRow) if one.is_number)

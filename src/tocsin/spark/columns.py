"""Columns of a Spark table: which are used, checks of their types, and how they are sent to the workers.

Workers get no nulls and no dates: "" for no id, NaN for no value, and times as microseconds since 1970 or as plain
numbers. Spark would return dates in the time zone of its session, in which one hour a year occurs twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tocsin.data import Columns, DataError

#: "Not a time" in Spark and numpy, as a whole number.
NO_TIME = -(2**63)
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


class Clock(Enum):
    """What the times of a table are."""

    MOMENTS = "timestamp"
    LOCAL = "timestamp_ntz"
    NUMBERS = "double"

    @property
    def carried(self) -> str:
        """The Spark type in which times are sent."""
        return "double" if self is Clock.NUMBERS else "bigint"


@dataclass(frozen=True)
class Input:
    """The columns in use, and the kind of times."""

    columns: Columns
    clock: Clock


def choose(frame: Any, *, id: str, time: str, values: str | Iterable[str] | None) -> Input:  # noqa: A002
    """Check columns against the table; `values` are all other numeric ones if None. DataError names what is wrong."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    for role, name in (("id", id), ("time", time)):
        _require(role, name, types)
    if id == time:
        raise DataError(f"id and time must be different columns, got {id!r} for both")
    if not _is_name(types[id]):
        raise DataError(f"the id column {id!r} must hold texts or whole numbers, got {types[id].simpleString()}")
    if values is None:
        chosen = tuple(name for name, kind in types.items() if name not in (id, time) and _is_numeric(kind))
        if not chosen:
            raise DataError(f"the table has no numeric column besides {id!r} and {time!r}; its columns: {_list(types)}")
    else:
        chosen = (values,) if isinstance(values, str) else tuple(dict.fromkeys(values))
        if not chosen:
            raise DataError("values must name at least one column, got none")
    for name in chosen:
        _require("values", name, types)
        if name in (id, time):
            raise DataError(f"values must not include the time or id column, got {name!r}")
        if not _is_numeric(types[name]):
            raise DataError(f"the value column {name!r} must be numeric, got {types[name].simpleString()}")
    return Input(Columns(time, chosen, id), _clock(time, types[time]))


def carried(frame: Any, given: Input) -> Any:
    """The table as workers get it: `signal`, `time`, and a `value_N` for each feature."""
    from pyspark.sql import functions

    time = _column(given.columns.time)
    if given.clock is Clock.NUMBERS:
        stamp = functions.coalesce(time.cast("double"), functions.lit(float("nan")))
    elif given.clock is Clock.MOMENTS:
        stamp = functions.coalesce(functions.unix_micros(time), functions.lit(NO_TIME))
    else:
        quoted = _quoted(given.columns.time)
        micros = f"timestampdiff(MICROSECOND, {_EPOCH}, CAST({quoted} AS TIMESTAMP_NTZ))"
        stamp = functions.coalesce(functions.expr(micros), functions.lit(NO_TIME))
    name = functions.coalesce(functions.trim(_column(given.columns.id).cast("string")), functions.lit(""))
    numbers = [
        functions.coalesce(_column(value).cast("double"), functions.lit(float("nan"))).alias(f"value_{index}")
        for index, value in enumerate(given.columns.values)
    ]
    return frame.select(name.alias("signal"), stamp.alias("time"), *numbers)


def as_times(name: str, clock: Clock) -> Any:
    """A time column from the workers, in its original type."""
    from pyspark.sql import functions

    if clock is Clock.NUMBERS:
        return _column(name)
    if clock is Clock.MOMENTS:
        return functions.timestamp_micros(_column(name)).alias(name)
    seconds = f"CAST(CAST({_quoted(name)} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
    return functions.expr(f"{_EPOCH} + make_dt_interval(0, 0, 0, {seconds})").alias(name)


def _clock(name: str, kind: Any) -> Clock:
    from pyspark.sql import types

    if isinstance(kind, types.TimestampType):
        return Clock.MOMENTS
    if isinstance(kind, (types.TimestampNTZType, types.DateType)):
        return Clock.LOCAL
    if _is_numeric(kind):
        return Clock.NUMBERS
    raise DataError(
        f"the time column {name!r} must hold timestamps, dates or numbers, got {kind.simpleString()}; "
        "to_timestamp converts texts to timestamps"
    )


def _is_numeric(kind: Any) -> bool:
    from pyspark.sql import types

    return isinstance(kind, types.NumericType)


def _is_name(kind: Any) -> bool:
    from pyspark.sql import types

    return isinstance(kind, (types.StringType, types.IntegralType))


def _require(role: str, name: str, types: dict[str, Any]) -> None:
    if name not in types:
        raise DataError(f"the table has no column {name!r} (given as {role}); its columns: {_list(types)}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _quoted(name: str | None) -> str:
    return "`" + (name or "").replace("`", "``") + "`"


def _column(name: str | None) -> Any:
    from pyspark.sql import functions

    return functions.col(_quoted(name))

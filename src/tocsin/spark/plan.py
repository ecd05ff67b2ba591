"""What is asked of Spark: the columns of a table, and what workers need to know, the same for every signal.

Workers get no nulls and no dates: "" for no id, NaN for no value, and times as microseconds since 1970 or as plain
numbers. Spark would return dates in the time zone of its session, in which one hour a year occurs twice.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from tocsin.data import LONGEST_GAP, Columns, DataError
from tocsin.data.timeline import as_interval
from tocsin.detection import DetectorSettings
from tocsin.detection.settings.detector_settings import named_forecasters
from tocsin.forecasting import Forecaster, make_forecaster

_HOW = "pip install 'tocsin[spark]'"


def require_spark() -> None:
    """Fail without pyspark and pyarrow, with an error that says how to install them."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            raise ImportError(f"Spark needs {module}: {_HOW}")


def require_streaming() -> None:
    """Fail without the libraries that Spark's keyed state in Python needs."""
    require_spark()
    protobuf, pandas = _version("protobuf"), _version("pandas")
    if protobuf < (6, 33):
        raise ImportError(f"Spark's keyed state needs protobuf 6.33 or newer, got {_shown(protobuf)}: {_HOW}")
    if not (1,) <= pandas < (3,):
        raise ImportError(f"Spark's keyed state needs pandas older than 3, got {_shown(pandas)}: {_HOW}")


def _version(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version(package).split(".")[:2])
    except PackageNotFoundError:
        return ()


def _shown(found: tuple[int, ...]) -> str:
    return ".".join(map(str, found)) or "none"


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
        micros = f"timestampdiff(MICROSECOND, {_EPOCH}, CAST({quoted(given.columns.time)} AS TIMESTAMP_NTZ))"
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
    seconds = f"CAST(CAST({quoted(name)} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
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


def quoted(name: str | None) -> str:
    """A column's name as it is written in SQL."""
    return "`" + (name or "").replace("`", "``") + "`"


def _column(name: str | None) -> Any:
    from pyspark.sql import functions

    return functions.col(quoted(name))


@cache
def forecaster_of(name: str, options: str) -> Forecaster:
    """The forecaster with that name and these arguments (JSON), created once."""
    return make_forecaster(name, json.loads(options))


@dataclass(frozen=True)
class SparkPlan:
    """How signals are judged. `shuffled` means that rows arrive in no particular order."""

    features: tuple[str, ...]
    clock: Clock
    settings: Mapping[str, Any]
    shuffled: bool = False
    longest_gap: int = LONGEST_GAP

    @property
    def dated(self) -> bool:
        """Whether times are dates, not plain numbers."""
        return self.clock is not Clock.NUMBERS

    def text(self) -> str:
        """Everything as JSON."""
        return json.dumps({**asdict(self), "clock": self.clock.name})

    @classmethod
    def read(cls, text: str) -> "SparkPlan":
        """The plan that `text` returned."""
        given = json.loads(text)
        return cls(**{**given, "features": tuple(given["features"]), "clock": Clock[given["clock"]]})

    def detector_settings(self) -> dict[str, Any]:
        """The settings with the forecaster itself, which is loaded once in each process."""
        settings = dict(self.settings)
        named = named_forecasters(settings)
        settings.pop("forecaster_options", None)
        settings["forecaster"] = tuple(forecaster_of(name, json.dumps(options)) for name, options in named) or None
        return settings


def make_plan(given: Input, settings: Mapping[str, Any], *, interval_known: bool, shuffled: bool = False) -> SparkPlan:
    """A plan, after checking that a detector accepts these settings and that they are serialisable."""
    chosen = dict(settings)
    if isinstance(chosen.get("forecaster"), Forecaster):
        raise TypeError(f"forecaster must be given by name, to be sent to the workers, got {chosen['forecaster']!r}")
    for name, value in chosen.items():
        try:
            json.dumps(value)
        except TypeError:
            raise TypeError(
                f"{name} must be a text, a number or another plain value, to be sent to the workers, got {value!r}"
            ) from None
    plan = SparkPlan(given.columns.values, given.clock, chosen, shuffled)
    if chosen.get("interval") is not None:
        as_interval(chosen["interval"], dated=plan.dated)
    DetectorSettings.check({**chosen, "features": plan.features}, interval_known=interval_known)
    return plan

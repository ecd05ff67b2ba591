"""The models of requests, from which the OpenAPI document is generated."""

import math
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from tocsin_monitor.observations import LONGEST_NAME, MOST_FEATURES, time_of
from tocsin_monitor.rules import RULES, LimitHigh, LimitLow, MinDeviation, MinLevel, NoDataIsZero, ValidRange
from tocsin_monitor.schedules import LONGEST, Schedule
from tocsin_monitor.store import LabelName
from tocsin_monitor.tokens import MOST_PATTERNS, NAME_PATTERN, Role

# Databases reject text with NUL characters.
Text = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]
ShortText = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")]
Number = float | None

_MOMENT_WANTED = "ISO 8601 (UTC if it has no time zone), or a Unix time in s, ms, us or ns by its size"


Given = Annotated[
    int,
    BeforeValidator(time_of),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "description": _MOMENT_WANTED,
            "examples": ["2026-11-15T12:00:00Z"],
        }
    ),
]


def finite(value: Any) -> Any:
    """Reject numbers that are not finite: settings are stored as JSON, which cannot write them."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        finite(part)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("numbers must be finite")
    return value


Groups = tuple[tuple[str, ...], ...]


class Model(BaseModel):
    """A part of a request. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")
    #: Groups of fields, of each of which one must be given.
    one_of: ClassVar[Groups] = ()

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for *others, last in self.one_of:
            if sum(getattr(self, name) is not None for name in (*others, last)) != 1:
                several = f"one of {', '.join(others)} and {last}"
                raise ValueError(f"give {several if len(others) > 1 else f'either {others[0]} or {last}'}")
        return self


class ObservationIn(Model):
    """One observation."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"signal": "plant/pump 3/pressure", "time": "2026-11-15T12:00:00Z", "value": 4.21}
        },
    )

    signal: str = Field(description="The signal's name.", min_length=1, max_length=LONGEST_NAME)
    time: str | float | None = Field(None, description=f"{_MOMENT_WANTED}; by default the time of arrival.")
    value: float | list[Number] | dict[str, Number] | None = Field(
        description=f"A number, null if missing, or a list or an object with one for each of up to {MOST_FEATURES} "
        "features."
    )


class WhichSink(Model):
    """Which sink gets a test message."""

    name: ShortText | None = Field(None, description="Its name; by default all sinks.", examples=["plant-mail"])


class SignalIn(Model):
    """A signal's settings. Those not given come from its template, or stay as they are."""

    features: list[ShortText] | None = Field(
        None, min_length=1, max_length=MOST_FEATURES, description="Its feature names.", examples=[["x", "y"]]
    )
    detector: Annotated[dict[str, Any], AfterValidator(finite)] | None = Field(
        None, description="Settings of the detector.", examples=[{"alarm_rate": 0.001}]
    )
    silent_after: float | None = Field(
        None,
        gt=0,
        le=1e10,
        allow_inf_nan=False,
        description="Seconds without an observation before it is reported as silent.",
    )
    unit: ShortText | None = Field(None, description="The unit of its values.", examples=["bar"])
    valid_range: ValidRange = None
    limit_high: LimitHigh = None
    limit_low: LimitLow = None
    min_deviation: MinDeviation = None
    min_level: MinLevel = None
    no_data_is_zero: NoDataIsZero = None

    def wanted(self) -> dict[str, Any]:
        """What to change. A rule that is null is removed; one that is not given stays."""
        rules = self.model_dump(include=set(RULES), exclude_unset=True)
        return {**self.model_dump(exclude=set(RULES)), "rules": rules}


class ImportIn(Model):
    """A history file, and how to read it."""

    file: str = Field(
        min_length=1, max_length=LONGEST_NAME, pattern=r"^[^./\\\x00-\x1f][^/\\\x00-\x1f]*$",
        description="The file's name.",
        examples=["pump.csv"],
    )  # fmt: skip
    signal: str = Field(
        "{name}", min_length=1, max_length=LONGEST_NAME,
        description="The signal's name; {name} stands for its id in the file, or the file's name.",
        examples=["plant/{name}"],
    )  # fmt: skip
    format: str | None = Field(None, description="csv, tsv, jsonl or parquet; by default by file extension.")
    time: str | None = Field(None, description="The time column; by default detected.")
    value: list[str] = Field([], description="Value columns; by default all numeric columns.")
    id: str | None = Field(None, description="The column with the signal's name.")
    ignore: list[str] = Field([], description="Columns to ignore.")
    separate: bool = Field(False, description="Whether each value column is a separate signal.")
    every: str | None = Field(
        None, description="Aggregate observations over intervals of, say, 1min.", examples=["1min"]
    )
    aggregate: str = Field("mean", description="How to aggregate: mean, last, max, sum or count.")
    missing: list[str] = Field([], description="Values that mark a missing measurement.")
    delimiter: str | None = Field(None, description="Field separator; by default detected.")
    decimal: str | None = Field(None, description="The decimal point or comma; by default detected.")
    encoding: str | None = Field(None, description="For example latin-1; by default detected.")
    skip: int = Field(0, ge=0, le=10**6, description="Number of lines to skip at the start.")
    time_format: str | None = Field(None, description="The format of times.", examples=["%d.%m.%Y %H:%M"])
    day_first: bool | None = Field(None, description="How to read 01/02/2024; by default detected.")
    most_lost: float = Field(0.05, ge=0, le=1, description="Reject the file if more than this share of rows is lost.")

    def reading(self) -> dict[str, Any]:
        """The options for `read_signals`."""
        given = self.model_dump(exclude={"file", "signal", "value", "missing"})
        return {**given, "values": self.value or None, "missing": self.missing or None}


class ReferenceIn(Model):
    """A known-good stretch of a signal: from its first time to its last, both included."""

    start: Given
    end: Given


class ClockIn(Model):
    """The time up to which a signal's observations are correct."""

    to: Given | None = Field(None, description="By default now.")


class Acknowledgement(Model):
    """An acknowledgement."""

    note: Text | None = Field(None, description="What is known about it.")


class Snooze(Model):
    """A snooze: give until or seconds."""

    one_of: ClassVar[Groups] = (("until", "seconds"),)
    until: Given | None = None
    seconds: float | None = Field(None, gt=0, le=1e8, allow_inf_nan=False, examples=[3600])

    def end(self, now: int) -> int:
        return now + round((self.seconds or 0.0) * 1e9) if self.until is None else self.until


class Label(Model):
    """What it was."""

    label: LabelName | None = Field(description="null removes the label.")
    exclude: bool | None = Field(
        None, description="Whether to exclude its observations from the calibration set; by default unchanged."
    )
    hold: bool = Field(
        True,
        description="Whether the label holds for the next incidents like it; a false alarm never does.",
    )
    note: Text | None = None


class EventLabel(Model):
    """What an event was."""

    label: LabelName | None = Field(description="null removes the label.")
    note: Text | None = None


class MaintenanceIn(Model):
    """A time in which signals that match a pattern do not alarm."""

    pattern: ShortText = Field(description="A name pattern with * and ?.", examples=["plant/line 2/*"])
    start: Given | None = Field(None, description="By default now, if it recurs.")
    end: Given | None = Field(None, description="By default never, if it recurs.")
    reason: Text = ""
    schedule: ShortText | None = Field(
        None,
        description="It recurs: when it starts, as in cron (minute, hour, day, month, day of the week).",
        examples=["0 22 * * sat"],
    )
    duration: float | None = Field(
        None, ge=60, le=LONGEST, allow_inf_nan=False, description="How many seconds it then lasts.", examples=[7200]
    )
    time_zone: ShortText = Field("UTC", description="The time zone of the schedule.", examples=["Europe/Vienna"])

    @model_validator(mode="after")
    def _complete(self) -> "MaintenanceIn":
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("give both schedule and duration, or neither")
        if self.schedule is None and (self.start is None or self.end is None):
            raise ValueError("give start and end, or schedule and duration")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("end must be after start")
        if self.schedule is not None and self.duration is not None:
            Schedule(self.schedule, self.time_zone, self.duration)  # it says what is wrong with itself
        return self


class TokenIn(Model):
    """A token to create."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["line-2-gateway"])]
    role: Role
    expires: Given | None = None
    match: list[ShortText] = Field(
        [],
        max_length=MOST_PATTERNS,
        description="Name patterns, with * and ?, of the signals it is limited to; none for all.",
        examples=[["pump/*"]],
    )

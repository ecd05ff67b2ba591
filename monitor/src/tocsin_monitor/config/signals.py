"""The settings of signals by name pattern, and of what becomes of their incidents: events, relations and budgets."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tocsin.detection import PROPOSED, SECONDS, DetectorSettings, declared, named_forecasters, parse_budget
from tocsin.forecasting import available_forecasters, make_forecaster
from tocsin_monitor.config.section import DURATION, Seconds, Section
from tocsin_monitor.observations import MOST_FEATURES
from tocsin_monitor.rules import (
    RULES,
    LimitHigh,
    LimitLow,
    MinDeviation,
    MinLevel,
    NoDataIsZero,
    SignalRules,
    ValidRange,
    check_limits,
)

DETECTOR_SETTINGS = tuple(name for name, one in declared(DetectorSettings).items() if one.rule.configured)


class SignalTemplate(Section):
    """Settings of signals whose names match a pattern; the first match applies."""

    match: str = Field(description="A name pattern with * and ?.", min_length=1, examples=["pump/*"])
    features: tuple[str, ...] | None = Field(
        default=None,
        description="The feature names.",
        min_length=1,
        max_length=MOST_FEATURES,
        examples=[["vibration", "temperature"]],
    )
    silent_after: Seconds | None = Field(
        default=None,
        description="Report the signal as silent after this long without an observation; by default from its pace.",
        examples=["10min"],
    )
    unit: str | None = Field(
        default=None, description="The unit of the values, for the page, messages and reports.", examples=["mm/s"]
    )
    valid_range: ValidRange = None
    limit_high: LimitHigh = None
    limit_low: LimitLow = None
    min_deviation: MinDeviation = None
    min_level: MinLevel = None
    no_data_is_zero: NoDataIsZero = None
    every: Seconds | None = Field(
        default=None,
        description="Aggregate observations over this time and judge the result; this is then the interval.",
        examples=["1min"],
    )
    aggregate: Literal["mean", "last", "max", "sum", "count"] = Field(
        default="mean", description="How to aggregate: mean, last, max, sum or count."
    )
    peers: bool = Field(
        default=False,
        description="Also compare each signal with the others of the template, which should behave alike.",
    )
    detector: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of the detector, as in docs/detector.md; they override those of [detector].",
        examples=[{"alarm_rate": "1/week"}],
    )

    @model_validator(mode="after")
    def _one_interval(self) -> Self:
        if self.every is not None and "interval" in self.detector:
            raise ValueError(f"every sets the interval: omit detector.interval, got {self.detector['interval']!r}")
        return self

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        check_limits(self.valid_range, self.limit_low, self.limit_high)
        return self

    @property
    def settings(self) -> dict[str, Any]:
        return self.detector if self.every is None else {**self.detector, "interval": self.every}

    @property
    def rules(self) -> SignalRules:
        return SignalRules.model_validate({name: getattr(self, name) for name in RULES})

    def fits(self, name: str) -> bool:
        return fnmatchcase(name, self.match)


def check_detector(settings: Mapping[str, Any], features: Sequence[str] | None) -> None:
    """Reject settings that a detector would reject, without creating one."""
    unknown = sorted(set(settings) - set(DETECTOR_SETTINGS))
    if unknown:
        raise ValueError(f"a detector has no setting {', '.join(unknown)}; it has {', '.join(DETECTOR_SETTINGS)}")
    try:
        DetectorSettings.check({**settings, "features": list(features) if features else 1})
        for name, options in named_forecasters(settings):
            if any(options.get(option) for option in ("model", *_paths_of(name))):
                _load_once(name, json.dumps(options, sort_keys=True))
    except Exception as error:  # a forecaster of another package may raise anything
        raise ValueError(str(error) or type(error).__name__) from error


def proposed_rate(settings: Mapping[str, Any]) -> float:
    """The alarm rate of a signal under a budget: about one incident a week to choose from.

    At most one in 1,000 observations, which leaves a choice at any interval, and at least one in 10,000, which a signal
    can learn to tell.
    """
    interval = DetectorSettings(interval=settings.get("interval")).interval_seconds
    return PROPOSED if interval is None else min(max(interval / SECONDS["week"], PROPOSED / 10), PROPOSED)


@cache
def _load_once(forecaster: str, options: str) -> None:
    """Check that a model can be loaded, once for all signals that use it."""
    make_forecaster(forecaster, json.loads(options)).open(1, 1)


def _paths_of(forecaster: str) -> tuple[str, ...]:
    known = available_forecasters().get(forecaster)
    return () if known is None else known.paths


def with_known_files(settings: Mapping[str, Any], folder: Path | None, *trusted: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that somebody sent, with the full paths of files that they name in the folder.

    ValueError if they name others, unless the trusted settings do so too: what is there, what it says and how long it
    takes to read is not for everyone to find out.
    """
    try:
        found = dict(settings.get("forecaster_options") or {})
        paths = _paths_of(named_forecasters(settings)[0][0])
    except (IndexError, KeyError, TypeError, ValueError):
        return dict(settings)  # `check_detector` says what is wrong
    usual = [one.get("forecaster_options") or {} for one in trusted]
    for option in paths:
        value = found.get(option)
        if value is None or any(options.get(option) == value for options in usual):
            continue
        there = [] if folder is None else sorted(one.name for one in folder.iterdir())
        if folder is None or value not in there:
            accepted = f"one of {', '.join(there)}" if there else "set in the settings file"
            raise ValueError(f"forecaster_options.{option} must be {accepted}, since it names a file, got {value!r}")
        found[option] = str(folder / value)
    return {**settings, "forecaster_options": found} if found else dict(settings)


# None at all is allowed.
Wait = Annotated[float, DURATION, Field(ge=0, le=1e10)]


class EventSettings(Section):
    """Incidents that begin together and belong together are one event, with one message."""

    enabled: bool = Field(
        default=True, description="Whether incidents become events; otherwise each has its own message, at once."
    )
    window: Seconds = Field(
        default=300.0, description="An incident joins an event if it starts at most this long after its last start."
    )
    span: Seconds = Field(
        default=3600.0,
        description="The starts of an event's incidents are at most this far apart, or `window` if that is longer.",
    )
    levels: int = Field(
        default=2,
        ge=0,
        le=100,
        description="How many leading levels of signals' names (plant/line-3/...) are one place; 0 for no places.",
    )
    hold: Wait = Field(default=10.0, description="How long to wait for further incidents before the first message.")
    update_every: Seconds = Field(
        default=300.0, description="How often, at most, to send the message again while the event grows."
    )
    max_age: Seconds = Field(
        default=86400.0,
        description="What ended longer than this before the monitor learned of it is stored and shown, but not sent.",
    )


class DependsSettings(Section):
    """A known relation: where an event has both, what is depended on comes first if onsets cannot be told apart."""

    signal: str = Field(
        description="Which signals depend on others: a pattern with * and ?.", min_length=1, examples=["line-1/*"]
    )
    on: str = Field(
        description="On which signals they depend: a pattern with * and ?.", min_length=1, examples=["line-1/power"]
    )

    def relates(self, signal: str, on: str) -> bool:
        return signal != on and fnmatchcase(signal, self.signal) and fnmatchcase(on, self.on)


class BudgetSettings(Section):
    """A limit on the incidents reported for signals whose names match a pattern; the first match applies."""

    match: str = Field(default="*", description="Which signals share it: a pattern with * and ?.", min_length=1)
    incidents: str = Field(
        description=f"How many incidents of all these signals go to sinks, per {', '.join(SECONDS)}.",
        examples=["5/week"],
    )

    @field_validator("incidents")
    @classmethod
    def _check(cls, value: str) -> str:
        parse_budget("incidents", value)
        return value

    @property
    def per_second(self) -> float:
        incidents, seconds = parse_budget("incidents", self.incidents)
        return incidents / seconds

    def fits(self, name: str) -> bool:
        return fnmatchcase(name, self.match)

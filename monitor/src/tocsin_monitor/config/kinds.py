"""Kinds of sources, sinks and pushed formats, ours and those of other packages, and which messages a sink gets.

A kind is a class of settings that names its implementation, which is imported only when configured. Everything that
lists kinds (settings, their validation, the example and the page of settings, the engine) reads them here.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, get_args
from zoneinfo import ZoneInfo

from pydantic import Field, create_model, field_validator, model_validator

from tocsin_monitor.config.section import LabelPattern, Name, Seconds, Section

Told = Literal["opened", "accepted", "ended"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)")


class DeliveryRules(Section):
    """The rules of one sink."""

    match: str = Field(default="*", description="Which signals' incidents: a pattern with * and ?.")
    min_severity: float = Field(default=0.0, ge=0, description="Only incidents of at least this severity.")
    messages: tuple[Told, ...] = Field(
        default=get_args(Told),
        min_length=1,
        description="Which messages: opened; accepted (it ended as the new normal); ended (for any other reason).",
    )
    days: tuple[Day, ...] = Field(
        default=DAYS, min_length=1, description="On which days; on others, messages wait for the next one of these."
    )
    hours: str = Field(
        default="00:00-24:00", description="Between which times of day, possibly over midnight; outside, messages wait."
    )
    time_zone: str = Field(default="UTC", description="The time zone of days and hours, such as Europe/Vienna.")
    after: Seconds | None = Field(
        default=None,
        description="Escalation: only incidents that are still open and not acknowledged after this time.",
        examples=["15min"],
    )

    @field_validator("hours", mode="after")
    @classmethod
    def _hours(cls, hours: str) -> str:
        if not _HOURS.fullmatch(hours) or hours[:5] == hours[6:]:
            raise ValueError('must be two different times such as "07:00-19:00" or "22:00-06:00"')
        return hours

    @field_validator("time_zone", mode="after")
    @classmethod
    def _time_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError):  # it looks for a file of this name
            raise ValueError("must be a time zone such as UTC or Europe/Vienna") from None
        return name

    @model_validator(mode="after")
    def _escalates_something(self) -> Self:
        if self.after is not None and "opened" not in self.messages:
            raise ValueError('after needs "opened" in messages: it delays that message')
        return self

    def wants(self, signal: str, severity: float) -> bool:
        return fnmatchcase(signal, self.match) and severity >= self.min_severity

    def next_time(self, moment: int) -> int:
        """The moment itself if messages may be sent then, otherwise the beginning of the next time when they may."""
        if self.hours == "00:00-24:00" and set(self.days) == set(DAYS):
            return moment
        zone = ZoneInfo(self.time_zone)
        local = datetime.fromtimestamp(moment / 1e9, zone)
        begin, end = time.fromisoformat(self.hours[:5]), time.fromisoformat(self.hours[6:].replace("24:00", "00:00"))
        # From the day before, whose hours may last over midnight, to the same weekday in a week.
        for day in (local.date() + timedelta(days=ahead) for ahead in range(-1, 9)):
            if DAYS[day.weekday()] not in self.days:
                continue
            first = datetime.combine(day, begin, zone)
            last = datetime.combine(day + timedelta(days=1) if end <= begin else day, end, zone)
            if local.timestamp() < last.timestamp():
                return max(moment, round(first.timestamp() * 1e9))
        raise AssertionError("a week has every day")


class Kind(Section):
    """The settings of something that other packages may add, and its implementation."""

    #: The implementation, as "module:name"; imported when used.
    implementation: ClassVar[str]
    #: The extra that it needs, if any.
    extra: ClassVar[str | None] = None

    @classmethod
    def load(cls) -> Any:
        module, _, name = cls.implementation.partition(":")
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if cls.extra is None:
                raise
            raise ValueError(f"this needs an extra: pip install 'tocsin-monitor[{cls.extra}]' ({error})") from error


class KindSettings(Kind):
    """The settings of a source or a sink."""

    name: Name


class SourceSettings(KindSettings):
    """Where observations come from."""

    name: Name = Field(description="Its name in metrics and logs.", examples=["source"])


class SinkSettings(DeliveryRules, KindSettings):
    """Where incidents are sent."""

    name: Name = Field(description="Its name in metrics and logs.", examples=["sink"])
    timeout: Seconds = Field(default=10.0, description="How long to wait for a reply.")


class PushRule(Kind):
    """A format that others push over HTTP: which of its series are signals, and their names.

    Its implementation is a `tocsin_monitor.http.push.PushFormat`.
    """

    match: str = Field(default="*", min_length=1, description="Which series, by name: a pattern with * and ?.")
    signal: LabelPattern | None = Field(
        default=None,
        description="The signal's name, such as 'load/{instance}'; by default the name with all labels.",
        examples=["load/{instance}"],
    )


S = TypeVar("S", bound=Kind)


class KindGroup(Section, Generic[S]):
    """All sources, all sinks, or the rules of all pushed formats: one list per kind."""

    kinds: ClassVar[Mapping[str, type[Kind]]] = {}

    def each(self) -> Iterator[tuple[str, S]]:
        """All that are configured, each with its place: `mqtt[0]`."""
        for kind in self.kinds:
            for number, one in enumerate(getattr(self, kind)):
                yield f"{kind}[{number}]", one


def group_of(
    name: str, about: str, points: str, base: type[S], built_in: Mapping[str, type[S]] | None = None
) -> type[KindGroup[S]]:
    """A group with the built-in kinds and those that packages register as entry points.

    Built-in names take precedence.
    """
    kinds = dict(built_in or {})
    for point in sorted(entry_points(group=points), key=lambda point: point.name):
        if not point.name.isidentifier():
            raise ValueError(f"a name in {points} must consist of letters, digits and _, got {point.name!r}")
        kind = point.load()
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise TypeError(f"the entry point {point.name!r} of {points} must be a {base.__name__}, got {kind!r}")
        kinds.setdefault(point.name, kind)
    fields: dict[str, Any] = {
        kind: (tuple[settings, ...], Field(default=(), description=(settings.__doc__ or "").partition("\n")[0]))  # type: ignore[valid-type]
        for kind, settings in kinds.items()
    }
    group = create_model(name, __base__=KindGroup[base], __doc__=about, **fields)  # type: ignore[valid-type]
    group.kinds = kinds
    return group

"""Which messages a sink gets, and when."""

import re
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Literal, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from tocsin_monitor.config.section import Seconds, Section

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
        """Whether it receives an incident at all."""
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

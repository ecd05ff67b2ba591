"""The settings of budgets: how many incidents people are told of."""

from fnmatch import fnmatchcase

from pydantic import Field, field_validator

from tocsin.detection.alarm_rate import SECONDS, parse_budget
from tocsin.service.config.section import Section


class BudgetSettings(Section):
    """How many incidents of the signals whose names fit a pattern are told; the first that fits counts."""

    match: str = Field(default="*", description="Which signals share it, a pattern with * and ?.", min_length=1)
    incidents: str = Field(
        description=f"How many incidents of all of them together sinks are told of, per {', '.join(SECONDS)}.",
        examples=["5/week"],
    )

    @field_validator("incidents")
    @classmethod
    def _check(cls, value: str) -> str:
        parse_budget("incidents", value)
        return value

    @property
    def per_second(self) -> float:
        """How many incidents a second it allows."""
        incidents, seconds = parse_budget("incidents", self.incidents)
        return incidents / seconds

    def fits(self, name: str) -> bool:
        """Whether it is for a signal of this name."""
        return fnmatchcase(name, self.match)

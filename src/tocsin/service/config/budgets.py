"""The settings of budgets: how many incidents are reported."""

from fnmatch import fnmatchcase

from pydantic import Field, field_validator

from tocsin.detection.alarm_rate import SECONDS, parse_budget
from tocsin.service.config.section import Section


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
        """The number of incidents it allows per second."""
        incidents, seconds = parse_budget("incidents", self.incidents)
        return incidents / seconds

    def fits(self, name: str) -> bool:
        """Whether it applies to a signal with this name."""
        return fnmatchcase(name, self.match)

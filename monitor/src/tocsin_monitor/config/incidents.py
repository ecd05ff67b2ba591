"""The settings of events and budgets: which incidents belong together, and how many are reported."""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, field_validator

from tocsin.detection import SECONDS, parse_budget
from tocsin_monitor.config.section import DURATION, Seconds, Section

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

"""All settings of the monitor."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from tocsin.data import memory_of_machine
from tocsin_monitor.config.kinds import KindGroup, PushRule, group_of
from tocsin_monitor.config.section import Section
from tocsin_monitor.config.server import EngineSettings, ServerSettings, StorageSettings
from tocsin_monitor.config.signals import (
    BudgetSettings,
    DependsSettings,
    EventSettings,
    SignalTemplate,
    check_detector,
    proposed_rate,
)
from tocsin_monitor.config.sinks import Sinks
from tocsin_monitor.config.sources import Sources
from tocsin_monitor.errors import settings_at

if TYPE_CHECKING:
    PushSettings = KindGroup[PushRule]
else:
    PushSettings = group_of("PushSettings", "Rules of what others push in their own formats.", "tocsin.push", PushRule)


class Settings(Section):
    """All settings. They read nothing by themselves: `read_settings` reads files and environment variables."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The log level: debug, info, warning or error."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="The log's format: text, or json for one object per line."
    )
    server: ServerSettings = Field(default=ServerSettings(), description="The HTTP server.")
    storage: StorageSettings = Field(default=StorageSettings(), description="Where data are stored.")
    engine: EngineSettings = Field(default=EngineSettings(), description="How observations are processed.")
    detector: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of every detector, as in docs/detector.md.",
        examples=[{"alarm_rate": "1/day", "interval": "1min"}],
    )
    templates: tuple[SignalTemplate, ...] = Field(
        default=(), description="Settings of signals whose names match a pattern; the first match applies."
    )
    budgets: tuple[BudgetSettings, ...] = Field(
        default=(), description="How many incidents are reported, for all signals or by name pattern."
    )
    events: EventSettings = Field(
        default=EventSettings(), description="Which incidents belong together, and when a message is sent."
    )
    depends: tuple[DependsSettings, ...] = Field(
        default=(), description="What signals are known to depend on, for the order of an event's signals."
    )
    sources: Sources = Field(default=Sources(), description="Where observations come from, besides HTTP.")
    push: PushSettings = Field(
        default=PushSettings(), description="What others push over HTTP in their own formats: names of signals."
    )
    sinks: Sinks = Field(default=Sinks(), description="Where incidents go.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        with settings_at("detector"):
            check_detector(self.detector, None)
        for number, template in enumerate(self.templates):
            self.check_template(template, f"templates[{number}].detector")
        for kind, parts in (("sources", self.sources), ("sinks", self.sinks)):
            names = [one.name for _, one in parts.each()]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{kind}: names must be unique, got {', '.join(twice)} more than once")
        return self

    @property
    def store_url(self) -> str:
        if self.storage.url is None:
            return f"sqlite:///{self.storage.folder / 'tocsin.db'}"
        url = self.storage.url.get_secret_value()
        for prefix in ("postgres://", "postgresql://"):
            if url.startswith(prefix):
                return "postgresql+psycopg://" + url.removeprefix(prefix)
        return url

    @property
    def threads(self) -> int:
        return self.engine.threads or os.cpu_count() or 1

    @property
    def most_detector_bytes(self) -> int:
        return self.engine.max_detector_bytes or memory_of_machine() // 2

    def check_template(self, template: SignalTemplate, path: str = "detector") -> None:
        """Reject a template if no detector can have its settings on top of those in `[detector]`."""
        settings = {**self.detector, **template.settings}
        with settings_at(path):
            check_detector(settings, template.features)
        template.rules.check_zero(template.silent_after, settings.get("interval"))
        if template.peers and settings.get("interval") is None:
            raise ValueError("peers needs an interval, in which signals are compared: set detector.interval, or every")

    def with_templates(self, stored: Iterable[SignalTemplate]) -> Self:
        """The settings with stored templates: one with the pattern of another takes its place.

        Any other one comes before the first whose pattern is shorter, so that `pump/3/*` goes before `pump/*`, and `*`
        after everything.
        """
        left = {template.match: template for template in stored}
        templates = [left.pop(template.match, template) for template in self.templates]
        for template in sorted(left.values(), key=lambda one: (-len(one.match), one.match)):
            shorter = (place for place, one in enumerate(templates) if len(one.match) < len(template.match))
            templates.insert(next(shorter, len(templates)), template)
        return self.model_copy(update={"templates": tuple(templates)})

    def template_for(self, name: str) -> SignalTemplate | None:
        return next((template for template in self.templates if template.fits(name)), None)

    def detector_for(self, name: str) -> dict[str, Any]:
        """The detector settings of a signal without its own configuration."""
        template = self.template_for(name)
        return self.with_proposals(name, {**self.detector, **(template.settings if template else {})})

    def with_proposals(self, name: str, detector: dict[str, Any]) -> dict[str, Any]:
        """The detector settings of a signal, with an alarm rate if it has none: under a budget nobody chooses one."""
        if "alarm_rate" in detector or not any(budget.fits(name) for budget in self.budgets):
            return detector
        return {**detector, "alarm_rate": proposed_rate(detector)}

"""A message about an incident in words, for sinks that write to people."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from string import Formatter
from typing import Any

from tocsin_monitor.as_json import incident_json, number
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import TextSettings
from tocsin_monitor.event_text import members_of
from tocsin_monitor.sinks.alerts import alert_of, link_to, several, told_as, told_level
from tocsin_monitor.store import IncidentRow, Message, SignalRow
from tocsin_monitor.store.events import LISTED

# To try message templates on: nothing is missing. A missing value is an empty text in any format.
_INCIDENT = IncidentRow(
    id=1, signal=1, kind="alarm", start=1, end=2, peak=1, alarms=3, duration=2, p=1e-4, severity=4.2, return_period=1e4,
    view="error", explanation="2 above the forecast", direction="above", deviation=2.0, contributions={}, open=False,
    opened=1, closed=2, ended="returned", acknowledged=2, acknowledged_by="somebody", snoozed_until=2, label="fault",
    note="a note", excluded=False, withheld=False,
)  # fmt: skip
_SIGNAL = SignalRow(1, "plant/pump", ("value",), {"interval": "1min"}, None, "bar", None, 1)


_COLOURS = {"over": "#2e7d32", "critical": "#b3261e", "warning": "#b26a00", "info": "#1b5fa8"}


@dataclass(frozen=True, slots=True)
class Notice:
    """A message: its title, its text, the most important facts, and all its fields."""

    status: Message
    title: str
    text: str
    fields: Mapping[str, Any]

    @property
    def over(self) -> bool:
        return self.status == "resolved"

    @property
    def critical(self) -> bool:
        """Whether somebody should look at it now."""
        return self.level == "critical"

    @property
    def level(self) -> str:
        """How urgent it is; "over" if it has ended."""
        return "over" if self.over else str(self.fields["level"])

    @property
    def colour(self) -> str:
        return _COLOURS[self.level]

    @property
    def link(self) -> str:
        """The address of the incident on the page; empty if server.external_url is not set."""
        return str(self.fields["link"])

    @property
    def facts(self) -> dict[str, str]:
        """What to show beside the text."""
        fields = self.fields
        known = fields["severity"] is not None  # not of a silence
        severity = f"{fields['severity']:.1f} ({fields['level']})" if known else fields["level"]
        shown = {
            "Signal": fields["signal"],
            "Event": fields["event"],
            "Members": fields["members"],
            "Severity": severity,
            "Start": fields["start"],
            "End": fields["closed"] if self.over else None,
        }
        return {name: str(value) for name, value in shown.items() if value}


def fields_of(incident: IncidentRow, signal: SignalRow, status: Message, link: str) -> dict[str, Any]:
    """The fields of a message: those of the incident as the API has them, and its text in words.

    For an event of several incidents, `severity` is that of the strongest, and `level` that of the event.
    """
    notes, whole = alert_of(incident, signal, link, status).annotations, several(incident)
    fields = {name: _shown(value) for name, value in incident_json(incident, signal.name).items()}
    return fields | {
        "message": told_as(incident, status),
        "level": told_level(incident),
        "severity": fields["severity"] if whole is None else number(whole.strongest.incident.severity),
        "members": "" if whole is None else members_of(whole, LISTED),
        "unit": signal.unit,
        "summary": notes["summary"],
        "description": notes["description"],
        "link": link,
    }


def _shown(value: Any) -> Any:
    """Lists and tables in one line."""
    if isinstance(value, Mapping):
        return ", ".join(value)
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


class Notices:
    """Writes the messages of one sink; ValueError if a message template has an unknown field."""

    def __init__(self, settings: TextSettings, monitor: Settings) -> None:
        self._monitor = monitor
        sample = fields_of(_INCIDENT, _SIGNAL, "resolved", "https://example.com")
        self._title = MessageTemplate("title", settings.title, sample)
        self._text = MessageTemplate("text", settings.text, sample)

    def write(self, incident: IncidentRow, signal: SignalRow, status: Message) -> Notice:
        fields = fields_of(incident, signal, status, link_to(self._monitor, incident))
        title = " ".join(self._title.fill(fields).split())  # a title is one line
        return Notice(status, title, self._text.fill(fields).strip(), fields)


def shortened(text: str, most: int) -> str:
    """The text cut to a number of characters, with dots in place of the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


class MessageTemplate(Formatter):
    """A format string whose only fields are those of a message; a missing value is an empty text.

    A mistake is a ValueError that names the setting. Fields are plain names, with a format if you like (`{p:.2g}`):
    attributes and items of values cannot be reached.

    >>> title = MessageTemplate("title", "{signal}: p = {p:.2g}", {"signal": "", "p": 0.5})
    >>> title.fill({"signal": "pump", "p": 0.00123})
    'pump: p = 0.0012'
    """

    def __init__(self, setting: str, text: str, sample: Mapping[str, Any]) -> None:
        self._setting, self._text = setting, text
        self._check(sample)
        self.fill(sample)

    def fill(self, fields: Mapping[str, Any]) -> str:
        try:
            return self.vformat(self._text, (), fields)
        except ValueError as error:
            raise ValueError(f"{self._setting}: {error}, got {self._text!r}") from None

    def format_field(self, value: Any, format_spec: str) -> str:
        return "" if value is None else str(super().format_field(value, format_spec))

    def _check(self, known: Mapping[str, Any]) -> None:
        try:
            parts = list(self.parse(self._text))
        except ValueError as error:
            raise ValueError(f"{self._setting}: {error}, got {self._text!r}; a brace itself is {{{{ or }}}}") from None
        for _, name, spec, _ in parts:
            if name is not None and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"; did you mean {{{near[0]}}}?" if near else ";"
                raise ValueError(
                    f"{self._setting}: {{{name}}} is not a field of a message{hint} "
                    f"The fields are {', '.join(sorted(known))}"
                )
            if "{" in (spec or ""):
                raise ValueError(f"{self._setting}: a format must be plain, got {{{name}:{spec}}}")

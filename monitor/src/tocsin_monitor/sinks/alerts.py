"""An incident as an alert: labels that identify it, and annotations for people."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tocsin.detection import DetectorSettings, Ending, ending_of, length_text, ordinal, rarity
from tocsin_monitor.as_json import member_json, time_text
from tocsin_monitor.config import Settings
from tocsin_monitor.config.kinds import Told
from tocsin_monitor.event_text import event_ending, incident_text, story_of, title_of
from tocsin_monitor.levels import Level, level_of, level_of_event
from tocsin_monitor.store import EventSummary, IncidentRow, LeadRow, Message, SignalRow

NAMES = {"alarm": "TocsinIncident", "silence": "TocsinSilence", "range": "TocsinOutOfRange", "limit": "TocsinLimit"}
#: The number of the incident of a test message: the store counts from 1.
TEST = 0
#: From so many alike on, incidents recur, and it is told how often.
RECURS = 4
#: The labels that identify an alert; settings must not change them.
IDENTITY = ("alertname", "incident", "signal")

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OFFSET, _PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert; `ends` is None while the incident is open."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts: int
    ends: int | None
    url: str


def check_labels(labels: Mapping[str, str]) -> None:
    """Reject labels that Alertmanager would reject, or that would make two incidents look like one."""
    for name in labels:
        if not _LABEL.fullmatch(name) or name in IDENTITY:
            raise ValueError(
                f"a label's name must be letters, digits and _, and none of {', '.join(IDENTITY)}, got {name!r}"
            )


def told_level(incident: IncidentRow) -> Level:
    """How urgent a message about it is: as its event."""
    whole = event_of(incident)
    return level_of(incident) if whole is None else level_of_event(whole)


def link_to(settings: Settings, incident: IncidentRow) -> str:
    """Where people see the incident, or its event if that has others; empty if nobody said how they reach the page."""
    whole = several(incident)
    if incident.id == TEST:
        return f"{settings.server.external_url}/#/status" if settings.server.external_url else ""
    if whole is None:
        return page_link(settings, "incidents", incident.id)
    return page_link(settings, "events", whole.event.id)


def page_link(settings: Settings, what: Literal["incidents", "events"], number: int) -> str:
    """Where the page shows one of them; empty if nobody said how people reach the page."""
    return f"{settings.server.external_url}/#/{what}/{number}" if settings.server.external_url else ""


def event_of(incident: IncidentRow) -> EventSummary | None:
    """The event that an incident stands for in a message."""
    return incident.whole if isinstance(incident, LeadRow) else None


def several(incident: IncidentRow) -> EventSummary | None:
    """The same, if it has other incidents."""
    whole = event_of(incident)
    return None if whole is None or whole.count == 1 else whole


def event_in_message(settings: Settings, incident: IncidentRow) -> dict[str, Any] | None:
    """The event as messages tell it, with the first few of its members; None if there is none."""
    whole = event_of(incident)
    if whole is None:
        return None

    def linked(shape: dict[str, Any]) -> dict[str, Any]:
        return {**shape, "link": page_link(settings, "incidents", shape["incident"])}

    return {
        "id": whole.event.id,
        "title": title_of(whole),
        "level": level_of_event(whole),
        "count": whole.count,
        "signals": whole.signals,
        "open_count": whole.open_count,
        "first": linked(member_json(whole.first)),
        "strongest": linked(member_json(whole.strongest)),
        "members": [linked(member_json(member)) for member in whole.members],
        "link": page_link(settings, "events", whole.event.id),
    }


def told_as(incident: IncidentRow, status: Message) -> Told:
    """Which of the messages that people choose from this is."""
    if status == "firing" or incident.open:
        return "opened"
    return "accepted" if incident.ended == "accepted" else "ended"


def alert_of(
    incident: IncidentRow, signal: SignalRow, url: str, status: Message, *, level: str | None = None,
    more: Mapping[str, str] = {},
) -> Alert:  # fmt: skip
    """The alert of an incident, with `more` labels; `level` is what to report as severity, by default the current one.

    The start of an incident may be reported when it has already ended: only the message about the end says why.
    """
    labels = {
        "alertname": NAMES[incident.kind],
        "incident": str(incident.id),
        "signal": signal.name,
        "severity": level or told_level(incident),
        **more,
    }
    ends = None if incident.open else incident.closed if incident.closed is not None else incident.end
    over = status == "resolved" and not incident.open
    return Alert(labels, _annotations(incident, signal, url, over), incident.start, ends, url)


def summary_of(incident: IncidentRow, signal: SignalRow, status: Message) -> str:
    """What there is to know at once."""
    whole = several(incident)
    if status == "resolved" and not incident.open:
        return f"{signal.name}: {_ending(incident).summary}" if whole is None else event_ending(whole)
    return incident_text(incident, signal.name) if whole is None else title_of(whole)


def _annotations(incident: IncidentRow, signal: SignalRow, url: str, over: bool) -> dict[str, str]:
    since, whole = time_text(incident.start), several(incident)
    story = _story(incident, signal)
    if whole is not None:
        story = story_of(whole)
    notes = {
        "summary": summary_of(incident, signal, "resolved" if over else "firing"),
        "description": f"{story} {_ending(incident).sentence}" if over and whole is None else story,
        "start": since,
    }
    if (event := event_of(incident)) is not None:
        notes |= {"event": str(event.event.id), "incidents": str(event.count), "signals": str(event.signals)}
    if over and incident.ended:
        notes["ended"] = incident.ended
    if incident.kind == "alarm":
        notes |= {"p": f"{incident.p:.3g}", "deviation": f"{incident.deviation:.6g}"}
        more = {"direction": incident.direction, "view": incident.view, "explanation": incident.explanation}
        notes |= {name: words for name, words in more.items() if words}
        if incident.return_period > 0:
            notes["return_period"] = f"{incident.return_period:.0f}"
    if url:
        notes["link"] = url
    return notes


_LIMIT_ENDINGS = {
    "returned": Ending("returned", "resolved, within its limit again", "It is over: the signal is within its limit."),
    "subsided": Ending(
        "subsided", "resolved, no longer heads for its limit", "It is over: the signal no longer heads for its limit."
    ),
}


def _ending(incident: IncidentRow) -> Ending:
    if incident.kind == "limit" and incident.ended in _LIMIT_ENDINGS:
        return _LIMIT_ENDINGS[incident.ended]
    return ending_of("sending" if incident.kind == "silence" and incident.ended == "returned" else incident.ended)


def _story(incident: IncidentRow, signal: SignalRow) -> str:
    if incident.id == TEST:
        return f"{signal.name}: {incident.explanation}."
    if incident.kind == "silence":
        return f"No observation since {time_text(incident.start)}."
    if incident.kind == "range":
        return f"{incident.explanation} at {time_text(incident.peak)}, out of range since {time_text(incident.start)}."
    if incident.kind == "limit":
        if incident.deviation != incident.deviation:
            return f"{incident.explanation}, as of {time_text(incident.end)}."
        return f"{incident.explanation} at {time_text(incident.peak)}, since {time_text(incident.start)}."
    unit = f" {signal.unit}" if signal.unit else ""
    alarms = "1 alarm" if incident.alarms == 1 else f"{incident.alarms} alarms"
    parts = [
        f"{alarms} since {time_text(incident.start)}.",
        f"The smallest p is {incident.p:.3g}, at {time_text(incident.peak)}:",
        f"{incident.deviation:+.6g}{unit} from the forecast.",
    ]
    earliest, latest = incident.began_earliest, incident.began_latest
    if earliest is not None and latest is not None and latest < incident.start:
        parts.append(f"It began between {time_text(earliest)} and {time_text(latest)}.")
    if incident.advice:
        parts.append(incident.advice)
    interval = signal.settings.get("interval")
    rare = rarity(incident.return_period, DetectorSettings(interval=interval).interval_seconds, incident.seen)
    if incident.first_alike is not None:
        between = (incident.start - incident.first_alike) / 1e9 / (incident.occurrence - 1)
        recurs = f", one in {length_text(between, 1.0)}" if incident.occurrence >= RECURS else ""
        number = ordinal(incident.occurrence)
        parts.append(f"It is the {number} like this since {time_text(incident.first_alike)}{recurs}.")
    elif rare:
        parts.append(f"How rare this is: {rare}.")
    if len(incident.contributions) > 1:
        first = sorted(incident.contributions, key=lambda name: -incident.contributions[name])[:3]
        parts.append(f"Main contributors: {', '.join(first)}.")
    if len(incident.suspects) > 1:
        more = f" and {len(incident.suspects) - 3} more" if len(incident.suspects) > 3 else ""
        parts.append(f"Cannot be told apart: {', '.join(incident.suspects[:3])}{more}.")
    return " ".join(parts)


def fingerprint(labels: Mapping[str, str]) -> str:
    """Alertmanager's fingerprint of an alert with these labels: FNV-1a of their names and values."""
    digest = _OFFSET
    for name in sorted(labels):
        for byte in b"%b\xff%b\xff" % (name.encode(), labels[name].encode()):
            digest = ((digest ^ byte) * _PRIME) % 2**64
    return f"{digest:016x}"


def plain(alert: Alert, ends: int) -> dict[str, Any]:
    """The alert as Alertmanager takes it, with the time at which it ends if it is not repeated."""
    shape: dict[str, Any] = {
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": time_text(alert.starts),
        "endsAt": time_text(ends),
    }
    return {**shape, "generatorURL": alert.url} if alert.url else shape

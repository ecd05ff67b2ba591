"""What happened, as a table: a row for each event, as the monitor's page and its messages have them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from tocsin.detection import ending_of, length_text
from tocsin.reports import html_cell, html_table, target_of
from tocsin_monitor.config import Settings
from tocsin_monitor.event_text import incident_text, place_of, title_of
from tocsin_monitor.report.facts import EventReport, Report
from tocsin_monitor.sinks.alerts import page_link
from tocsin_monitor.store import EventSummary, IncidentRow, StoreReader

MOST_ROWS = 300
_HEADINGS = ("signal or place", "start", "lasted", "ended", "severity", "what was seen", "people")


def event_table(
    reader: StoreReader, report: Report, settings: Settings, drawn: Sequence[str], charts: Sequence[Mapping[str, Any]]
) -> str:
    """The newest events; `drawn` are the signals of the charts."""
    newest, rows = report.events[:MOST_ROWS], []
    several = _several(reader, newest, {signal.row.id: signal.row.name for signal in report.signals})
    for event in newest:
        shown, place = _shown_in(event, drawn)
        target = "" if shown is None else _target(shown, place, charts[place])
        start = moment(event.start)
        start = f'<button type="button">{start}</button>' if target else start
        lasted = length_text(max(event.end(report.period) - event.start, 0) / 1e9, 1.0)
        whole = several.get(event.number)
        name, ended, severity, seen, people = (
            _of_one(*event.members[0], settings) if whole is None else _of_several(event, whole, settings)
        )
        rows.append(((name, start, lasted, ended, severity, seen, people), target))
    left = len(report.events) - MOST_ROWS
    more = f'<p class="note">The newest {MOST_ROWS}; {left:,} others are in the monitor.</p>' if left > 0 else ""
    return table(_HEADINGS, rows, "No incidents.") + more


def _several(
    reader: StoreReader, events: Iterable[EventReport], names: Mapping[int, str]
) -> dict[int | None, EventSummary]:
    """By number, the events that have several incidents of the signals of the report."""
    stored = [reader.event(event.number) for event in events if event.number is not None]
    wholes = reader.summaries([event for event in stored if event is not None], names)
    return {whole.event.id: whole for whole in wholes if whole.count > 1}


def _of_one(signal: str, incident: IncidentRow, settings: Settings) -> tuple[str, str, str, str, str]:
    seen = incident_text(incident, signal).removeprefix(f"{signal}: ")
    return (
        escape(signal),
        escape(ending_of(incident.ended).short),
        "" if incident.kind == "silence" else f"{incident.severity:.1f}",
        linked(seen, page_link(settings, "incidents", incident.id)),
        escape(_handled(incident)),
    )


def _of_several(event: EventReport, whole: EventSummary, settings: Settings) -> tuple[str, str, str, str, str]:
    alarms = whole.event.kind == "alarm"
    strongest = f" Strongest: {incident_text(whole.strongest.incident, whole.strongest.signal)}." if alarms else ""
    listed = [f"{moment(one.incident.start)} {incident_text(one.incident, one.signal)}" for one in whole.members]
    if whole.count > len(listed):
        listed.append(f"and {whole.count - len(listed):,} more")
    members = "".join(f"<li>{escape(one)}</li>" for one in listed)
    return (
        escape(place_of(whole)),
        f"{whole.open_count:,} of {whole.count:,} open" if whole.open_count else "all ended",
        f"{whole.strongest.incident.severity:.1f}" if alarms else "",
        f"{linked(title_of(whole), page_link(settings, 'events', whole.event.id))}"
        f"<p>{escape(f'First to move: {whole.first.signal}.{strongest}')}</p>"
        f"<details><summary>{counted(whole.count, 'incident')}</summary><ul>{members}</ul></details>",
        escape(_handled_together(event, whole)),
    )


def _handled(incident: IncidentRow) -> str:
    """What people did about an incident."""
    seen = f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged is not None else ""
    held_back = "not reported" if incident.withheld else ""
    return ", ".join(part for part in (incident.label, seen, held_back) if part)


def _handled_together(event: EventReport, whole: EventSummary) -> str:
    """What people did about an event, or about some of its incidents."""
    stored, some = whole.event, sum(incident.acknowledged is not None for _, incident in event.members)
    if stored.acknowledged is not None:
        seen = f"acknowledged by {stored.acknowledged_by}"
    else:
        seen = f"{some:,} of {whole.count:,} acknowledged" if some else "not acknowledged"
    return ", ".join(part for part in (stored.label, seen) if part)


def _shown_in(event: EventReport, drawn: Sequence[str]) -> tuple[IncidentRow | None, int]:
    """The strongest incident of alarms that a chart shows, and the number of that chart."""
    alarms = [(signal, incident) for signal, incident in event.members if incident.kind == "alarm"]
    found = [(incident, drawn.index(signal)) for signal, incident in alarms if signal in drawn]
    return max(found, key=lambda one: one[0].severity, default=(None, 0))


def _target(incident: IncidentRow, number: int, chart: Mapping[str, Any]) -> str:
    return target_of(np.datetime64(incident.start, "ns"), np.datetime64(incident.end, "ns"), number, chart)


def table(headings: Sequence[str], rows: Sequence[tuple[Sequence[str], str]], nothing: str) -> str:
    """A table of rows, each with its cells in HTML and its attributes; or what to say if there are none."""
    if not rows:
        return f'<div class="panel"><p>{nothing}</p></div>'
    lines = (f"<tr{target}>{''.join(map(html_cell, headings, cells))}</tr>" for cells, target in rows)
    return html_table(headings, lines)


def linked(text: str, link: str) -> str:
    """A text with a link, if there is one."""
    return f'<a href="{escape(link)}">{escape(text)}</a>' if link else escape(text)


def counted(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(nanoseconds: int) -> str:
    """A time to the minute."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d %H:%M")

"""A report as one self-contained page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from tocsin.detection import Audit
from tocsin.detection.incident_words import ENDED, length_text
from tocsin.reports.page import PROMISE, cell, charts_of, filled_page, table, target_of
from tocsin.service.config import Settings
from tocsin.service.report.charts import drawn_signals
from tocsin.service.report.facts import Period, Report, SignalReport, end_of
from tocsin.service.sinks.alerts import link_to
from tocsin.service.sinks.alerts import summary_of as message_summary
from tocsin.service.store import IncidentRow, StoreReader

MOST_ROWS = 300
# So many silences of one event are one row.
MANY_SILENCES = 4
DAY = 86400


def report_page(reader: StoreReader, report: Report, settings: Settings) -> str:
    """The page."""
    drawn = drawn_signals(reader, report.signals, report.period)
    charts = charts_of(drawn)
    places = {result.signal: number for number, result in enumerate(drawn)}
    return filled_page(
        (files("tocsin") / "service" / "report" / "page.html").read_text(encoding="utf-8"),
        charts,
        dated=True,
        title=escape(title_of(report.period)),
        lead=escape(summary_of(report)[0]),
        days=_days(report),
        incidents=_incidents(report, settings, places, charts),
        promised=_promised(report),
        attention=_attention(report),
        promise=escape(PROMISE),
    )


def title_of(period: Period) -> str:
    """The period in words."""
    return f"What happened from {_moment(period.start)} to {_moment(period.end)} UTC"


def summary_of(report: Report) -> list[str]:
    """The report in a few sentences."""
    incidents = [incident for _, incident in report.incidents]
    busy, still = len(report.by_attention), sum(incident.open for incident in incidents)
    silent = sum(incident.kind == "silence" for incident in incidents)
    lines = [
        f"{_counted(len(incidents), 'incident')} on {busy:,} of {_counted(len(report.signals), 'signal')}; "
        f"{silent:,} of them silences, {still:,} still open."
    ]
    lines += [f"{_kept(audit)}." for audit in report.audits.values()]
    if report.by_attention:
        most = report.by_attention[0]
        told = f"{_counted(len(most.incidents), 'incident')}, {_counted(most.messages, 'message')}"
        lines.append(f"Most attention: {most.row.name} ({told}).")
    return lines


def _kept(audit: Audit) -> str:
    tolerated = audit.promised * audit.observations
    faults = f" ({audit.faults:,} labelled as faults)" if audit.faults else ""
    return (
        f"{audit.alarms:,} {audit.unit} raised{faults}, {tolerated:.3g} tolerated in {audit.observations:,} "
        f"observations: {audit.finding}"
    )


def _days(report: Report) -> str:
    """How many incidents began on each day, as bars."""
    first, last = (datetime.fromtimestamp(one / 1e9, UTC).date() for one in (report.period.start, report.period.end))
    days = [first + timedelta(days=number) for number in range(min((last - first).days, 366) + 1)]
    began = Counter(datetime.fromtimestamp(incident.start / 1e9, UTC).date() for _, incident in report.incidents)
    most, width = max((began[day] for day in days), default=0), 1000 / len(days)
    if not most:
        return ""
    every = -(-len(days) // 14)  # as many names as there is room for
    bars = []
    for number, day in enumerate(days):
        height, left = 80 * began[day] / most, number * width
        bars.append(
            f'<rect x="{left + 0.1 * width:.1f}" y="{100 - height:.1f}" width="{0.8 * width:.1f}" '
            f'height="{height:.1f}"><title>{day}: {began[day]}</title></rect>'
        )
        middle = left + width / 2
        if began[day]:
            bars.append(f'<text x="{middle:.1f}" y="{95 - height:.1f}">{began[day]:,}</text>')
        if number % every == 0:
            bars.append(f'<text class="day" x="{middle:.1f}" y="116">{day:%a %d}<tspan> {day:%b}</tspan></text>')
    label = f"Incidents by the day on which they began; the most on one day is {most}"
    return f'<svg class="days" viewBox="0 0 1000 122" role="img" aria-label="{label}">{"".join(bars)}</svg>'


def _incidents(
    report: Report, settings: Settings, places: Mapping[str, int], charts: Sequence[Mapping[str, Any]]
) -> str:
    lines = _lines(report.incidents)
    rows = []
    for line in lines[:MOST_ROWS]:
        signal, incident = line[-1]  # the first of them
        others = len(line) - 1
        still_open = next((one for _, one in line if one.open), incident)
        seen = f"{len(line):,} signals are silent" if others else _seen(signal, incident)
        number = places.get(signal.row.name) if incident.kind == "alarm" else None
        start = _moment(incident.start)
        target = ""
        if number is not None:
            moments = np.datetime64(incident.start, "ns"), np.datetime64(incident.end, "ns")
            target = target_of(*moments, number, charts[number])
            start = f'<button type="button">{start}</button>'
        cells = [
            escape(signal.row.name) + (f" and {others:,} more" if others else ""),
            start,
            _lasted(still_open, report.period),
            escape(ENDED.get(still_open.ended, still_open.ended or "")),
            "" if incident.kind == "silence" else f"{incident.severity:.1f}",
            _linked(seen, link_to(settings, incident)),
            escape(_handled(incident)),
        ]
        rows.append((cells, target))
    left = sum(map(len, lines[MOST_ROWS:]))
    more = f'<p class="note">The newest {MOST_ROWS}; {left:,} others are in the monitor.</p>' if left > 0 else ""
    headings = ("signal", "start", "lasted", "ended", "severity", "what was seen", "people")
    return _table(headings, rows, "No incidents.") + more


def _lines(found: Sequence[tuple[SignalReport, IncidentRow]]) -> list[list[tuple[SignalReport, IncidentRow]]]:
    """What gets a row: an incident, or all silences of an event, which would bury the others if they are many."""
    silences = Counter(incident.event for _, incident in found if incident.kind == "silence")
    lines: dict[tuple[bool, int], list[tuple[SignalReport, IncidentRow]]] = {}
    for one in found:
        _, incident = one
        many = incident.kind == "silence" and incident.event is not None and silences[incident.event] >= MANY_SILENCES
        key = (True, incident.event or 0) if many else (False, incident.id)
        lines.setdefault(key, []).append(one)
    return list(lines.values())


def _seen(signal: SignalReport, incident: IncidentRow) -> str:
    """What was seen, without the signal's name before it."""
    name = signal.row.name
    return message_summary(incident, signal.row, "firing").removeprefix(f"{name}: ").removeprefix(f"{name} ")


def _handled(incident: IncidentRow) -> str:
    """What people did about it."""
    seen = f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged is not None else ""
    held_back = "not reported" if incident.withheld else ""
    return ", ".join(part for part in (incident.label, seen, held_back) if part)


def _promised(report: Report) -> str:
    rows = []
    judged = [(signal, signal.audit) for signal in report.signals if signal.audit is not None]
    judged.sort(key=lambda one: (one[1].finding != "too many", -one[1].ratio))
    for signal, audit in judged[:MOST_ROWS]:
        tolerated = audit.promised * audit.observations
        cells = [
            escape(signal.row.name),
            f"{audit.observations:,}",
            f"{tolerated:.3g} {audit.unit}",
            f"{audit.alarms:,}",
            f"{audit.faults:,}" if audit.faults else "",
            escape(audit.finding),
        ]
        rows.append((cells, ""))
    together = "".join(f'<p class="lead">{escape(_kept(audit))}.</p>' for audit in report.audits.values())
    headings = ("signal", "judged observations", "tolerated", "raised", "faults", "finding")
    return together + _table(headings, rows, "Nothing was judged: all signals are warming up, or silent.")


def _attention(report: Report) -> str:
    rows = []
    for signal in report.by_attention[:MOST_ROWS]:
        after = signal.acknowledged_after
        cells = [
            escape(signal.row.name),
            f"{signal.messages:,}",
            f"{len(signal.incidents):,}",
            f"{signal.false_alarms:,}" if signal.false_alarms else "",
            length_text(signal.open_seconds, 1.0),
            "" if after is None else length_text(after, 1.0),
        ]
        rows.append((cells, ""))
    headings = ("signal", "messages", "incidents", "false alarms", "time in incidents", "acknowledged after")
    return _table(headings, rows, "Nobody was needed.")


def _table(headings: Sequence[str], rows: Iterable[tuple[Sequence[str], str]], nothing: str) -> str:
    """A table of rows: their cells, and the attributes of each row."""
    body = [f"<tr{target}>{''.join(map(cell, headings, cells))}</tr>" for cells, target in rows]
    return table(headings, body) if body else f'<div class="panel"><p>{nothing}</p></div>'


def _linked(text: str, link: str) -> str:
    return f'<a href="{escape(link)}">{escape(text)}</a>' if link else escape(text)


def _lasted(incident: IncidentRow, period: Period) -> str:
    return length_text(max(end_of(incident, period) - incident.start, 0) / 1e9, 1.0)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _moment(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d %H:%M")

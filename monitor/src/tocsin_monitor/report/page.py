"""The report as a page, with its table of events."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import make_msgid
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from tocsin.detection import Audit, Incident, ending_of, length_text
from tocsin.reports import PROMISE, Chart, charts_of, filled_page, html_cell, html_table, target_of
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MailSettings
from tocsin_monitor.event_text import incident_text, place_of
from tocsin_monitor.event_text import title_of as title_of_event
from tocsin_monitor.exporting import Columns, Export
from tocsin_monitor.levels import level_of, level_of_event
from tocsin_monitor.report.facts import EventReport, Period, Report, SignalReport
from tocsin_monitor.sinks.alerts import page_link
from tocsin_monitor.sinks.mail import MailSink
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
        target = ""
        if shown is not None:
            begins, ends = np.array([shown.start, shown.end], "datetime64[ns]")
            target = target_of(begins, ends, place, charts[place])
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
        f"{incident.severity:.1f} ({level_of(incident)})" if incident.kind == "alarm" else "",
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
        f"{whole.strongest.incident.severity:.1f} ({level_of_event(whole)})" if alarms else "",
        f"{linked(title_of_event(whole), page_link(settings, 'events', whole.event.id))}"
        f"<p>{escape(f'First to move: {whole.first.signal}.{strongest}')}</p>"
        f"<details><summary>{counted(whole.count, 'incident')}</summary><ul>{members}</ul></details>",
        escape(_handled_together(event, whole)),
    )


def _handled(incident: IncidentRow) -> str:
    """What people did about an incident."""
    seen = f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged is not None else ""
    held_back = "not reported" if incident.withheld or incident.suppressed else ""
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


def report_page(
    reader: StoreReader, report: Report, settings: Settings, found: Mapping[str, Sequence[str]] | None = None
) -> str:
    """The page. `found` has sentences on what can be found in some signals."""
    drawn = drawn_signals(reader, report.signals, report.period)
    charts = charts_of(drawn)
    return filled_page(
        (files("tocsin_monitor") / "report" / "page.html").read_text(encoding="utf-8"),
        charts,
        dated=True,
        title=escape(title_of(report.period)),
        lead=escape(summary_of(report)[0]),
        days=_days(report),
        incidents=event_table(reader, report, settings, [result.signal for result in drawn], charts),
        promised=_promised(report),
        attention=_attention(report),
        found=_found(found) if found else "",
        promise=escape(PROMISE),
    )


def title_of(period: Period) -> str:
    """The period in words."""
    return f"What happened from {moment(period.start)} to {moment(period.end)} UTC"


def summary_of(report: Report) -> list[str]:
    """The report in a few sentences."""
    reported = report.reported
    suppressed = sum(one.suppressed for event in report.events for _, one in event.members)
    withheld = len(report.events) - len(reported) - suppressed
    incidents = sum(len(event.members) for event in reported)
    silent, still = sum(event.silence for event in reported), sum(event.open for event in reported)
    lines = [
        f"{counted(len(reported), 'event')} with {counted(incidents, 'incident')}; "
        f"{silent:,} of the events silences, {still:,} still open. "
        f"{len(report.by_attention):,} of {counted(len(report.signals), 'signal')} had incidents."
    ]
    if withheld:
        lines.append(f"Budgets withheld {counted(withheld, 'incident')}: nobody was told.")
    if suppressed:
        lines.append(f"Labels that hold suppressed {counted(suppressed, 'incident')}: nobody was told.")
    lines += [f"{_kept(audit)}." for audit in report.audits.values()]
    if report.by_attention:
        most = report.by_attention[0]
        took = f"{counted(most.events, 'event')}, {counted(most.messages, 'message')}"
        lines.append(f"Most attention: {most.row.name} ({took}).")
    return lines


def _kept(audit: Audit) -> str:
    tolerated = audit.promised * audit.observations
    faults = f" ({audit.faults:,} labelled as faults)" if audit.faults else ""
    return (
        f"{audit.alarms:,} {audit.unit} raised{faults}, {tolerated:.3g} tolerated in {audit.observations:,} "
        f"observations: {audit.finding}"
    )


def _days(report: Report) -> str:
    """How many events began on each day, as bars."""
    first, last = (datetime.fromtimestamp(one / 1e9, UTC).date() for one in (report.period.start, report.period.end))
    days = [first + timedelta(days=number) for number in range(min((last - first).days, 366) + 1)]
    began = Counter(datetime.fromtimestamp(event.start / 1e9, UTC).date() for event in report.reported)
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
    label = f"Events by the day on which they began; the most on one day is {most}"
    return f'<svg class="days" viewBox="0 0 1000 122" role="img" aria-label="{label}">{"".join(bars)}</svg>'


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
    return together + table(headings, rows, "Nothing was judged: all signals are warming up, or silent.")


def _attention(report: Report) -> str:
    rows = []
    for signal in report.by_attention[:MOST_ROWS]:
        after = signal.acknowledged_after
        cells = [
            escape(signal.row.name),
            f"{signal.messages:,}",
            f"{signal.events:,}",
            f"{len(signal.incidents):,}",
            f"{signal.false_alarms:,}" if signal.false_alarms else "",
            length_text(signal.open_seconds, 1.0),
            "" if after is None else length_text(after, 1.0),
        ]
        rows.append((cells, ""))
    headings = ("signal", "messages", "events", "incidents", "false alarms", "time in incidents", "acknowledged after")
    return table(headings, rows, "Nobody was needed.")


def _found(found: Mapping[str, Sequence[str]]) -> str:
    rows = [((escape(name), "<br>".join(map(escape, said))), "") for name, said in found.items()]
    return (
        '<section aria-labelledby="found"><h2 id="found">What can be found</h2>'
        f"{table(('signal', 'found how soon'), rows, '')}"
        '<p class="note">From faults injected into copies of the newest observations of these signals.</p></section>'
    )


MOST_SIGNALS = 12
# Observations of one signal that are read; the newest ones of very fast signals are left out.
MOST_OBSERVATIONS = 100_000


def drawn_signals(reader: StoreReader, signals: Sequence[SignalReport], period: Period) -> list[Chart]:
    """The charts of the signals with the most severe incidents of alarms."""
    found = [(signal, [one for one in signal.incidents if one.kind == "alarm"]) for signal in signals]
    busy = [(signal, alarms) for signal, alarms in found if alarms]
    busy.sort(key=lambda one: -max(incident.severity for incident in one[1]))
    charts = []
    for signal, alarms in busy[:MOST_SIGNALS]:
        columns = _columns(reader, signal, period)
        if columns is not None:
            times = columns["time"].astype(np.int64)
            incidents = [_incident(signal.row.name, row, times) for row in alarms]
            charts.append(Chart(signal.row.name, columns, incidents, unit=signal.row.unit or ""))
    return charts


def _columns(reader: StoreReader, signal: SignalReport, period: Period) -> Columns | None:
    pieces: list[Columns] = []
    for piece in Export(reader, [signal.row], period.start, period.end).verdicts():
        pieces.append(piece)
        if sum(len(one["time"]) for one in pieces) >= MOST_OBSERVATIONS:
            break
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else None


def _moment(time: int | None) -> np.datetime64 | None:
    return None if time is None else np.datetime64(time, "ns")


def _incident(name: str, row: IncidentRow, times: np.ndarray) -> Incident:
    last = len(times) - 1
    first, end = np.searchsorted(times, [row.start, row.end])
    return Incident(
        name, np.datetime64(row.start, "ns"), np.datetime64(row.end, "ns"), np.datetime64(row.peak, "ns"),
        min(int(first), last), min(int(end), last), row.alarms, row.p, row.severity, row.return_period, row.view,
        row.explanation, row.direction, row.deviation, dict(row.contributions), ended=row.ended,
        seen=row.seen, began_earliest=_moment(row.began_earliest), began_latest=_moment(row.began_latest),
        feature_p=dict(row.feature_p),
    )  # fmt: skip


async def send_report(sink: MailSettings, settings: Settings, report: Report, page: str) -> None:
    """Send a report to the recipients of a mail sink; DeliveryError if nobody gets it."""
    letter = EmailMessage()
    letter["Subject"] = f"Tocsin: {title_of(report.period)}"
    letter["Message-ID"] = make_msgid(domain=sink.sender.rpartition("@")[2].strip("> "))
    letter.set_content("\n\n".join([*summary_of(report), "The whole report is attached; open it in a browser."]) + "\n")
    # A mail program runs no scripts, so the page with its charts is a file.
    letter.add_attachment(page, subtype="html", filename="tocsin-report.html")
    await MailSink(sink, settings).send(letter)

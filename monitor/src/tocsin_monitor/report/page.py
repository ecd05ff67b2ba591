"""A report as one self-contained page, and by mail."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import make_msgid
from html import escape
from importlib.resources import files

import numpy as np

from tocsin.detection import Audit, Incident, SignalResult, length_text
from tocsin.reports import PROMISE, charts_of, filled_page
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MailSettings
from tocsin_monitor.exporting import Columns, Export
from tocsin_monitor.report.event_table import MOST_ROWS, counted, event_table, moment, table
from tocsin_monitor.report.facts import Period, Report, SignalReport
from tocsin_monitor.sinks.mail import MailSink
from tocsin_monitor.store import IncidentRow, StoreReader


def report_page(reader: StoreReader, report: Report, settings: Settings) -> str:
    """The page."""
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
        promise=escape(PROMISE),
    )


def title_of(period: Period) -> str:
    """The period in words."""
    return f"What happened from {moment(period.start)} to {moment(period.end)} UTC"


def summary_of(report: Report) -> list[str]:
    """The report in a few sentences."""
    told, withheld = report.told, len(report.events) - len(report.told)
    incidents = sum(len(event.members) for event in told)
    silent, still = sum(event.silence for event in told), sum(event.open for event in told)
    lines = [
        f"{counted(len(told), 'event')} with {counted(incidents, 'incident')}; "
        f"{silent:,} of the events silences, {still:,} still open. "
        f"{len(report.by_attention):,} of {counted(len(report.signals), 'signal')} had incidents."
    ]
    if withheld:
        lines.append(f"Budgets withheld {counted(withheld, 'incident')}: nobody was told.")
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
    began = Counter(datetime.fromtimestamp(event.start / 1e9, UTC).date() for event in report.told)
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


MOST_SIGNALS = 12
# Observations of one signal that are read; the newest ones of very fast signals are left out.
MOST_OBSERVATIONS = 100_000


def drawn_signals(reader: StoreReader, signals: Sequence[SignalReport], period: Period) -> list[SignalResult]:
    """The verdicts on the signals with the most severe incidents of alarms."""
    found = [(signal, _alarms(signal)) for signal in signals]
    busy = [(signal, alarms) for signal, alarms in found if alarms]
    busy.sort(key=lambda one: -max(incident.severity for incident in one[1]))
    results = [_result(reader, signal, alarms, period) for signal, alarms in busy[:MOST_SIGNALS]]
    return [result for result in results if result is not None]


def _alarms(signal: SignalReport) -> list[IncidentRow]:
    return [incident for incident in signal.incidents if incident.kind == "alarm"]


def _result(
    reader: StoreReader, signal: SignalReport, alarms: Sequence[IncidentRow], period: Period
) -> SignalResult | None:
    columns = _columns(reader, signal, period)
    if columns is None:
        return None
    times = columns["time"].astype(np.int64)
    incidents = [_incident(signal.row.name, row, times) for row in alarms]
    return SignalResult(signal.row.name, len(times), incidents, columns=columns)


def _columns(reader: StoreReader, signal: SignalReport, period: Period) -> Columns | None:
    pieces: list[Columns] = []
    for piece in Export(reader, [signal.row], period.start, period.end).verdicts():
        pieces.append(piece)
        if sum(len(one["time"]) for one in pieces) >= MOST_OBSERVATIONS:
            break
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else None


def _incident(name: str, row: IncidentRow, times: np.ndarray) -> Incident:
    last = len(times) - 1
    first, end = np.searchsorted(times, [row.start, row.end])
    return Incident(
        name, np.datetime64(row.start, "ns"), np.datetime64(row.end, "ns"), np.datetime64(row.peak, "ns"),
        min(int(first), last), min(int(end), last), row.alarms, row.p, row.severity, row.return_period, row.view,
        row.explanation, row.direction, row.deviation, dict(row.contributions), ended=row.ended,
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

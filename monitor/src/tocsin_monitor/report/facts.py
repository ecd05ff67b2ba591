"""What the store knows about a period: events, the promise, and what took people's attention."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from sqlalchemy import Integer, cast, func, select

from tocsin.detection import OF_STRETCHES, Audit, DetectorSettings, audit_together, rate_bounds
from tocsin_monitor.observations import Status
from tocsin_monitor.store import IncidentRow, SignalRow, StoreReader, schema

LEVEL = 0.99
_PIECE = 1000


@dataclass(frozen=True, slots=True)
class Period:
    """From one moment up to another, in nanoseconds since 1970."""

    start: int
    end: int

    def overlap(self, start: int, end: int) -> float:
        """For how many seconds something that lasted so long was within it."""
        return max(0, min(end, self.end) - max(start, self.start)) / 1e9


@dataclass
class SignalReport:
    """What one signal did."""

    row: SignalRow
    incidents: list[IncidentRow] = field(default_factory=list)
    #: Observations that were judged after the warm-up.
    judged: int = 0
    #: Promised and observed alarm rates in the period; None where nothing was judged, or nothing is promised.
    audit: Audit | None = None
    #: The events in which it moved first, and the messages about them that sinks accepted.
    events: int = 0
    messages: int = 0
    open_seconds: float = 0.0
    #: How long people took to acknowledge incidents, at the median.
    acknowledged_after: float | None = None

    @property
    def false_alarms(self) -> int:
        return sum(incident.label == "false alarm" for incident in self.incidents)


@dataclass(frozen=True)
class EventReport:
    """Incidents that were reported together, or a single one that was not reported, without a number."""

    number: int | None
    #: Each with the name of its signal, in the order of their start.
    members: list[tuple[str, IncidentRow]]

    @property
    def start(self) -> int:
        return self.members[0][1].start

    @property
    def open(self) -> bool:
        return any(incident.open for _, incident in self.members)

    @property
    def silence(self) -> bool:
        """Whether signals fell silent; all incidents of an event are of one kind."""
        return self.members[0][1].kind == "silence"

    def end(self, period: Period) -> int:
        return max(end_of(incident, period) for _, incident in self.members)


@dataclass(frozen=True)
class Report:
    """A period of all signals that were asked for."""

    period: Period
    signals: list[SignalReport]
    #: The newest first.
    events: list[EventReport]

    @property
    def reported(self) -> list[EventReport]:
        """The events that were reported, or are about to be."""
        return [event for event in self.events if event.number is not None]

    @property
    def audits(self) -> dict[str, Audit]:
        """What was promised and kept by all signals together: of incidents, and of alarms where they are promised."""
        by_unit: dict[str, list[Audit]] = defaultdict(list)
        for signal in self.signals:
            if signal.audit is not None:
                by_unit[signal.audit.unit].append(signal.audit)
        return {unit: audit_together(audits) for unit, audits in by_unit.items()}

    @property
    def by_attention(self) -> list[SignalReport]:
        """Signals with incidents, those first whose events made most messages."""
        busy = [signal for signal in self.signals if signal.incidents]
        return sorted(
            busy, key=lambda one: (-one.messages, -one.events, -len(one.incidents), -one.open_seconds, one.row.name)
        )


def gather(reader: StoreReader, signals: Sequence[SignalRow], period: Period) -> Report:
    """Everything about these signals in a period."""
    reports = {row.id: SignalReport(row) for row in signals}
    for incident in _incidents(reader, list(reports), period):
        reports[incident.signal].incidents.append(incident)
    judged = _judged(reader, period)
    by_name = {report.row.name: report for report in reports.values()}
    events, messages = _together(reports.values()), _messages(reader, period)
    for event in events:
        # An event takes attention once, however many signals are in it: the one that moved first stands for it.
        if event.number is not None:
            first = by_name[event.members[0][0]]
            first.events += 1
            first.messages += messages[event.number]
    for number, report in reports.items():
        report.judged, alarms = judged.get(number, (0, 0))
        report.audit = _audit(report, alarms, period)
        report.open_seconds = sum(period.overlap(one.start, end_of(one, period)) for one in report.incidents)
        report.acknowledged_after = _waited(report.incidents)
    return Report(period, sorted(reports.values(), key=lambda report: report.row.name), events)


def _together(reports: Iterable[SignalReport]) -> list[EventReport]:
    """All incidents in their events, the newest first. What a budget withholds belongs to none."""
    events: dict[tuple[str, int], list[tuple[str, IncidentRow]]] = defaultdict(list)
    for report in reports:
        for one in report.incidents:
            key = ("incident", one.id) if one.event is None else ("event", one.event)
            events[key].append((report.row.name, one))
    found = [
        EventReport(number if of == "event" else None, sorted(members, key=lambda one: (one[1].start, one[1].id)))
        for (of, number), members in events.items()
    ]
    return sorted(found, key=lambda event: -event.start)


def _waited(incidents: Iterable[IncidentRow]) -> float | None:
    """Seconds until people acknowledged incidents, at the median; not of those that joined what was acknowledged."""
    waits = [
        (one.acknowledged - one.opened) / 1e9
        for one in incidents
        if one.acknowledged is not None and one.acknowledged >= one.opened
    ]
    return median(waits) if waits else None


def _incidents(reader: StoreReader, signals: list[int], period: Period) -> Iterator[IncidentRow]:
    """Those that lasted into the period. What was imported was over before anybody watched."""
    before = None
    while rows := reader.incidents(signal_ids=signals, since=period.start, before_id=before, limit=_PIECE):
        before = rows[-1].id
        yield from (row for row in rows if row.start <= period.end and row.ended != "imported")


def end_of(incident: IncidentRow, period: Period) -> int:
    """When it ended, by the times of its observations, which may have arrived much later; an open one lasts on."""
    return period.end if incident.open else incident.end


def _judged(reader: StoreReader, period: Period) -> dict[int, tuple[int, int]]:
    """By signal, how many observations were judged after the warm-up, and how many of them alarmed."""
    columns = schema.observations.c
    wanted = (
        select(columns.signal, func.count(), func.sum(cast(columns.alarm, Integer)))
        .where(columns.time >= period.start, columns.time <= period.end)
        .where(columns.status == int(Status.SCORED), columns.warm)
        .group_by(columns.signal)
    )
    return {signal: (count, int(alarms or 0)) for signal, count, alarms in reader.connection.execute(wanted)}


def _messages(reader: StoreReader, period: Period) -> Counter[int]:
    """By event, how many messages sinks accepted; one that was updated while the event grew counts once."""
    outbox = schema.outbox.c
    wanted = (
        select(outbox.event, func.count())
        # What was settled without being sent was never reported.
        .where(outbox.told >= period.start, outbox.told <= period.end)
        .group_by(outbox.event)
    )
    return Counter({event: count for event, count in reader.connection.execute(wanted)})  # noqa: C416


def _audit(report: SignalReport, alarms: int, period: Period) -> Audit | None:
    """The promise in this period alone. The detector's own audit covers all its time, and is on the signal's page."""
    try:
        settings = DetectorSettings(**report.row.settings)
        promised = settings.rate
    except (TypeError, ValueError):
        return None  # settings of another version: the signal is quarantined
    if not report.judged:
        return None
    if settings.promise == "observations":
        raised, faults, unit, dispersion = alarms, 0, "alarms", OF_STRETCHES
    else:
        began = [one for one in report.incidents if one.kind == "alarm" and one.start >= period.start]
        raised, faults = len(began), sum(one.label == "fault" and one.label_of is None for one in began)
        unit, dispersion = "incidents", 1.0
    counted = (raised - faults) / dispersion, report.judged / dispersion
    low, high = rate_bounds(*counted, promised, LEVEL)
    return Audit(promised, report.judged, raised, dispersion, LEVEL, low, high, faults=faults, unit=unit)

"""The signals of a report as charts, as in `tocsin detect --report`."""

from collections.abc import Sequence

import numpy as np

from tocsin.detection import Incident, SignalResult
from tocsin.service.exporting import Columns, Export
from tocsin.service.report.facts import Period, SignalReport
from tocsin.service.store import IncidentRow, StoreReader

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

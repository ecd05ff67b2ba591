"""What was found as a table and a few lines of text, and which features it is about."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Incident, SignalResult
from tocsin.detection.incidents.audit import audit_together
from tocsin.detection.incidents.budget import HistoryBudget
from tocsin.detection.incidents.incident import ending_of, length_text, rarity, time_text
from tocsin.detection.incidents.verdict import name_and_unit

if TYPE_CHECKING:
    from rich.table import Table


def worst_severity(result: SignalResult) -> float:
    """The severity of a signal's worst incident; -1 if it has none."""
    return max((incident.severity for incident in result.incidents), default=-1.0)


def features_of(result: SignalResult) -> list[str | None]:
    """The features, those first that the worst incident is about; None for a single one."""
    columns = columns_of(result)
    names = [name.removeprefix("value ") for name in columns if name.startswith("value ")]
    if not names:
        return [None]
    if result.incidents:
        return [*max(result.incidents, key=lambda incident: incident.severity).features]
    return [*names]


def columns_of(result: SignalResult) -> dict[str, NDArray[Any]]:
    """The verdicts of a result, which must have been kept."""
    if result.columns is None:
        raise ValueError(f"the verdicts on {result.signal!r} were not kept")
    return result.columns


def feature_column(result: SignalResult, name: str, feature: str | None) -> NDArray[Any]:
    """A column of verdicts, of one feature."""
    return columns_of(result)[name if feature is None else f"{name} {feature}"]


def alarms_of(result: SignalResult, feature: str | None) -> NDArray[np.bool_]:
    """Which observations alarm; of those in incidents only where this feature is to blame."""
    alarm: NDArray[np.bool_] = columns_of(result)["alarm"].copy()
    for incident in result.incidents:
        if not is_blamed(incident, feature):
            alarm[incident.first : incident.last + 1] = False
    return alarm


def blamed_feature(incident: Incident) -> str:
    """The feature that the explanation names, or the one that contributed most."""
    explanation = incident.explanation or ""
    named = [name for name in incident.contributions if explanation.startswith(f"{name_and_unit(name)[0]}: ")]
    return named[0] if named else incident.features[0]


def is_blamed(incident: Incident, feature: str | None) -> bool:
    """Whether an incident is about this feature."""
    return (
        feature is None
        or len(incident.contributions) < 2
        or feature in (incident.features[0], blamed_feature(incident))
    )


def incident_table(
    incidents: Sequence[Incident], *, top: int, many: bool, intervals: Mapping[str, float | None] | None = None
) -> "Table":
    """The most severe incidents as a table; see `incident_rows`."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"{len(incidents)} incidents" if len(incidents) != 1 else "1 incident"
    if len(incidents) > top:
        title += f", the {top} most severe"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    headings, rows = incident_rows(incidents, top=top, many=many, intervals=intervals)
    for heading in headings:
        if heading in ("signal", "feature", "what was seen"):
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right" if heading == "severity" else "left", no_wrap=True)
    for _, row in rows:
        table.add_row(*row)
    return table


def incident_rows(
    incidents: Sequence[Incident], *, top: int, many: bool, intervals: Mapping[str, float | None] | None = None
) -> tuple[list[str], list[tuple[Incident, list[str]]]]:
    """Headings and rows, the most severe incident first: when, how long, how it ended, how rare, what was seen.

    `intervals` are the seconds between two observations of each signal, if known.
    """
    several = any(len(incident.contributions) > 1 for incident in incidents)
    headings = [*(["signal"] if many else []), "start", "lasts", "ended", "how rare", "severity"]
    headings += [*(["feature"] if several else []), "what was seen"]
    rows = []
    for incident in sorted(incidents, key=lambda incident: (-incident.severity, incident.p))[:top]:
        row = [incident.signal] if many else []
        row += incident_cells(incident, time_text(incident.start), (intervals or {}).get(incident.signal))
        seen = incident.explanation or ""
        if several:
            feature = name_and_unit(blamed_feature(incident))[0]
            row.append(feature)
            seen = seen.removeprefix(f"{feature}: ")
        rows.append((incident, [*row, seen]))
    return headings, rows


def incident_cells(incident: Incident, start: str, interval: float | None) -> list[str]:
    """An incident in words: when, how long, how it ended, how rare, how severe."""
    seconds = interval if isinstance(incident.start, np.datetime64) else None
    return [
        start,
        length_text(incident.duration, seconds),
        ending_of(incident.ended).short,
        rarity(incident.return_period, seconds),
        f"{incident.severity:.1f}",
    ]


def intervals_of(results: Sequence[SignalResult]) -> dict[str, float | None]:
    """The seconds between two observations of each signal."""
    return {result.signal: result.interval for result in results}


def audit_summary(results: Sequence[SignalResult]) -> str:
    """How much was watched, promised and observed counts, and the audit over all signals."""
    observations = sum(result.observations for result in results)
    audits = [result.audit for result in results if result.audit is not None]
    signals = f" of {len(results)} signals" if len(results) > 1 else ""
    line = f"{observations:,} observations{signals}"
    if not any(audit.observations for audit in audits):
        return f"{line}, all of them warm-up"
    audit = audit_together(audits)
    expected = audit.promised * audit.observations
    line += f"; after warm-up {audit.alarms:,} {audit.unit}, {expected:,.3g} tolerated (true faults count too)"
    low, high = audit.low / audit.promised, audit.high / audit.promised
    line = f"{line}\n{audit.in_words()} ({audit.level:.0%} sure: {low:.2g} to {high:.2g} times)"
    return f"{line}\n{_judged(results[0])}" if len(results) == 1 and results[0].judged_since is not None else line


def _judged(result: SignalResult) -> str:
    """From when there could be alarms, and how they were decided."""
    since, own = result.judged_since, result.own_past_since
    if own is None:
        return f"judged since {time_text(since)}, by an estimate: the signal is too short for its own past to tell"
    if own == since:
        return f"judged since {time_text(since)}, by its own past"
    return f"judged since {time_text(since)}; by its own past since {time_text(own)}, before that estimated"


def budget_summary(results: Sequence[SignalResult], shared: HistoryBudget, proposed: int) -> str:
    """How much was watched, and how many of the proposed incidents the shared budget allowed."""
    observations = sum(result.observations for result in results)
    reported = sum(len(result.incidents) for result in results)
    line = f"{observations:,} observations of {shared.signals} signal{'s' if shared.signals != 1 else ''}"
    if isinstance(shared.budget, str):
        return (
            f"{line}; budget {shared.budget}: the {reported:,} rarest of {proposed:,} incidents (true faults count too)"
        )
    share = f"about {shared.budget:.0%} of them false, by the signals' own estimates"
    return f"{line}; {reported:,} of {proposed:,} incidents, {share}"

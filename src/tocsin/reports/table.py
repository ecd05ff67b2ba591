"""The incidents that were found, as a readable table."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.detection import Incident, SignalResult
from tocsin.detection.explaining import name_and_unit
from tocsin.detection.incident_words import ending_of, length_text, rarity, time_text
from tocsin.reports.features import blamed_feature


def incident_table(
    incidents: Sequence[Incident], *, top: int, many: bool, intervals: Mapping[str, float | None] | None = None
) -> Table:
    """The most severe incidents as a table; see `incident_rows`."""
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
        seconds = (intervals or {}).get(incident.signal) if isinstance(incident.start, np.datetime64) else None
        row = [incident.signal] if many else []
        row += [time_text(incident.start), length_text(incident.duration, seconds)]
        row += [ending_of(incident.ended).short, rarity(incident.return_period, seconds), f"{incident.severity:.1f}"]
        seen = incident.explanation or ""
        if several:
            feature = name_and_unit(blamed_feature(incident))[0]
            row.append(feature)
            seen = seen.removeprefix(f"{feature}: ")
        rows.append((incident, [*row, seen]))
    return headings, rows


def intervals_of(results: Sequence[SignalResult]) -> dict[str, float | None]:
    """The seconds between two observations of each signal."""
    return {result.signal: result.interval for result in results}

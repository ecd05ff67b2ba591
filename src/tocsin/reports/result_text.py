"""Results in a few lines of text."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import numpy as np

from tocsin.data import duration_text
from tocsin.detection.audit import audit_together
from tocsin.detection.incident_words import ending_of, length_text, rarity, time_text
from tocsin.detection.incidents import Incident
from tocsin.detection.result import Result

# This many incidents get their own line: the most severe.
MOST_LINES = 5


def told(result: Result) -> str:
    """What was judged, what was found and what is guaranteed."""
    return "\n".join([headline(result), promise([result]), *_lines([result])])


def told_together(results: Sequence[Result]) -> str:
    """The same for many signals."""
    if not results:
        return "no signals"
    observations = sum(result.judged.observed for result in results)
    first = f"{len(results)} signals, {observations:,} observations, {_every(results[0])}".removesuffix(", ")
    return "\n".join([first, promise(results), *_lines(results)])


def headline(result: Result) -> str:
    """What was judged."""
    count = result.judged.observed
    parts = [f"{result.signal}: {count:,} observation{'s' if count != 1 else ''}"]
    if len(result.features) > 1:
        parts.append(f"features {', '.join(result.features)}")
    if result.times is not None and len(result.times):
        parts.append(f"{moment(result, result.times[0])} to {moment(result, result.times[-1])}")
    return ", ".join(filter(None, [*parts, _every(result)]))


def _every(result: Result) -> str:
    if result.interval is None or result.times is None:
        return ""
    dated = result.times.dtype.kind == "M"
    step = np.timedelta64(round(result.interval * 1e9), "ns") if dated else result.interval
    return f"every {duration_text(step)}"


def promise(results: Sequence[Result]) -> str:
    """What was found, next to what is tolerated."""
    count = sum(len(result.incident_list) for result in results)
    audits = [result.audit for result in results]
    audit = audits[0] if len(audits) == 1 else audit_together(audits)
    one = results[0]
    rate = f"an alarm rate of {one.alarm_rate}" if one.budget is None else f"a budget of {one.budget}"
    found = f"{count:,} incident{'s' if count != 1 else ''} at {rate}"
    if not audit.observations:
        return f"{found}; all of it is warm-up, which needs {one.warm_up:,} observations"
    tolerated = audit.promised * audit.observations
    return f"{found}, {tolerated:,.3g} tolerated since warm-up ({audit.in_words()})"


def moment(result: Result, time: object) -> str:
    """A readable time in the caller's time zone."""
    zone = result.origin.zone
    if zone is None or not isinstance(time, np.datetime64):
        return time_text(time)
    local = time.astype("datetime64[us]").item().replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone))
    return str(local.isoformat(sep=" ", timespec="auto" if local.second or local.microsecond else "minutes"))


def worst(results: Sequence[Result], most: int) -> list[tuple[Result, Incident]]:
    """The most severe incidents, in order of severity."""
    found = [(result, incident) for result in results for incident in result.incident_list]
    return sorted(found, key=lambda one: (-one[1].severity, one[1].p))[:most]


def cells(result: Result, incident: Incident) -> list[str]:
    """An incident in words: when, how long, how it ended, how rare, how severe, what was seen."""
    seconds = result.interval if isinstance(incident.start, np.datetime64) else None
    return [
        moment(result, incident.start),
        length_text(incident.duration, seconds),
        ending_of(incident.ended).short,
        rarity(incident.return_period, seconds),
        f"{incident.severity:.1f}",
        incident.explanation or "",
    ]


def _lines(results: Sequence[Result]) -> list[str]:
    shown = worst(results, MOST_LINES)
    rows = [([result.signal] if len(results) > 1 else []) + cells(result, incident) for result, incident in shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    more = sum(len(result.incident_list) for result in results) - len(shown)
    return [*lines, *([f"  and {more:,} more in .incidents"] if more else [])]

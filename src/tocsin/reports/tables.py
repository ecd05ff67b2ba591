"""What was found as a table and a few lines of text, and which features it is about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.incidents.audit import audit_together
from tocsin.detection.incidents.budget import HistoryBudget
from tocsin.detection.incidents.incident import (
    MUCH_SEVERER,
    Incident,
    alike,
    ending_of,
    onset_text,
    ordinal,
    rarity,
    time_text,
)
from tocsin.detection.incidents.verdict import name_and_unit
from tocsin.detection.views.view import length_text

if TYPE_CHECKING:
    from rich.table import Table

    from tocsin.detection.order import MovingOrder
    from tocsin.detection.results import Result


# At most this many features are named besides the blamed one.
MOST_NAMED = 3
# The charts of this many features are drawn beside each other first.
MOST_BESIDE = 3


def worst_severity(incidents: Sequence[Incident]) -> float:
    """The severity of the worst incident; -1 if there is none."""
    return max((incident.severity for incident in incidents), default=-1.0)


@dataclass(frozen=True)
class Chart:
    """What charts of a signal show: verdicts as columns of a table, and the incidents among these observations."""

    signal: str
    columns: Mapping[str, NDArray[Any]]
    incidents: Sequence[Incident]
    interval: float | None = None
    #: Of its values, unless its features have their own.
    unit: str = ""

    @classmethod
    def of(cls, result: "Result") -> Self:
        """The chart of a result with verdicts."""
        return cls(result.signal, result.columns, result.incidents_within(), result.interval)

    @property
    def features(self) -> list[str | None]:
        """The features: those that the worst incident is about, then the first of the others; None for a single one."""
        names = [name.removeprefix("value ") for name in self.columns if name.startswith("value ")]
        if not names:
            return [None]
        ranked = [one.features for one in sorted(self.incidents, key=lambda one: -one.severity)]
        worst = ranked[0][:MOST_BESIDE] if ranked else []
        others = (name for rank in zip_longest(*ranked) for name in rank if name is not None)
        return list(dict.fromkeys([*worst, *others, *names]))

    def of_feature(self, name: str, feature: str | None) -> NDArray[Any]:
        """A column of verdicts, of one feature."""
        return self.columns[name if feature is None else f"{name} {feature}"]

    def usual_range(self, feature: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Between which values a feature usually is; NaN where that is unknown or was not kept."""
        names = [name if feature is None else f"{name} {feature}" for name in ("usual_low", "usual_high")]
        unknown = np.full(len(self.columns["time"]), np.nan)
        low, high = (self.columns.get(name, unknown) for name in names)
        known = np.isfinite(low) & np.isfinite(high)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)

    def expected_range(self, feature: str | None, bottom: float, top: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Between which values a feature was expected, within these limits of a chart; NaN where there is no such band.

        A band wider than the chart shows nothing, and counts as none.
        """
        low, high = self.of_feature("low", feature), self.of_feature("high", feature)
        bounded = (np.isfinite(low) | np.isfinite(high)) & ~(high - low > top - bottom)
        return np.where(bounded, np.clip(low, bottom, top), np.nan), np.where(
            bounded, np.clip(high, bottom, top), np.nan
        )

    def alarms(self, feature: str | None) -> NDArray[np.bool_]:
        """Which observations alarm; of those in incidents only where this feature is to blame."""
        alarm: NDArray[np.bool_] = self.columns["alarm"].copy()
        for incident in self.incidents:
            if not is_blamed(incident, feature):
                alarm[incident.first : incident.last + 1] = False
        return alarm


def drawn_places(values: NDArray[Any], points: int) -> NDArray[np.intp]:
    """Which observations a curve of about so many points shows: the extremes of every piece, and both ends.

    So no spike is lost. Of a piece without values, the first missing one stays, and with it the gap.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    size = -(-2 * count // points)
    starts = np.arange(0, count, size)
    pieces = np.full((len(starts), size), np.nan)
    pieces.flat[:count] = values
    least = np.argmin(np.where(np.isnan(pieces), np.inf, pieces), axis=1)
    most = np.argmax(np.where(np.isnan(pieces), -np.inf, pieces), axis=1)
    return np.unique(np.concatenate([starts + least, starts + most, [0, count - 1]]))


def limits(values: NDArray[Any], below: float, above: float) -> tuple[float, float]:
    """From the least value to the largest, with room below and above: shares of the range."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return low - (below * (high - low) or 0.5), high + (above * (high - low) or 0.5)


def blamed_feature(incident: Incident) -> str:
    """The feature that the explanation names, or the one that contributed most."""
    explanation = incident.explanation or ""
    named = [name for name in incident.contributions if explanation.startswith(f"{name_and_unit(name)[0]}: ")]
    return named[0] if named else incident.features[0]


def other_suspects(incident: Incident) -> str:
    """The features that may as well be at fault as the blamed one: "; cannot be told from flow"; empty for none."""
    suspects = incident.suspects
    others = [name_and_unit(name)[0] for name in suspects if name != blamed_feature(incident)]
    if len(suspects) < 2:
        return ""
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return f"; cannot be told from {', '.join(others[:MOST_NAMED])}{more}"


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
    title = f"{len(incidents)} incidents" if len(incidents) != 1 else "1 incident"
    if len(incidents) > top:
        title += f", the {top} most severe"
    headings, rows = incident_rows(incidents, top=top, many=many, intervals=intervals)
    return _table(title, headings, [row for _, row in rows])


def part_table(results: Sequence["Result"], *, top: int) -> "Table | None":
    """The signals, or the features of a single one, with the most severe incidents; None if there is only one."""
    kind, parts = _parts(results)
    busy = sum(bool(incidents) for incidents in parts.values())
    title = f"{busy} of {len(parts)} {kind}s with incidents" + (f", the {top} most severe" if busy > top else "")
    return _table(title, *part_rows(results, top=top)) if len(parts) > 1 else None


def mover_table(order: "MovingOrder", noticed: Mapping[str, Any]) -> "Table":
    """The signals of an event in the order in which they began to move, and when each was noticed."""
    rows = [
        [
            one.signal,
            time_text(one.latest)
            if one.earliest == one.latest
            else f"{time_text(one.earliest)} to {time_text(one.latest)}",
            time_text(noticed[one.signal]),
            "" if np.isnan(one.score) else f"{one.score:.1f}",
        ]
        for one in order.movers
    ]
    return _table("", ["signal", "began", "noticed", "score"], rows)


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in headings:
        if heading in ("signal", "feature", "what was seen"):
            table.add_column(heading, overflow="fold")
        else:
            right = heading in ("severity", "incidents", "worst", "score")
            table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))  # as they are: a name may look like markup
    return table


def _parts(results: Sequence["Result"]) -> tuple[str, dict[str, Sequence[Incident]]]:
    """The incidents of each signal, or those that each feature of a single one is blamed for."""
    if len(results) > 1:
        return "signal", {result.signal: result.incident_list for result in results}
    return "feature", {
        name_and_unit(name)[0]: [one for one in results[0].incident_list if blamed_feature(one) == name]
        for name in results[0].judged.features
    }


def part_rows(results: Sequence["Result"], *, top: int) -> tuple[list[str], list[list[str]]]:
    """Headings and rows by signal, or by feature of a single one: the one with the most severe incident first.

    How many incidents it had, the severity and start of the worst, and whether one is open at the last observation.
    Those without incidents are left out.
    """
    kind, parts = _parts(results)
    rows = []
    for name, incidents in sorted(parts.items(), key=lambda part: -worst_severity(part[1]))[:top]:
        if incidents:
            worst = max(incidents, key=lambda one: one.severity)
            state = "still open" if any(one.open for one in incidents) else "over"
            rows.append([name, str(len(incidents)), f"{worst.severity:.1f}", time_text(worst.start), state])
    return [kind, "incidents", "worst", "worst since", "state"], rows


def incident_rows(
    incidents: Sequence[Incident], *, top: int, many: bool, intervals: Mapping[str, float | None] | None = None
) -> tuple[list[str], list[tuple[Incident, list[str]]]]:
    """Headings and rows, the most severe incident first: when, how long, how it ended, how rare, what was seen.

    `intervals` are the seconds between two observations of each signal, if known.
    """
    # Where only some signals have several features, those name the feature in what was seen.
    several = bool(incidents) and all(len(incident.contributions) > 1 for incident in incidents)
    headings = [*(["signal"] if many else []), "start", "lasts", "ended", "how rare", "severity"]
    headings += [*(["feature"] if several else []), "what was seen"]
    rows, times = [], numbered(incidents)
    for incident in sorted(incidents, key=lambda incident: (-incident.severity, incident.p))[:top]:
        row = [incident.signal] if many else []
        row += incident_cells(incident, time_text(incident.start), (intervals or {}).get(incident.signal))
        if times[id(incident)] > 1:
            row[-2] = f"the {ordinal(times[id(incident)])} like this"
        seen = incident.explanation or ""
        if several:
            feature = name_and_unit(blamed_feature(incident))[0]
            row.append(feature)
            seen = seen.removeprefix(f"{feature}: ")
        seen += other_suspects(incident)
        began = onset_text(incident)
        rows.append((incident, [*row, f"{seen}; began {began}" if began else seen]))
    return headings, rows


def numbered(incidents: Sequence[Incident]) -> dict[int, int]:
    """The number of each incident among those like it, in time order, by its `id`."""
    so_far: defaultdict[Any, list[float]] = defaultdict(list)
    numbers = {}
    for incident in sorted(incidents, key=lambda one: one.first):
        others = so_far[alike(incident)]
        numbers[id(incident)] = 1 + sum(incident.severity <= MUCH_SEVERER * severity for severity in others)
        others.append(incident.severity)
    return numbers


def incident_cells(incident: Incident, start: str, interval: float | None) -> list[str]:
    """An incident in words: when, how long, how it ended, how rare, how severe."""
    seconds = interval if isinstance(incident.start, np.datetime64) else None
    return [
        start,
        length_text(incident.duration, seconds),
        ending_of(incident.ended).short,
        rarity(incident.return_period, seconds, incident.seen),
        f"{incident.severity:.1f}",
    ]


def intervals_of(results: Sequence["Result"]) -> dict[str, float | None]:
    """The seconds between two observations of each signal."""
    return {result.signal: result.interval for result in results}


def usual_rate_line(results: Sequence["Result"], what: str, *, together: bool) -> str:
    """How many of what is false are tolerated where nobody chose an alarm rate; `together` in columns that share it."""
    rates = sorted({float(result.alarm_rate or 0.0) for result in results})
    rows = sorted({result.observations for result in results})
    most = max(float(result.alarm_rate or 0.0) * result.observations for result in results)
    count = f"{most:,.0f}" if most >= 1 else f"{most:.1g}"
    where = "the rows" if len(rows) > 1 else f"{rows[0]:,} rows"
    if len(results) > 1:
        where += " of all columns together" if together else f" of each of {len(results):,} signals"
    each = " to ".join(f"{rate:g}" for rate in dict.fromkeys((rates[0], rates[-1])))
    return f"alarm rate: about {count} {what}{'' if count == '1' else 's'} in {where} ({each} an observation)"


def audit_summary(results: Sequence["Result"]) -> str:
    """How much was watched, promised and observed counts, and the audit over all signals."""
    observations = sum(result.observations for result in results)
    audits = [result.audit for result in results if result.audit is not None]
    signals = f" of {len(results)} signals" if len(results) > 1 else ""
    line = f"{observations:,} observations{signals}"
    if not any(audit.observations for audit in audits):
        return f"{line}, all of them warm-up"
    audit = audit_together(audits)
    expected = audit.promised * audit.observations
    found = "1 " + audit.unit.removesuffix("s") if audit.alarms == 1 else f"{audit.alarms:,} {audit.unit}"
    line += f"; after warm-up {found}, {expected:,.3g} tolerated (true faults count too)"
    low, high = audit.low / audit.promised, audit.high / audit.promised
    line = f"{line}\n{audit.in_words()} ({audit.level:.0%} sure: {low:.2g} to {high:.2g} times)"
    return f"{line}\n{_judged(results[0])}" if len(results) == 1 and results[0].judged_since is not None else line


def _judged(result: "Result") -> str:
    """From when there could be alarms, and how they were decided."""
    since, own = result.judged_since, result.own_past_since
    if own is None:
        return f"judged since {time_text(since)}, by an estimate: the signal is too short for its own past to tell"
    if own == since:
        return f"judged since {time_text(since)}, by its own past"
    return f"judged since {time_text(since)}; by its own past since {time_text(own)}, before that estimated"


def budget_summary(results: Sequence["Result"], shared: HistoryBudget, proposed: int) -> str:
    """How much was watched, and how many of the proposed incidents the shared budget allowed."""
    observations = sum(result.observations for result in results)
    reported = sum(len(result.incident_list) for result in results)
    line = f"{observations:,} observations of {shared.signals} signal{'s' if shared.signals != 1 else ''}"
    if isinstance(shared.budget, str):
        return (
            f"{line}; budget {shared.budget}: the {reported:,} rarest of {proposed:,} incidents (true faults count too)"
        )
    share = f"about {shared.budget:.0%} of them false, by the signals' own estimates"
    return f"{line}; {reported:,} of {proposed:,} incidents, {share}"

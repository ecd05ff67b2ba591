"""How the incidents of detectors are stored, and which of them are reported if signals share a budget."""

import json
import math
import statistics
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tocsin.detection import POOL, Incident, IncidentBudget, Proposal, alike
from tocsin_monitor.config import BudgetSettings
from tocsin_monitor.engine.events import Events
from tocsin_monitor.engine.held_labels import held_label
from tocsin_monitor.engine.limits import LimitIncident, limit_text
from tocsin_monitor.engine.signals import NOTHING, AnySignal, MonitoredSignal
from tocsin_monitor.engine.stages import Received
from tocsin_monitor.rules import bounds_text
from tocsin_monitor.store import Ended, IncidentFacts, IncidentRow, StoreReader, StoreWriter


def nanoseconds(moment: np.datetime64) -> int:
    """A moment as it is stored."""
    return int(moment.astype("datetime64[ns]").astype(np.int64))


def _moment(time: np.datetime64 | None) -> int | None:
    return None if time is None else nanoseconds(time)


def alarm_facts(signal: MonitoredSignal, incident: Incident, now: int) -> IncidentFacts:
    """What is stored of an incident that a detector found."""
    return IncidentFacts(
        signal=signal.row.id,
        kind="alarm",
        start=nanoseconds(incident.start),
        end=nanoseconds(incident.end),
        peak=nanoseconds(incident.peak),
        alarms=incident.alarms,
        duration=incident.duration,
        p=incident.p,
        severity=incident.severity,
        return_period=incident.return_period or NOTHING,
        seen=incident.seen,
        began_earliest=_moment(incident.began_earliest),
        began_latest=_moment(incident.began_latest),
        view=incident.view,
        explanation=incident.explanation,
        direction=incident.direction,
        rarity=incident.rarity if incident.rarity > -math.inf else NOTHING,
        side=incident.side,
        deviation=incident.deviation,
        contributions=dict(incident.contributions),
        feature_p=dict(incident.feature_p),
        suspects=tuple(incident.suspects),
        alike=" · ".join(filter(None, alike(incident)[1:])) or None,
        advice=_advice(signal, incident),
        below_minimum=signal.row.rules.below_minimum(incident.away, incident.highest),
        open=incident.open,
        opened=now,
        closed=None if incident.open else now,
        ended=cast("Ended | None", incident.ended),
    )


# An incident that began more than so many observations before its first alarm was noticed late.
LATE = 100


def _advice(signal: MonitoredSignal, incident: Incident) -> str | None:
    """What would show such an incident sooner. Without a reference, a detector learns from the start of a drift."""
    latest, interval = incident.began_latest, signal.block.fleet.interval
    if latest is None or interval is None or signal.reference is not None:
        return None
    if nanoseconds(incident.start) - nanoseconds(latest) <= LATE * interval * 1e9:
        return None
    return "To see such a drift sooner, mark a reference: a good period before it began."


def silence_facts(signal: MonitoredSignal, start: int, now: int) -> IncidentFacts:
    """What is stored of a silence since `start` that is noticed now."""
    return IncidentFacts(
        signal=signal.row.id,
        kind="silence",
        start=start,
        end=now,
        peak=start,
        duration=0,
        explanation=None,
        direction=None,
        deviation=NOTHING,
        contributions={},
        opened=now,
        **_NO_ALARM,
    )


def range_facts(
    signal: MonitoredSignal, going_on: IncidentRow | None, outside: Sequence[Received], now: int
) -> IncidentFacts:
    """What is stored of an incident of values out of range: a new one, or one that goes on with these observations."""
    row = signal.row
    found = [(one.time, *given) for one in outside if (given := row.rules.outside(row.given_features, one.values))]
    time, feature, value, distance = max(found, key=lambda one: abs(one[3]))
    first, count = (outside[0].time, 0) if going_on is None else (going_on.start, going_on.duration)
    facts = IncidentFacts(
        signal=row.id,
        kind="range",
        start=first,
        end=outside[-1].time,
        peak=time,
        duration=count + len(outside),
        explanation=_range_text(signal, feature, value),
        direction="above" if distance > 0 else "below",
        deviation=distance,
        contributions=dict.fromkeys([feature], abs(distance)) if len(row.features) > 1 else {},
        opened=now,
        **_NO_ALARM,
    )
    if going_on is not None and abs(going_on.deviation) >= abs(distance):
        return replace(facts, **{name: getattr(going_on, name) for name in _OF_PEAK})
    return facts


def limit_facts(signal: MonitoredSignal, incident: LimitIncident, now: int) -> IncidentFacts:
    """What is stored of an incident of a limit that is crossed or will be."""
    row, over = signal.row, incident.ended is not None
    several = len(row.features) > 1
    state = {"open": not over, "closed": now if over else None, "ended": incident.ended}
    return IncidentFacts(
        signal=row.id,
        kind="limit",
        start=incident.start,
        end=incident.end,
        peak=incident.peak,
        duration=incident.duration,
        explanation=limit_text(incident, row.unit, incident.feature if several else ""),
        direction="above" if incident.high else "below",
        deviation=incident.beyond,
        contributions=dict.fromkeys([incident.feature], abs(incident.value - incident.limit)) if several else {},
        opened=now,
        **{**_NO_ALARM, **state},
    )


#: What an incident without alarms has.
_NO_ALARM: dict[str, Any] = {
    **dict.fromkeys(("p", "severity", "return_period"), NOTHING),
    **dict.fromkeys(("view", "closed", "ended")),
    "alarms": 0,
    "open": True,
}
_OF_PEAK = ("peak", "explanation", "direction", "deviation", "contributions")


def _range_text(signal: MonitoredSignal, feature: str, value: float) -> str:
    low, high = signal.row.rules.bounds(feature)
    name = f"{feature} " if len(signal.row.features) > 1 else ""
    unit = f" {signal.row.unit}" if signal.row.unit else ""
    return f"{name}{value:.6g}{unit}, valid is {bounds_text(low, high)}{unit}"


def put_incident(
    writer: StoreWriter, events: Events, signal: AnySignal, facts: IncidentFacts, now: int,
    withholds: Callable[[int], bool] = lambda number: False,
) -> int:  # fmt: skip
    """Store an incident as it now is, in its event, and what the sinks are to be told of it; returns its number.

    `withholds` says of an incident's number whether nobody is to be told: it belongs to no event then. Nor does one
    that a label suppresses, or that has not gone far enough yet.
    """
    number = writer.put_incident(facts)
    row = writer.incident(number)
    if row is None:
        raise RuntimeError(f"incident {number} is gone")
    held = held_label(writer, row)
    suppressed = held.get("suppressed", row.suppressed)
    untold = suppressed or (row.below_minimum and row.event is None)
    withheld = not untold and withholds(number)
    news = {"withheld": withheld, "below_minimum": untold and row.below_minimum, **held}
    writer.change_incident(number, **{name: new for name, new in news.items() if new != getattr(row, name)})
    if not withheld and not untold:
        events.note(writer, signal, number, facts, now)
    return number


def close_incident(
    writer: StoreWriter, events: Events, signal: AnySignal, row: IncidentRow, ended: Ended, now: int
) -> None:
    """An incident that its detector does not end is over: a silence, or what a detector that is gone had found."""
    end = now if row.kind == "silence" else row.end
    writer.change_incident(row.id, open=False, closed=now, end=end, ended=ended)
    if row.event is not None:
        events.note(writer, signal, row.id, replace(row, open=False), now)


class _Shared:
    """One budget: the incidents it ranks among, and the open ones that it reported.

    Its time is that of the observations, and starts with the first incident.
    """

    def __init__(self, settings: BudgetSettings) -> None:
        self.settings = settings
        #: The open incidents that are told, and whether each joined an event that was told already.
        self.passed: dict[int, bool] = {}
        self._selection: IncidentBudget | None = None
        self._known = 0

    @property
    def cursor(self) -> str:
        """The name under which the state of its loop is stored: it does not follow from the incidents."""
        return f"{_PREFIX}{self.settings.match}"

    def selection(self, since: int) -> IncidentBudget:
        """The ranking of incidents; it starts at `since` if it has not started yet."""
        if self._selection is None:
            self._selection = IncidentBudget(self.settings.per_second, since=since / 1e9)
        return self._selection

    def withholds(
        self, writer: StoreWriter, number: int, proposal: Proposal, facts: IncidentFacts, signals: Collection[str], *,
        joins: bool,
    ) -> bool:  # fmt: skip
        """Whether to withhold an incident as it is now."""
        selection = self.selection(facts.start)
        if len(signals) != self._known:
            self._known = len(signals)
            selection.signals = max(sum(map(self.settings.fits, signals)), 1)
        if number not in self.passed and selection.tells(proposal, facts.end / 1e9, joins=joins):
            self.passed[number] = joins
            writer.put_cursor(self.cursor, json.dumps(selection.loop.tolist()))
        withheld = number not in self.passed
        if not facts.open:
            selection.learn(proposal, facts.end / 1e9, joined=self.passed.pop(number, False))
        return withheld


#: What the names of cursors with the loops of budgets begin with.
_PREFIX = "budget/"


class Budgets:
    """Ranks each incident among the recent ones of all signals that share a budget.

    Its state follows from the stored incidents and what is stored beside them, so it can be rebuilt at any time.
    """

    def __init__(self, settings: Sequence[BudgetSettings]) -> None:
        self._shared = [_Shared(one) for one in settings]

    def recover(self, reader: StoreReader, signals: Iterable[MonitoredSignal]) -> None:
        """Rebuild the budgets from the stored incidents, those of imported history too."""
        self._shared = [_Shared(one.settings) for one in self._shared]
        if not self._shared:
            return
        by_id = {signal.row.id: signal for signal in signals}
        over = reader.incidents(open=False, kind="alarm", limit=POOL)
        told: set[int | None] = set()  # the events of which an incident was there already
        for row in sorted((*over, *reader.open_incidents()), key=lambda one: (one.end, one.id)):
            signal = by_id.get(row.signal)
            shared = None if signal is None else self._of(signal.name)
            if signal is None or shared is None or row.suppressed or row.below_minimum or row.kind != "alarm":
                continue
            joined = row.event is not None and row.event in told
            told.add(row.event)
            proposal = _proposal(signal, row)
            if row.open and not row.withheld:
                shared.passed[row.id] = joined
            elif not row.open and not math.isnan(proposal.rarity):
                shared.selection(row.start).learn(proposal, row.end / 1e9, joined=joined)
        loops = reader.cursors(_PREFIX)
        for shared in self._shared:
            if shared.cursor in loops:
                shared.selection(0).loop = np.array(json.loads(loops[shared.cursor]))

    def reported(self, rates: Mapping[str, float]) -> float:
        """How many of the incidents that signals open, each at its rate per second, are reported per second at most."""
        sums: dict[_Shared | None, float] = {}
        for name, rate in rates.items():
            shared = self._of(name)
            sums[shared] = sums.get(shared, 0.0) + rate
        return sum(rate if one is None else min(rate, one.settings.per_second) for one, rate in sums.items())

    def _of(self, name: str) -> _Shared | None:
        return next((shared for shared in self._shared if shared.settings.fits(name)), None)

    def withholds(
        self, writer: StoreWriter, signal: MonitoredSignal, number: int, facts: IncidentFacts,
        signals: Collection[str], *, joins: bool,
    ) -> bool:  # fmt: skip
        """Whether to withhold an incident, as it is now, because the budget is for rarer ones.

        `joins` says whether it would join an event that people are told of anyway: that is not paid for.
        """
        shared, proposal = self._of(signal.name), _proposal(signal, facts)
        if shared is None or math.isnan(proposal.rarity):
            return False
        return shared.withholds(writer, number, proposal, facts, signals, joins=joins)


def _proposal(signal: MonitoredSignal, facts: IncidentFacts) -> Proposal:
    """An incident as its signal proposes it. Its rarity is that in seconds; NaN if unknown."""
    interval = signal.block.fleet.interval
    if interval is None:
        interval = statistics.median(signal.paces) / 1e9 if signal.paces else math.nan
    main = max(facts.contributions, key=lambda name: facts.contributions[name], default="")
    kind = zlib.crc32(f"{main} {facts.side}".encode())
    rarity = facts.rarity + math.log(interval)
    return Proposal(rarity, signal.row.id, kind, facts.severity, facts.start / 1e9)

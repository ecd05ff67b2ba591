"""Which incidents belong together as an event, and what the sinks are told of it.

Two incidents belong together if they are of one kind, begin within a window of time, and have something in common: the
place that signals' names begin with, or, for silences, the source that has stopped. What all incidents of an event have
in common stays the reason for it: whoever joins must share some of it, and the rest is dropped.

The starts of all incidents of an event lie within a span of time. Without it, a place with constant small trouble would
have one event without end, in which a new fault would be one incident more.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tocsin_monitor.config import BudgetSettings, EventSettings, SinkSettings
from tocsin_monitor.engine.signals import AnySignal
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import place_of
from tocsin_monitor.store import BUDGET, LIMIT, PLACE, SOURCE, EventRow, IncidentFacts, Kind, StoreReader, StoreWriter
from tocsin_monitor.tokens import fits_any

# More incidents than an event ever has.
_EVERYONE = 10**9


@dataclass(frozen=True, slots=True)
class Group:
    """An event that others may join: the first and the last start of its incidents, and what they all share."""

    number: int
    kind: Kind
    first: int
    last: int
    shared: frozenset[str]

    @property
    def limits(self) -> frozenset[str]:
        """Those of what they share that limit which signals may join."""
        return frozenset(one for one in self.shared if one.startswith(LIMIT))

    def admits(self, name: str) -> bool:
        """Whether a signal with this name may join."""
        return all(fits_any(name, one.removeprefix(LIMIT).split("\n")) for one in self.limits)


def traits_of(
    kind: Kind, name: str, source: str | None, levels: int, budget: str | None = None
) -> frozenset[str]:  # fmt: skip
    """What an incident of a signal of this name may have in common with others.

    A source says nothing about alarms: it is not to blame for what it measures. Signals with a budget share it: what it
    pays for once is one event.
    """
    place = place_of(name, levels)
    traits = {PLACE + place} if place else set()
    if kind == "silence" and source:
        traits.add(SOURCE + source)
    if kind == "alarm" and budget is not None:
        traits.add(BUDGET + budget)
    return frozenset(traits)


def belongs(group: Group, kind: Kind, start: int, traits: frozenset[str], window: int, span: int) -> bool:
    """Whether an incident that starts then may join."""
    near = group.first - window <= start <= group.last + window
    in_time = near and group.last - span <= start <= group.first + span
    return in_time and group.kind == kind and not group.shared.isdisjoint(traits)


def choose(
    groups: Iterable[Group], kind: Kind, start: int, traits: frozenset[str], window: int, span: int
) -> Group | None:
    """The event that an incident joins, as it is then; None if it is the first of a new one.

    Of several, the one with which it shares most; then the one whose last start is nearest; then the oldest.
    """
    fitting = [group for group in groups if belongs(group, kind, start, traits, window, span)]
    if not fitting:
        return None
    best = min(fitting, key=lambda one: (-len(one.shared & traits), abs(start - one.last), one.number))
    return replace(best, first=min(best.first, start), last=max(best.last, start), shared=best.shared & traits)


#: What people did about an event, which holds for each of its incidents.
INHERITED = ("acknowledged", "acknowledged_by", "snoozed_until", "label", "note")


class Events:
    """Finds the event of each incident, and has the sinks told.

    The outbox has one message about an event for each sink, which waits for the hold time, and again, for the interval
    between updates, when the event has grown. It is about the first incident that the sink wants.

    What is stored of events is all that it has to remember, so it can be made anew at any moment.
    """

    def __init__(
        self, settings: EventSettings, sinks: Sequence[SinkSettings], budgets: Sequence[BudgetSettings] = ()
    ) -> None:
        self._settings, self._sinks, self._budgets = settings, sinks, budgets
        self._hold = round(settings.hold * 1e9) if settings.enabled else 0
        self._window, self._span = round(settings.window * 1e9), round(max(settings.window, settings.span) * 1e9)
        self._update_every = round(settings.update_every * 1e9)
        #: The events that an incident may join, by number and by what their incidents share.
        self._groups: dict[int, Group] = {}
        self._by_trait: dict[str, set[int]] = {}
        #: Those that are over already, and until when others may join all the same, since nobody was told yet.
        self._held: dict[int, int] = {}

    def recover(self, reader: StoreReader, now: int) -> None:
        """Begin anew, with the events that are stored."""
        self._groups, self._by_trait, self._held = {}, {}, {}
        for row in reader.open_events(opened_after=now - self._hold):
            self._keep(Group(row.id, row.kind, row.first, row.last, frozenset(row.shared)))
            if not row.open:
                self._held[row.id] = row.opened + self._hold

    def note(self, writer: StoreWriter, signal: AnySignal, number: int, facts: IncidentFacts, now: int) -> None:
        """An incident that people are to be told of began, went on or is over: so did its event."""
        event = writer.event_of(number)
        grown = event is None
        if event is None:
            event = self._join(writer, signal, number, facts, now)
        self._tell(writer, signal, event, number, facts, now, grown)
        if not facts.open:
            self._settle(writer, event, now)

    def tell_again(self, writer: StoreWriter, signal: AnySignal, number: int, facts: IncidentFacts, now: int) -> None:
        """What people were told of an incident has come worse: they hear of it, whoever has acknowledged it."""
        event = writer.event_of(number)
        if event is not None:
            self._tell(writer, signal, replace(event, acknowledged=None), number, facts, now, grown=True)

    def limit(self, writer: StoreWriter, number: int, patterns: Sequence[str]) -> None:
        """Let only signals that match join an event: what is done about it holds for those that join later."""
        row = writer.event(number)
        if row is None:
            raise UnknownError(f"there is no event {number}")
        names = writer.signal_names()
        members = writer.members(number, limit=_EVERYONE)
        if not all(fits_any(names[one.signal], patterns) for one in members):
            raise RefusedError(f"event {number} has signals that this token is not for: change its incidents instead")
        shared = frozenset(row.shared) | {LIMIT + "\n".join(patterns)}
        writer.change_event(number, shared=sorted(shared))
        if number in self._groups:
            self._keep(replace(self._groups[number], shared=shared))

    def forget(self, writer: StoreWriter, numbers: Iterable[int], now: int) -> None:
        """Incidents of these events are gone with their signal; with the last one the event is, too.

        What was over long ago does not change.
        """
        for number in self._groups.keys() & set(numbers):
            event = writer.event(number)
            if event is None:
                self._held.pop(number, None)
                self._drop(number)
            else:
                self._settle(writer, event, now)

    def _settle(self, writer: StoreWriter, event: EventRow, now: int) -> None:
        """An event is over with the last of its incidents."""
        if writer.has_open_members(event.id):
            return
        writer.tell_end(event.id, now)
        if not event.open:
            return
        writer.change_event(event.id, open=False, closed=now)
        if now < event.opened + self._hold:
            self._held[event.id] = event.opened + self._hold
        else:
            self._drop(event.id)

    def joins(self, signal: AnySignal, facts: IncidentFacts) -> bool:
        """Whether people are told of an event already that an incident would join."""
        return self._group_of(signal, facts, self._traits(signal, facts.kind)) is not None

    def _traits(self, signal: AnySignal, kind: Kind) -> frozenset[str]:
        if not self._settings.enabled:
            return frozenset()
        budget = next((one.match for one in self._budgets if one.fits(signal.name)), None)
        return traits_of(kind, signal.name, signal.source, self._settings.levels, budget)

    def _group_of(self, signal: AnySignal, facts: IncidentFacts, traits: frozenset[str]) -> Group | None:
        """The event that an incident joins, as it is then; None if it is the first of a new one."""
        numbers = {one for trait in traits for one in self._by_trait.get(trait, ())}
        near = [self._groups[one] for one in numbers if self._groups[one].admits(signal.name)]
        with_limits = traits.union(*(one.limits for one in near))
        return choose(near, facts.kind, facts.start, with_limits, self._window, self._span)

    def _join(self, writer: StoreWriter, signal: AnySignal, number: int, facts: IncidentFacts, now: int) -> EventRow:
        self._drop_told(now)
        kind, start = facts.kind, facts.start
        traits = self._traits(signal, kind)
        group = self._group_of(signal, facts, traits)
        if group is None:
            group = Group(writer.add_event(kind, start, sorted(traits), now), kind, start, start, traits)
        else:
            if group != self._groups[group.number]:
                writer.change_event(group.number, first=group.first, last=group.last, shared=sorted(group.shared))
            if facts.open and self._held.pop(group.number, None) is not None:
                writer.reopen_event(group.number)
        self._keep(group)
        row = writer.event(group.number)
        if row is None:
            raise RuntimeError(f"event {group.number} is gone")
        inherited: dict[str, Any] = {name: getattr(row, name) for name in INHERITED if getattr(row, name) is not None}
        if "label" in inherited:
            inherited["label_of"] = None
        writer.change_incident(number, event=row.id, **inherited)
        return row

    def _tell(
        self, writer: StoreWriter, signal: AnySignal, event: EventRow, number: int, facts: IncidentFacts, now: int,
        grown: bool,
    ) -> None:  # fmt: skip
        # A silence has no severity, and is always told.
        severity = facts.severity if facts.kind == "alarm" else math.inf
        # Whoever has acknowledged an event need not hear that it grows.
        news = grown and event.acknowledged is None
        for sink in self._sinks:
            if sink.after is not None and event.acknowledged is not None:
                continue  # nothing to escalate
            if sink.wants(signal.name, severity):
                due = max(now, event.opened + self._hold)
                writer.tell_event(sink.name, event.id, number, now, due, self._update_every if news else None)

    def _keep(self, group: Group) -> None:
        self._drop(group.number)
        for trait in group.shared:
            self._by_trait.setdefault(trait, set()).add(group.number)
        self._groups[group.number] = group

    def _drop(self, number: int) -> None:
        group = self._groups.pop(number, None)
        for trait in () if group is None else group.shared:
            self._by_trait[trait].discard(number)
            if not self._by_trait[trait]:
                del self._by_trait[trait]

    def _drop_told(self, now: int) -> None:
        for number in [one for one, until in self._held.items() if until <= now]:
            del self._held[number]
            self._drop(number)

"""Which incidents belong together. Nothing here changes anything.

Two incidents belong together if they are of one kind, begin within a window of time, and have something in common: the
place that signals' names begin with, or, for silences, the source that has stopped. What all incidents of an event have
in common stays the reason for it: whoever joins must share some of it, and the rest is dropped.

The starts of all incidents of an event lie within a span of time. Without it, a place with constant small trouble would
have one event without end, in which a new fault would be one incident more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tocsin.service.store import PLACE, SOURCE, Kind


@dataclass(frozen=True, slots=True)
class Group:
    """An event that others may join: the first and the last start of its incidents, and what they all share."""

    number: int
    kind: Kind
    first: int
    last: int
    shared: frozenset[str]


def traits_of(kind: Kind, name: str, source: str | None, levels: int) -> frozenset[str]:
    """What an incident of a signal of this name may have in common with others.

    The last level of a name is the signal itself, and no place. A source says nothing about alarms: it is not to blame
    for what it measures.
    """
    place = name.split("/")[:-1][:levels]
    traits = {PLACE + "/".join(place)} if place else set()
    if kind == "silence" and source:
        traits.add(SOURCE + source)
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

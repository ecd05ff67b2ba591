"""Which incidents belong together, beside a slow and obvious version."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tocsin_monitor.engine.events import Group, belongs, choose, traits_of
from tocsin_monitor.store import Kind


@dataclass(frozen=True)
class Begun:
    kind: Kind
    start: int
    traits: frozenset[str]


@dataclass
class Slow:
    """An event that remembers all its incidents and works out everything anew."""

    number: int
    members: list[Begun] = field(default_factory=list)

    def shared(self) -> set[str]:
        return set.intersection(*(set(one.traits) for one in self.members))

    def takes(self, new: Begun, window: int, span: int) -> bool:
        starts = [one.start for one in self.members]
        near = new.start <= max(starts) + window and new.start >= min(starts) - window
        near = near and max(*starts, new.start) - min(*starts, new.start) <= span
        return near and all(one.kind == new.kind for one in self.members) and bool(self.shared() & new.traits)


def slowly(begun: list[Begun], window: int, span: int) -> list[int]:
    """The number of the event of each incident."""
    events: list[Slow] = []
    numbers = []
    for new in begun:
        fitting = [event for event in events if event.takes(new, window, span)]
        # The one with which it shares most, then the nearest, then the oldest.
        fitting.sort(key=lambda event: event.number)
        fitting.sort(key=lambda event: abs(new.start - max(one.start for one in event.members)))
        fitting.sort(key=lambda event: len(event.shared() & new.traits), reverse=True)
        event = fitting[0] if fitting else Slow(len(events) + 1)
        if not fitting:
            events.append(event)
        event.members.append(new)
        numbers.append(event.number)
    return numbers


def quickly(begun: list[Begun], window: int, span: int) -> list[int]:
    groups: dict[int, Group] = {}
    numbers = []
    for new in begun:
        group = choose(groups.values(), new.kind, new.start, new.traits, window, span)
        if group is None:
            group = Group(len(groups) + 1, new.kind, new.start, new.start, new.traits)
        groups[group.number] = group
        numbers.append(group.number)
    return numbers


names = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@st.composite
def incidents(draw: st.DrawFn) -> Begun:
    kind: Kind = draw(st.sampled_from(("alarm", "silence")))
    source = draw(st.sampled_from((None, "gateway", "broker")))
    return Begun(kind, draw(st.integers(0, 60)), traits_of(kind, draw(names), source, draw(st.integers(0, 3))))


@given(st.lists(incidents(), max_size=25), st.integers(0, 20), st.integers(0, 60))
def test_as_the_slow_version(begun: list[Begun], window: int, span: int) -> None:
    assert quickly(begun, window, span) == slowly(begun, window, span)


@given(st.lists(incidents(), max_size=25), st.integers(0, 20), st.integers(0, 60))
def test_incidents_of_an_event_are_of_one_kind_share_something_and_begin_one_after_the_other(
    begun: list[Begun], window: int, span: int
) -> None:
    events: dict[int, list[Begun]] = {}
    for number, one in zip(quickly(begun, window, span), begun, strict=True):
        events.setdefault(number, []).append(one)
    for members in events.values():
        assert len({one.kind for one in members}) == 1
        assert len(members) == 1 or set.intersection(*(set(one.traits) for one in members))
        starts = sorted(one.start for one in members)
        assert all(later - earlier <= window for earlier, later in pairwise(starts))
        assert starts[-1] - starts[0] <= span


def test_what_incidents_may_have_in_common() -> None:
    assert traits_of("alarm", "plant/line-3/pump/pressure", "gateway", 2) == {"place:plant/line-3"}
    assert traits_of("silence", "plant/line-3/pump/pressure", "gateway", 2) == {"place:plant/line-3", "source:gateway"}
    assert traits_of("alarm", "pump/pressure", None, 2) == {"place:pump"}
    assert traits_of("alarm", 'free{mount="/var/log"}', None, 2) == set()
    assert traits_of("alarm", 'a/free{mount="/var/log"}/x{y="/', None, 2) == {'place:a/free{mount="/var/log"}'}
    assert traits_of("alarm", "pressure", "gateway", 2) == frozenset()
    assert traits_of("silence", "plant/pressure", None, 0) == frozenset()


def test_an_unrelated_incident_joins_no_event_however_large() -> None:
    large = Group(1, "silence", 0, 100, frozenset({"source:gateway"}))
    for kind, start, traits in (
        ("alarm", 50, {"place:plant/line-3"}),  # another kind
        ("silence", 50, {"place:plant/line-3", "source:broker"}),  # another source
        ("silence", 111, {"source:gateway"}),  # too late
        ("silence", -11, {"source:gateway"}),  # too early
    ):
        assert not belongs(large, kind, start, frozenset(traits), 10, 1000)
    assert belongs(large, "silence", 110, frozenset({"source:gateway"}), 10, 1000)


def test_a_source_that_stops_stays_one_event_across_places() -> None:
    begun = [
        Begun("silence", number, traits_of("silence", f"plant/line-{number % 4}/{number}", "gateway", 2))
        for number in range(40)
    ]
    assert set(quickly(begun, 5, 1000)) == {1}


def test_constant_trouble_is_an_event_for_each_span_and_not_one_without_end() -> None:
    place = frozenset({"place:plant/line-3"})
    begun = [Begun("alarm", start, place) for start in range(0, 100, 5)]
    assert quickly(begun, 5, 1000) == [1] * 20
    assert quickly(begun, 5, 24) == [1] * 5 + [2] * 5 + [3] * 5 + [4] * 5
    # What arrives late joins the event that it is near.
    assert quickly([*begun, Begun("alarm", 21, place)], 5, 24)[-1] == 1

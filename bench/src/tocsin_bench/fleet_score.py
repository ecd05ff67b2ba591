"""What the messages of a monitor about a simulated fleet were worth: which faults they told, and how many were false.

All times are minutes of the whole simulated time. What is not known, such as the delay of a fault that nobody was told
of, is NaN.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tocsin_bench.fleet import DAY, HOUR, WEEK, Fault

#: An incident of a fault starts at most so many minutes before it begins, or after it ends.
BEFORE, AFTER = 2, 5
#: Back to normal, a signal may change so much that an incident begins within so many minutes.
REPAIR = 90
#: Faults that do not begin at once.
GRADUAL = ("leak", "slow disk")


@dataclass(frozen=True)
class Seen:
    """An incident, whether or not anybody was told. `event` is None if nobody was."""

    signal: str
    kind: str
    start: float
    #: When it was over, and why.
    over: float
    ended: str | None
    #: Between which minutes it says that it began; NaN where it does not say.
    earliest: float
    latest: float
    event: int | None

    def belongs(self, fault: Fault) -> bool:
        return self.signal in fault.signals and fault.begin - BEFORE <= self.start <= fault.end + AFTER

    def repairs(self, fault: Fault) -> bool:
        return self.signal in fault.signals and fault.end + AFTER < self.start <= fault.end + REPAIR

    def began(self) -> tuple[float, float]:
        """When it says that it began; at its start, if it does not say."""
        unknown = math.isnan(self.earliest) or math.isnan(self.latest)
        return (self.start, self.start) if unknown else (self.earliest, self.latest)


@dataclass(frozen=True)
class Told:
    """A message that an event began, or that it has grown, with the minute in which it came."""

    event: int
    at: float
    words: str
    level: str


@dataclass(frozen=True)
class FaultScore:
    """What a person learned of a fault: the first message about it, and how the first of its incidents ended."""

    fault: Fault
    message: Told | None = None
    incident: Seen | None = None
    #: How many events were told of it.
    events: int = 0

    @property
    def delay(self) -> float:
        """Minutes until the first message."""
        return math.nan if self.message is None else self.message.at - self.fault.begin

    @property
    def onset_covered(self) -> bool | None:
        """Whether it began when its incident says, to the minute; None if nobody was told."""
        if self.incident is None:
            return None
        earliest, latest = self.incident.began()
        return earliest - 1 <= self.fault.begin <= latest + 1


@dataclass(frozen=True)
class FleetScore:
    """What the messages were worth; events that are not of faults are sorted by why there was a message."""

    faults: tuple[FaultScore, ...]
    repairs: tuple[Told, ...]
    rhythms: tuple[Told, ...]
    false: tuple[Told, ...]
    weeks: float
    #: Hours before the disk was at its limit that somebody was told; 0 if not before, NaN if it never was.
    limit_ahead: float
    #: Median minutes that an incident of the errors of a deploy lasted.
    blip: float

    def of(self, name: str) -> FaultScore:
        """That of the fault with this name; as of one that nobody was told of, if it has not begun."""
        return next((one for one in self.faults if one.fault.name == name), FaultScore(Fault(name, (), 0, 0)))

    def figures(self) -> dict[str, str]:
        """The figures of the last line of the benchmark."""
        told = [one for one in self.faults if one.message is not None]
        widths = [
            latest - earliest
            for one in told
            if one.incident is not None and one.fault.name not in GRADUAL
            for earliest, latest in [one.incident.began()]
        ]
        covered = [bool(one.onset_covered) for one in told]
        return {
            "faults_told": f"{len(told)}/{len(self.faults)}",
            "outage_told_s": f"{60 * self.of('outage').delay:.0f}",
            "leak_told_h": f"{self.of('leak').delay / HOUR:.2f}",
            "disk_told_h": f"{self.of('slow disk').delay / HOUR:.2f}",
            "limit_ahead_h": f"{self.limit_ahead:.2f}",
            "outage_messages": f"{self.of('outage').events}",
            "repairs_told": f"{len(self.repairs)}",
            "false_messages_per_week": f"{len(self.false) / self.weeks:.2f}",
            "rhythm_messages": f"{len(self.rhythms)}",
            "onset_covers": f"{sum(covered) / len(covered) if covered else math.nan:.2f}",
            "onset_width_min": f"{median(widths) if widths else math.nan:.1f}",
            "blip_over_min": f"{self.blip:.1f}",
        }


@dataclass(frozen=True)
class Truth:
    """What happened from one minute until another, as far as it was sent."""

    faults: Sequence[Fault]
    #: Signals and whole services whose jobs are no news.
    rhythms: Sequence[str]
    deploys: Mapping[str, Sequence[int]]
    begin: int
    end: int
    #: When the disk that fills slowly was above its limit.
    limit_crossed: float = math.nan

    def is_rhythm(self, signal: str) -> bool:
        return signal in self.rhythms or signal.split("/")[0] in self.rhythms


def score(truth: Truth, messages: Iterable[Told], incidents: Iterable[Seen]) -> FleetScore:
    """Sort the messages by what was their reason.

    An event is of a fault if one of its incidents is on a signal of the fault, and starts while the fault lasts, or
    hardly before or after. It is a repair if one starts soon after the end. It is of a rhythm if all its signals have
    known jobs. All others are false. An event counts once, however often it was told that it grows.
    """
    messages = sorted(messages, key=lambda one: one.at)
    first: dict[int, Told] = {}
    for message in messages:
        first.setdefault(message.event, message)
    seen = list(incidents)
    members: dict[int, list[Seen]] = {event: [] for event in first}
    for incident in seen:
        if incident.event in members:
            members[incident.event].append(incident)
    faults = [one for one in truth.faults if truth.begin <= one.begin < truth.end]
    found = [_found(one, messages, members) for one in faults]
    sorted_out: dict[str, list[Told]] = {"fault": [], "repair": [], "rhythm": [], "false": []}
    for event, message in first.items():
        sorted_out[_reason(members[event], faults, truth)].append(message)
    return FleetScore(
        faults=tuple(found),
        repairs=tuple(sorted_out["repair"]),
        rhythms=tuple(sorted_out["rhythm"]),
        false=tuple(sorted_out["false"]),
        weeks=(truth.end - truth.begin) / WEEK,
        limit_ahead=_limit_ahead(truth, faults, messages, members),
        blip=_blip(truth, faults, seen),
    )


def _reason(members: Sequence[Seen], faults: Sequence[Fault], truth: Truth) -> str:
    if any(one.belongs(fault) for one in members for fault in faults):
        return "fault"
    if any(one.repairs(fault) for one in members for fault in faults):
        return "repair"
    return "rhythm" if members and all(truth.is_rhythm(one.signal) for one in members) else "false"


def _found(fault: Fault, messages: Sequence[Told], members: Mapping[int, Sequence[Seen]]) -> FaultScore:
    own = {event: [one for one in some if one.belongs(fault)] for event, some in members.items()}
    # One that joins an event of something earlier is told when the event is told again.
    about = [one for one in messages if own[one.event] and one.at >= min(seen.start for seen in own[one.event])]
    if not about:
        return FaultScore(fault)
    incident = min(own[about[0].event], key=lambda one: one.start)
    return FaultScore(fault, about[0], incident, len({one.event for one in about}))


def _limit_ahead(
    truth: Truth, faults: Sequence[Fault], messages: Sequence[Told], members: Mapping[int, Sequence[Seen]]
) -> float:
    if math.isnan(truth.limit_crossed):
        return math.nan
    told = [
        message.at
        for fault in faults
        if fault.name == "slow disk"
        for message in messages
        if any(one.belongs(fault) and one.kind == "limit" for one in members[message.event])
    ]
    return max([0.0, *((truth.limit_crossed - at) / HOUR for at in told[:1])])


def _blip(truth: Truth, faults: Sequence[Fault], incidents: Sequence[Seen]) -> float:
    """Of all incidents of errors at a deploy, told or not, but for those of faults."""
    lasted = [
        one.over - one.start
        for one in incidents
        if one.signal.endswith("/errors") and not any(one.belongs(fault) for fault in faults)
        if any(-BEFORE <= one.start - at <= AFTER for at in truth.deploys.get(one.signal.split("/")[0], ()))
    ]
    return median(lasted) if lasted else math.nan


def minutes_text(minutes: float) -> str:
    """A length of time as people say it.

    >>> minutes_text(3), minutes_text(150), minutes_text(3 * DAY)
    ('3 min', '2.5 h', '3 d')
    """
    if math.isnan(minutes):
        return "-"
    if abs(minutes) < 2 * HOUR:
        return f"{minutes:.2g} min" if abs(minutes) < 10 else f"{minutes:.0f} min"
    return f"{minutes / HOUR:.3g} h" if abs(minutes) < 2 * DAY else f"{minutes / DAY:.2g} d"

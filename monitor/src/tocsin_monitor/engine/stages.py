"""The stages of an observation, and the rules from one to the next, which are pure functions.

Observation        as a source submits it; it may have no time, and its signal may be new
Received           has an existing signal, a time and a value for each feature
Ordered            in the order of time, with its status
JudgedObservation  with its verdict, if there is one, ready to store
Outcome            stored; the reply to the sender
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from operator import attrgetter
from typing import TypeVar, dataclass_transform

from tocsin_monitor.engine.signals import NOTHING, AnySignal, MonitoredSignal, QuarantinedSignal
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Batch, Observation, Outcome, Status, StoredVerdict
from tocsin_monitor.store import MaintenanceRow, ObservationRow

T = TypeVar("T")

# The earliest time in 64-bit nanoseconds; the value before it means "not a time".
EARLIEST = -(2**63) + 1


@dataclass_transform(eq_default=False, frozen_default=True)
def stage(cls: type[T]) -> type[T]:
    """A frozen type that compares by identity.

    Only the type checker enforces that it is frozen: at run time, that would take longer than all the rules together.
    """
    return dataclass(eq=False, slots=True)(cls)


@stage
class Received:
    """A valid observation of an existing signal, with a value for each feature that is sent."""

    signal: AnySignal
    time: int
    values: tuple[float, ...]
    #: Whether it is imported history.
    history: bool = False
    #: Whether it is an aggregate already, if its signal aggregates.
    whole: bool = False


@stage
class Ordered:
    """An observation in the order of time. `status` is its outcome, unless it turns out to be a duplicate."""

    received: Received
    status: Status


@stage
class JudgedObservation:
    """An observation with its detector's verdict, which is all NaN if it is not judged."""

    received: Received
    status: Status
    verdict: StoredVerdict

    @property
    def row(self) -> ObservationRow:
        """The row to store."""
        return ObservationRow(self.received.signal.row.id, self.received.time, self.status, self.verdict)

    def outcome(self, incident: int | None) -> Outcome:
        """The outcome once it is stored; `incident` is the one that its alarm belongs to."""
        received = self.received
        return Outcome(received.signal.row.name, received.time, self.status, self.verdict, incident)


Fresh = dict[MonitoredSignal, list[Ordered]]


@dataclass(frozen=True)
class Order:
    """Received observations in the order of time."""

    #: Observations newer than all earlier ones of their signals.
    fresh: Fresh
    #: Late or imported observations, and those of quarantined signals: stored, unless they are duplicates.
    old: list[Ordered]
    #: Repeated observations, each with the first one, which counts.
    repeated: list[tuple[Received, Received]]


def with_times(batches: Sequence[Batch], signals: Mapping[str, MonitoredSignal], now: int, latest: int) -> list[Batch]:
    """The batches, with a time for each observation that has none: now, but after the previous one of its signal.

    A retry of a batch must use the times from the first attempt, because it may have been stored.
    """
    if not any(observation.time is None for batch in batches for observation in batch.observations):
        return list(batches)
    newest: dict[str, int] = {}
    timed = []
    for batch in batches:
        observations = []
        for one in batch.observations:
            if one.time is None:
                signal = signals.get(one.signal)
                last = -1 if signal is None or signal.last_time is None else signal.last_time
                one = replace(one, time=max(now, last + 1, newest.get(one.signal, -1) + 1))
            if one.time is not None and one.time <= latest:
                newest[one.signal] = max(one.time, newest.get(one.signal, -1))
            observations.append(one)
        timed.append(replace(batch, observations=tuple(observations)))
    return timed


def in_time(time: int | None, latest: int) -> bool:
    """Whether an observation with this time can be taken."""
    return time is not None and EARLIEST <= time <= latest


def receive(
    observation: Observation, signal: AnySignal | None, refused: Mapping[str, str],
    batch: Batch, now: int, latest: int,
) -> Received | Outcome:  # fmt: skip
    """An observation with its signal, or the outcome if it cannot be taken.

    `refused` has the reasons, by name, for signals that could not be created.
    """
    name, time = observation.signal, observation.time
    if time is None or time < EARLIEST:
        message = f"a time must be at least {EARLIEST} nanoseconds after 1970, got {time}"
        return Outcome(name, now, Status.REFUSED, message=message)
    if time > latest:
        ahead = (time - now) / 1e9
        message = f"its time must be at most {(latest - now) / 1e9:g} s ahead of the clock, got {ahead:.0f} s"
        return Outcome(name, time, Status.FUTURE, message=message)
    if signal is None:
        return Outcome(name, time, Status.REFUSED, message=refused[name])
    try:
        values = values_of(observation, signal.row.given_features)
    except RefusedError as error:
        return Outcome(name, time, Status.REFUSED, message=str(error))
    return Received(signal, time, values, batch.history, batch.whole)


def values_of(observation: Observation, features: Sequence[str]) -> tuple[float, ...]:
    """The values in the order of the signal's features; a feature that is not named is missing."""
    given, values = observation.features, observation.values
    if given is None:
        if len(values) == 1 and values[0] != values[0]:
            return values * len(features)  # all features are missing
        if len(values) != len(features):
            raise RefusedError(
                f"signal {observation.signal!r} has {len(features)} features ({', '.join(features)}), "
                f"got {len(values)} values"
            )
        return values
    unknown = [name for name in given if name not in features]
    if unknown:
        raise RefusedError(
            f"signal {observation.signal!r} has the features {', '.join(features)}, got {', '.join(unknown)}"
        )
    by_name = dict(zip(given, values, strict=False))
    if not len(by_name) == len(given) == len(values):
        raise RefusedError(
            f"an observation of {observation.signal!r} must have one value for each feature that it names, "
            f"got {len(values)} values for {', '.join(given)}"
        )
    return tuple(by_name.get(name, NOTHING) for name in features)


def put_in_order(received: Iterable[Received], windows: Sequence[MaintenanceRow]) -> Order:
    """Sort observations by time, and find out which are new."""
    order = Order({}, [], [])
    standing: dict[tuple[int, int], Received] = {}
    by_time = sorted(received, key=attrgetter("time"))
    if by_time:
        windows = [one for one in windows if one.start <= by_time[-1].time and by_time[0].time < one.end]
    for one in by_time:
        signal, time = one.signal, one.time
        first = standing.setdefault((signal.row.id, time), one)
        if first is not one:
            order.repeated.append((one, first))
        elif isinstance(signal, QuarantinedSignal):
            order.old.append(Ordered(one, Status.OUT_OF_RANGE if _is_outside(one) else Status.QUARANTINED))
        elif not one.history and signal.last_time is not None and time <= signal.last_time:
            order.old.append(Ordered(one, Status.LATE))
        else:
            status = Status.IMPORTED if one.history else Status.SCORED
            if windows and in_maintenance(windows, signal.name, time):
                status = Status.MAINTENANCE
            elif signal.row.rules.valid_range is not None and _is_outside(one):
                status = Status.OUT_OF_RANGE
            if one.history:
                order.old.append(Ordered(one, status))
            else:
                order.fresh.setdefault(signal, []).append(Ordered(one, status))
    return order


def _is_outside(one: Received) -> bool:
    row = one.signal.row
    return row.rules.outside(row.given_features, one.values) is not None


def without_duplicates(
    old: Iterable[Ordered], stored: Mapping[tuple[int, int], ObservationRow]
) -> tuple[list[Ordered], dict[Received, Outcome]]:
    """The late or imported observations to store, and the outcomes of duplicates, given the `stored` rows."""
    late: list[Ordered] = []
    duplicates: dict[Received, Outcome] = {}
    for one in old:
        signal, time = one.received.signal, one.received.time
        row = stored.get((signal.row.id, time))
        if row is None:
            late.append(one)
        else:
            duplicates[one.received] = Outcome(signal.name, time, Status.DUPLICATE, row.judged)
    return late, duplicates


def within_gaps(fresh: Fresh, most: int, windows: Sequence[MaintenanceRow] = ()) -> tuple[Fresh, set[Received]]:
    """The observations to take now, and those that wait because of more than `most` missing observations before them.

    Detectors also process missing observations, which takes time. At least one gap is taken, however long, so that no
    observation waits forever. Where no data means zero, the zeros are among the observations.
    """
    taken: Fresh = {}
    waiting: set[Received] = set()
    filled = 0
    for signal, some in fresh.items():
        kept: list[Ordered] = []
        last = signal.last_time
        for at, steps in enumerate(signal.steps_before([one.received.time for one in some])):
            if steps and filled and filled + steps > most:
                waiting.update(one.received for one in some[at:])
                break
            filled += steps
            moment = some[at].received.time
            if steps and last is not None:
                kept += zeros(signal, signal.absent(last, moment - signal.step // 2), windows, most)
            kept.append(some[at])
            last = moment
        if kept:
            taken[signal] = kept
    return taken, waiting


def zeros(signal: MonitoredSignal, times: Iterable[int], windows: Sequence[MaintenanceRow], most: int) -> list[Ordered]:
    """The observations that no data at these times stands for, the first ones. In maintenance, they are missing."""
    counted = (time for time in times if not in_maintenance(windows, signal.name, time))
    nothing = (0.0,) * len(signal.row.given_features)
    found = [Received(signal, time, nothing, whole=True) for time in islice(counted, most)]
    return put_in_order(found, ()).fresh.get(signal, [])


def unjudged(one: Ordered) -> JudgedObservation:
    """An observation to store without a verdict."""
    nothing = (NOTHING,) * len(one.received.signal.row.features)
    values = one.received.values + nothing[len(one.received.values) :]
    none = StoredVerdict(values, nothing, nothing, nothing, NOTHING, NOTHING, nothing, alarm=False, warm=False)
    return JudgedObservation(one.received, one.status, none)


def in_maintenance(windows: Sequence[MaintenanceRow], name: str, time: int) -> bool:
    """Whether a maintenance window covers this signal at this time."""
    return any(fnmatchcase(name, window.pattern) and window.covers(time) for window in windows)

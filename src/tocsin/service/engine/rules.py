"""The rules by which observations that arrive are sorted out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from operator import attrgetter

from tocsin.service.engine.aside import Aside
from tocsin.service.engine.watched import NOTHING, Watched
from tocsin.service.errors import RefusedError
from tocsin.service.observations import Batch, Observation, Outcome, Status
from tocsin.service.store import MaintenanceRow, ObservationRow


@dataclass(slots=True)
class Arrival:
    """An observation that arrived, and what became of it so far."""

    signal: Watched | Aside
    time: int
    values: tuple[float, ...]
    status: Status = Status.SCORED
    #: For a duplicate within what arrived: the one that stands.
    first: "Arrival | None" = None
    outcome: Outcome | None = None
    #: Whether it has to wait for another turn.
    deferred: bool = False
    #: Whether it is of a past that is imported.
    history: bool = False
    #: Whether it is put together already, where its signal does that.
    whole: bool = False


@dataclass
class Sorted:
    """What arrived, sorted out: for each signal what is new, in the order of time."""

    fresh: dict[Watched, list[Arrival]] = field(default_factory=dict)
    late: list[Arrival] = field(default_factory=list)
    #: Not newer than what its signal has, of the past, or of a signal that is set aside: kept, unless the store has it.
    old: list[Arrival] = field(default_factory=list)
    repeated: list[Arrival] = field(default_factory=list)

    def defer(self, most: int) -> None:
        """Leave for later what comes after so many missing observations, which its detectors have to take too.

        At least one gap is taken, however long it is, so that everything has its turn.
        """
        filled = 0
        for signal, arrivals in self.fresh.items():
            # To look at each would cost much for nothing: few signals have gaps, and those without an interval none.
            for at, steps in enumerate(signal.steps_before([arrival.time for arrival in arrivals])):
                if steps and filled and filled + steps > most:
                    for arrival in arrivals[at:]:
                        arrival.deferred = True
                    del arrivals[at:]
                    break
                filled += steps
        self.fresh = {signal: arrivals for signal, arrivals in self.fresh.items() if arrivals}
        for arrival in self.repeated:
            arrival.deferred = arrival.first is not None and arrival.first.deferred


def with_times(batches: Sequence[Batch], signals: Mapping[str, Watched], now: int, latest: int) -> list[Batch]:
    """The batches, with a time for each observation that came without one: now, and after what came before it.

    Whoever takes a batch again, not knowing whether it was stored, must do so with the times that it got at first.
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


def values_of(observation: Observation, features: Sequence[str]) -> tuple[float, ...]:
    """The values in the order of the signal's features; a feature that is not named is missing."""
    given, values = observation.features, observation.values
    if given is None:
        if len(values) == 1 and values[0] != values[0]:
            return values * len(features)  # all of it is missing
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


def sort_out(arrivals: Sequence[Arrival], windows: Sequence[MaintenanceRow]) -> Sorted:
    """Put what arrived into the order of time, and see what is new of it."""
    found = Sorted()
    standing: dict[tuple[str, int], Arrival] = {}
    in_order = sorted(arrivals, key=attrgetter("time"))
    if in_order:
        windows = [one for one in windows if one.start <= in_order[-1].time and in_order[0].time < one.end]
    for arrival in in_order:
        signal, time = arrival.signal, arrival.time
        first = standing.setdefault((signal.name, time), arrival)
        if first is not arrival:
            arrival.first = first
            found.repeated.append(arrival)
        elif isinstance(signal, Aside):
            arrival.status = Status.ASIDE
            found.old.append(arrival)
        elif not arrival.history and signal.last_time is not None and time <= signal.last_time:
            arrival.status = Status.LATE
            found.old.append(arrival)
        else:
            if windows and in_maintenance(windows, signal.name, time):
                arrival.status = Status.MAINTENANCE
            elif arrival.history:
                arrival.status = Status.IMPORTED
            if arrival.history:
                found.old.append(arrival)
            else:
                found.fresh.setdefault(signal, []).append(arrival)
    return found


def settle_old(found: Sorted, stored: Mapping[tuple[int, int], ObservationRow]) -> None:
    """Tell duplicates from what is late or of the past, knowing what the store has."""
    for arrival in found.old:
        row = stored.get((arrival.signal.row.id, arrival.time))
        if row is None:
            found.late.append(arrival)
        else:
            arrival.outcome = Outcome(arrival.signal.name, arrival.time, Status.DUPLICATE, row.judged)


def in_maintenance(windows: Sequence[MaintenanceRow], name: str, time: int) -> bool:
    """Whether a window holds for this signal at this time."""
    return any(window.start <= time < window.end and fnmatchcase(name, window.pattern) for window in windows)

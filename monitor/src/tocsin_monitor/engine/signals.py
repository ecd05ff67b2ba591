"""A signal that is monitored, or quarantined, and what is shown of it."""

import statistics
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Audit, arrays_to_bytes, length_text, missing_times, pack_arrays
from tocsin_monitor.engine.block import DetectorInput, SignalBlock
from tocsin_monitor.engine.kept_forecasts import UnsavedForecasts
from tocsin_monitor.engine.limits import LimitWatch
from tocsin_monitor.engine.peers import Peer
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.observations import StoredVerdict, record
from tocsin_monitor.rules import SignalRules
from tocsin_monitor.store import IncidentRow, ReferenceRow, SignalRow, StateRow, Store

NOTHING = float("nan")


@record
class Point:
    """One of the newest observations, for a sparkline: the value of the first feature."""

    time: int
    value: float
    p: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class SignalStatus:
    """The status of a signal; its JSON and its OpenAPI model follow from these fields. NaN is an unknown number.

    The defaults are for what is not known while it is quarantined.
    """

    id: int
    name: str
    features: tuple[str, ...]
    unit: str | None
    template: Annotated[str | None, Shown("The pattern of the template that its settings came from.")]
    alarm_rate: Annotated[float, Shown("The tolerated rate of what `promise` names, per observation.")] = NOTHING
    promise: Annotated[str, Shown("What the alarm rate limits: false incidents, or observations with p below it.")] = (
        "incidents"
    )
    last_time: Annotated[Time | None, Shown("The time of the newest observation.")] = None
    last_arrival: Annotated[Time | None, Shown("When the newest observation arrived.")] = None
    value: Annotated[tuple[float, ...], Shown("The newest value of each feature.")] = ()
    p: float = NOTHING
    severity: float = NOTHING
    alarm: bool = False
    warm: bool = False
    observations: Annotated[int, Shown("How many observations it has learned from.")] = 0
    warm_up: Annotated[int, Shown("How many observations the warm-up takes.")] = 0
    own_past_after: Annotated[
        int,
        Shown("How many it needs until its own past determines how rare something is; before, that is estimated."),
    ] = 0
    silent: bool = False
    #: That of a value out of range, if there is one, else of a limit, else of alarms, else the silence.
    incident: Annotated[int | None, Shown("The open incident.")] = None
    recent: Annotated[
        tuple[Point, ...], Shown("The newest observations: time, value of the first feature, p, alarm.")
    ] = ()
    reference: Annotated[ReferenceRow | None, Shown("The reference it is compared with instead of its own past.")] = (
        None
    )
    quarantined: Annotated[str | None, Shown("Why it is quarantined: its detector cannot be rebuilt.")] = None
    warning: Annotated[str | None, Shown("What is wrong with its sampling, and which setting would do.")] = None


@dataclass(frozen=True, slots=True)
class SignalDetails:
    """What a signal's detector has learned, and its audit."""

    weights: Annotated[list[list[float]], Shown("For each feature the weight of each lag.")]
    audit: Audit
    guarantee: str
    settings: dict[str, Any]
    silent_after: float | None
    rules: SignalRules
    memory_bytes: int


RECENT = 60
# The pace of a signal is the median of the newest intervals. It is known after the smaller number.
PACES = 16
LEAST_PACES = 8
# A signal is silent after this many times its pace, but not before this many seconds.
SILENT_PACES = 10
# Warn if observations come so many times as fast, or as slowly, as `interval` says.
OFF_PACE = 3.0
LEAST_SILENCE = 30.0


@dataclass(eq=False)
class MonitoredSignal:
    """A signal with its place in a block, and its recent observations."""

    row: SignalRow
    block: SignalBlock
    place: int
    #: What its detector compares with; None for the signal's recent past.
    reference: ReferenceRow | None = None
    last_time: int | None = None
    last_arrival: int | None = None
    #: Since when no data may mean zero: while the monitor does not run, data are missing.
    zero_since: int = field(default_factory=time.time_ns)
    #: Whether it sends. If its newest observation was imported, it cannot become silent.
    live: bool = True
    newest: StoredVerdict | None = None
    #: The number of observations its detector has taken, including missing ones.
    observations: int = 0
    #: The number of observations since its state was last stored.
    unsaved: int = 0
    #: The forecasts made after those.
    unsaved_forecasts: UnsavedForecasts = field(default_factory=UnsavedForecasts)
    #: The numbers of its open incidents.
    alarm_incident: int | None = None
    silence_incident: int | None = None
    range_incident: int | None = None
    limit_incident: int | None = None
    recent: deque[Point] = field(default_factory=lambda: deque(maxlen=RECENT))
    #: The parts of its incomplete aggregates, by time; None if they must be read from the store.
    parts: dict[int, tuple[float, ...]] | None = None
    paces: deque[int] = field(default_factory=lambda: deque(maxlen=PACES))
    #: Who sent its newest observation, and what is stored of that.
    source: str | None = None
    stored_source: str | None = None

    #: What is known of its limits; None if it has none.
    watch: LimitWatch | None = None

    #: What is known for comparing it with others; None if it is not.
    peer: Peer | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.source = self.stored_source = self.row.source
        given = self.row.given_features
        self.peer = None if given == self.row.features else Peer(len(given))

    @property
    def name(self) -> str:
        return self.row.name

    def steps_before(self, times: Sequence[int]) -> list[int]:
        """The number of missing observations before each of these."""
        if self.block.fleet.interval is None:
            return [0] * len(times)
        missing = self._missing_before(np.array(times, dtype=np.int64).view("datetime64[ns]"))
        return [len(missing.get(number, ())) for number in range(len(times))]

    def detector_input(
        self, times: Sequence[int] | NDArray[np.int64], values: Sequence[tuple[float, ...]] | NDArray[np.float64]
    ) -> DetectorInput:
        """The input for the detector: these observations, with the missing ones before each."""
        moments = np.array(times, dtype=np.int64).view("datetime64[ns]")
        missing, unit = self._missing_before(moments), self.row.unit or ""
        if not missing:
            return DetectorInput(np.array(values, dtype=np.float64), moments, range(len(times)), unit=unit)
        parts = [part for number, moment in enumerate(moments) for part in (missing.get(number, moments[:0]), [moment])]
        at = (np.cumsum([len(missing.get(number, ())) + 1 for number in range(len(times))]) - 1).tolist()
        all_values = np.full((at[-1] + 1, len(self.row.features)), NOTHING)
        all_values[at] = values
        return DetectorInput(all_values, np.concatenate(parts), at, unit=unit)

    def _missing_before(self, moments: NDArray[np.datetime64]) -> dict[int, NDArray[np.datetime64]]:
        """The times of missing observations, by the position of the observation that follows them."""
        interval = self.block.fleet.interval
        if interval is None:
            return {}
        # A detector that was reset has no gap before its first observation.
        known = self.last_time is not None and self.block.fleet.observations(self.place) > 0
        before = np.concatenate([[np.datetime64(self.last_time, "ns")] if known else moments[:1], moments[:-1]])
        apart = (moments - before) / np.timedelta64(1, "s")
        # Nothing is missing in little more than one interval. Checking that here is much faster than `missing_times`.
        return {
            int(number): missing_times(before[number], moments[number], interval)
            for number in np.flatnonzero(apart > 1.4 * interval)
        }

    def note_forecasts(self, times: NDArray[np.datetime64], kept_forecasts: NDArray[np.float64] | None) -> None:
        """Remember the forecasts made after its newest observations, if they are worth keeping."""
        if kept_forecasts is not None:
            self.unsaved_forecasts.add(times, kept_forecasts)

    def saved(self) -> None:
        """Record that its state was stored."""
        self.unsaved = 0
        self.unsaved_forecasts.begin()

    def count(self) -> None:
        """Update the number of observations its detector has taken."""
        self.observations = self.block.fleet.observations(self.place)

    def note(self, time: int, judged: StoredVerdict) -> None:
        """Remember the newest observation."""
        if self.last_time is not None:
            self.paces.append(time - self.last_time)
        self.last_time, self.newest = time, judged
        self.recent.append(Point(time, judged.value[0], judged.p, judged.alarm))

    def note_past(self, time: int) -> None:
        """Remember that an imported observation was stored, which waits to be judged."""
        if self.last_time is None or time > self.last_time:
            self.last_time, self.live = time, False

    @property
    def silent_after(self) -> float | None:
        """The seconds without an observation after which it counts as silent; None while unknown."""
        if self.row.silent_after is not None or self.row.rules.no_data_is_zero:
            return self.row.silent_after
        pace = self.pace
        return None if pace is None else max(LEAST_SILENCE, SILENT_PACES * pace)

    @property
    def pace(self) -> float | None:
        """The usual seconds between two observations; None while unknown."""
        return None if len(self.paces) < LEAST_PACES else statistics.median(self.paces) / 1e9

    @property
    def warning(self) -> str | None:
        """That its observations come much faster or more slowly than `interval` says, and which setting would do."""
        interval = self.block.fleet.interval
        pace = None if interval is None else self.pace
        if interval is None or not pace or interval / OFF_PACE <= pace <= interval * OFF_PACE:
            return None
        come, said = length_text(1, pace), length_text(1, interval)
        problem = f"data come every {come}, but interval is {said}"
        if pace > interval:
            return f"{problem}: most observations count as missing. Set interval to {come}"
        return f"{problem}: gaps go unnoticed. Set interval to {come}, or every to {said} to judge means over that time"

    @property
    def step(self) -> int:
        """Its interval in nanoseconds; 0 if it has none."""
        return round((self.block.fleet.interval or 0.0) * 1e9)

    def absent(self, after: int, until: int) -> range:
        """The times between these at which an observation without data counts as 0."""
        if not (self.row.rules.no_data_is_zero and self.step):
            return range(0)
        return range(after + self.step * max(1, -((after - self.zero_since) // self.step)), until, self.step)

    def absent_now(self, after: int, now: int) -> range:
        """The same for those whose interval is over. Aggregates get one interval more: parts may come a little late."""
        return self.absent(after, now - self.step * (1 if self.row.every is None else 2) + 1)

    def forget_newest(self, after: int) -> None:
        """Forget observations after a time."""
        kept = [point for point in self.recent if point.time <= after]
        self.recent.clear()
        self.recent.extend(kept)
        self.paces.clear()
        self.last_time = self.newest = self.watch = None
        if self.peer is not None and self.step:
            while self.peer.recent and self.peer.recent[-1][0] > after // self.step:
                self.peer.recent.pop()

    def is_overdue(self, now: int) -> bool:
        """Whether it has become silent and has no incident for that yet."""
        if self.silence_incident is not None or self.last_arrival is None or not self.live:
            return False
        if self.row.rules.no_data_is_zero:
            return False
        quiet = (now - self.last_arrival) / 1e9
        # Finding out the pace takes long, for something that is asked of every signal each second.
        if self.row.silent_after is None and quiet < LEAST_SILENCE:
            return False
        after = self.silent_after
        return after is not None and quiet >= after

    def remember(self, incident: IncidentRow) -> None:
        """Remember a stored incident."""
        setattr(self, f"{incident.kind}_incident", incident.id if incident.open else None)

    def status(self) -> SignalStatus:
        fleet, newest = self.block.fleet, self.newest
        incidents = self.range_incident, self.limit_incident, self.alarm_incident, self.silence_incident
        return SignalStatus(
            id=self.row.id,
            name=self.row.name,
            features=self.row.features,
            unit=self.row.unit,
            template=self.row.template,
            alarm_rate=fleet.alarm_rate,
            promise=fleet.settings.promise,
            last_time=self.last_time,
            last_arrival=self.last_arrival,
            value=newest.value if newest else (NOTHING,) * len(self.row.features),
            p=newest.p if newest else NOTHING,
            severity=newest.severity if newest else NOTHING,
            alarm=newest.alarm if newest else False,
            warm=newest is not None and newest.warm and self.observations > 0,
            observations=self.observations,
            warm_up=fleet.warm_up,
            own_past_after=fleet.own_past_after,
            silent=self.silence_incident is not None,
            incident=next(filter(None, incidents), None),
            recent=tuple(self.recent),
            reference=self.reference,
            warning=self.warning,
        )

    def details(self) -> SignalDetails:
        """What its detector has learned."""
        fleet = self.block.fleet
        return SignalDetails(
            weights=fleet.weights(self.place).mean(axis=1).astype(np.float64).tolist(),
            audit=fleet.audit(self.place),
            guarantee=fleet.guarantee,
            settings=self.row.settings,
            silent_after=self.silent_after,
            rules=self.row.rules,
            memory_bytes=fleet.memory_bytes,
        )


@dataclass(frozen=True)
class QuarantinedSignal:
    """A signal that is quarantined, and why. Its observations are stored but not judged."""

    row: SignalRow
    reason: str
    reference: ReferenceRow | None = None
    #: Its incidents that were open when it was quarantined.
    incidents: tuple[IncidentRow, ...] = ()

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def source(self) -> str | None:
        """Who sent its observations."""
        return self.row.source

    @property
    def message(self) -> str:
        """The error message: why it has no detector, and what to do."""
        return f"signal {self.name!r} is quarantined ({self.reason}): configure it, reset it or remove it"

    def status(self) -> SignalStatus:
        """Its status, as far as it is known."""
        row = self.row
        return SignalStatus(
            id=row.id,
            name=row.name,
            features=row.features,
            unit=row.unit,
            template=row.template,
            promise="observations" if row.settings.get("promise") == "observations" else "incidents",
            value=(NOTHING,) * len(row.features),
            incident=self.incidents[-1].id if self.incidents else None,
            reference=self.reference,
            quarantined=self.reason,
        )


AnySignal = MonitoredSignal | QuarantinedSignal

# The states stored in one turn. With more, observations would wait.
STATES_AT_ONCE = 8


def state_of(signal: MonitoredSignal) -> bytes:
    """A signal's state, as `Detector.to_bytes` gives it."""
    last = None if signal.last_time is None else np.datetime64(signal.last_time, "ns")
    return arrays_to_bytes(signal.block.fleet.signal_state(signal.place, last))


def save_states(store: Store, signals: Sequence[MonitoredSignal]) -> None:
    """Store the detector states of these signals in one transaction."""
    now = time.time_ns()
    states = [StateRow(one.row.id, one.last_time, now, state) for one, state in packed_states(signals).items()]
    with store.transaction() as writer:
        writer.put_states(states)
        for signal in signals:
            # With its state and no sooner: two senders may take turns.
            if signal.source != signal.stored_source:
                writer.change_signal(signal.row.id, source=signal.source)
    for signal in signals:
        signal.saved()
        signal.stored_source = signal.source


def packed_states(signals: Sequence[MonitoredSignal]) -> dict[MonitoredSignal, bytes]:
    """The states of signals in the form to store; those of one block are taken together."""
    by_block = defaultdict(list)
    for signal in signals:
        by_block[signal.block].append(signal)
    packed: dict[MonitoredSignal, bytes] = {}
    for block, some in by_block.items():
        lasts = [None if one.last_time is None else np.datetime64(one.last_time, "ns") for one in some]
        states = block.fleet.signal_states([one.place for one in some], lasts)
        packed.update((one, pack_arrays(state)) for one, state in zip(some, states, strict=True))
    return packed

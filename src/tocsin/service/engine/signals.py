"""What the engine keeps in mind about one signal: one that is monitored, or one that is set aside."""

import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.gaps import missing_times
from tocsin.service.engine.block import DetectorInput, SignalBlock
from tocsin.service.engine.kept_forecasts import UnsavedForecasts
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.observations import StoredVerdict
from tocsin.service.store import IncidentRow, ReferenceRow, SignalRow

RECENT = 60
# The pace of a signal is known after so many observations, and follows the newest ones.
PACES = 16
LEAST_PACES = 8
# A signal is silent after so many times its pace, and not before so many seconds.
SILENT_PACES = 10
LEAST_SILENCE = 30.0
NOTHING = float("nan")


@dataclass(eq=False)
class MonitoredSignal:
    """A signal in its place, and what has come of it lately."""

    row: SignalRow
    block: SignalBlock
    place: int
    #: What its detector compares with; None for its own past, as it moves on.
    reference: ReferenceRow | None = None
    last_time: int | None = None
    last_arrival: int | None = None
    #: Whether it sends: nobody waits for one whose newest observation was imported.
    live: bool = True
    newest: StoredVerdict | None = None
    #: Observations that its detector has taken, missing ones included.
    observations: int = 0
    #: Observations since its state was last stored.
    unsaved: int = 0
    #: What was forecast after those.
    unsaved_forecasts: UnsavedForecasts = field(default_factory=UnsavedForecasts)
    #: Numbers of its open incidents.
    alarm_incident: int | None = None
    silence_incident: int | None = None
    recent: deque[Point] = field(default_factory=lambda: deque(maxlen=RECENT))
    #: What it puts together and is not whole yet, by time; None where that has to be read.
    parts: dict[int, tuple[float, ...]] | None = None
    paces: deque[int] = field(default_factory=lambda: deque(maxlen=PACES))

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    def steps_before(self, times: Sequence[int]) -> list[int]:
        """How many observations are missing before each of these."""
        if self.block.fleet.interval is None:
            return [0] * len(times)
        missing = self._missing_before(np.array(times, dtype=np.int64).view("datetime64[ns]"))
        return [len(missing.get(number, ())) for number in range(len(times))]

    def detector_input(self, times: Sequence[int], values: Sequence[tuple[float, ...]]) -> DetectorInput:
        """What the detector is to take: these observations, with the missing ones before each."""
        moments = np.array(times, dtype=np.int64).view("datetime64[ns]")
        missing = self._missing_before(moments)
        if not missing:
            return DetectorInput(np.array(values, dtype=np.float64), moments, range(len(times)))
        parts = [part for number, moment in enumerate(moments) for part in (missing.get(number, moments[:0]), [moment])]
        at = (np.cumsum([len(missing.get(number, ())) + 1 for number in range(len(times))]) - 1).tolist()
        all_values = np.full((at[-1] + 1, len(self.row.features)), NOTHING)
        all_values[at] = values
        return DetectorInput(all_values, np.concatenate(parts), at)

    def _missing_before(self, moments: NDArray[np.datetime64]) -> dict[int, NDArray[np.datetime64]]:
        """The times of the observations that are missing, by the place of the one that they come before."""
        interval = self.block.fleet.interval
        if interval is None:
            return {}
        # What was before the first observation of a detector that forgot everything is nothing to it.
        known = self.last_time is not None and self.block.fleet.observations(self.place) > 0
        before = np.concatenate([[np.datetime64(self.last_time, "ns")] if known else moments[:1], moments[:-1]])
        apart = (moments - before) / np.timedelta64(1, "s")
        # In little more than a step none is missing: to ask before each observation would cost much for nothing.
        return {
            int(number): missing_times(before[number], moments[number], interval)
            for number in np.flatnonzero(apart > 1.4 * interval)
        }

    def note_forecasts(self, times: NDArray[np.datetime64], foretold: NDArray[np.float64] | None) -> None:
        """Keep what was forecast after its newest observations, if that is worth keeping."""
        if foretold is not None:
            self.unsaved_forecasts.add(times, foretold)

    def saved(self) -> None:
        """Its state is stored."""
        self.unsaved = 0
        self.unsaved_forecasts.begin()

    def count(self) -> None:
        """Keep in mind how many observations its detector has taken."""
        self.observations = self.block.fleet.observations(self.place)

    def note(self, time: int, judged: StoredVerdict) -> None:
        """Keep the newest observation in mind."""
        if self.last_time is not None:
            self.paces.append(time - self.last_time)
        self.last_time, self.newest = time, judged
        self.recent.append(Point(time, judged.value[0], judged.p, judged.alarm))

    def note_past(self, time: int) -> None:
        """An observation was stored that was imported, and waits to be judged."""
        if self.last_time is None or time > self.last_time:
            self.last_time, self.live = time, False

    @property
    def silent_after(self) -> float | None:
        """After how many seconds without an observation it counts as silent; None while that is not known."""
        if self.row.silent_after is not None:
            return self.row.silent_after
        if len(self.paces) < LEAST_PACES:
            return None
        return max(LEAST_SILENCE, SILENT_PACES * statistics.median(self.paces) / 1e9)

    def is_ahead(self, now: int) -> bool:
        """Whether its newest observation is ahead of the clock."""
        return self.last_time is not None and self.last_time > now

    def forget_newest(self, after: int) -> None:
        """Know nothing of observations after a time."""
        kept = [point for point in self.recent if point.time <= after]
        self.recent.clear()
        self.recent.extend(kept)
        self.paces.clear()
        self.last_time = self.newest = None

    def is_overdue(self, now: int) -> bool:
        """Whether it has become silent and nobody knows yet."""
        after = self.silent_after
        if self.silence_incident is not None or self.last_arrival is None or after is None or not self.live:
            return False
        return now - self.last_arrival >= after * 1e9

    def remember(self, incident: IncidentRow) -> None:
        """Keep in mind an incident as it is stored."""
        number = incident.id if incident.open else None
        if incident.kind == "alarm":
            self.alarm_incident = number
        else:
            self.silence_incident = number

    def status(self) -> SignalStatus:
        """How it is doing."""
        fleet, newest = self.block.fleet, self.newest
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
            incident=self.alarm_incident if self.alarm_incident is not None else self.silence_incident,
            recent=tuple(self.recent),
            reference=self.reference,
        )

    def details(self, faults: int) -> SignalDetails:
        """What its detector has learned; `faults` of its incidents were true."""
        fleet = self.block.fleet
        return SignalDetails(
            weights=fleet.weights(self.place).mean(axis=1).astype(np.float64).tolist(),
            audit=fleet.audit(self.place, faults=faults),
            guarantee=fleet.guarantee,
            settings=self.row.settings,
            silent_after=self.silent_after,
            memory_bytes=fleet.memory_bytes,
        )


@dataclass(frozen=True)
class AsideSignal:
    """A signal that is set aside, and why. What is observed of it is kept, and judged by nobody."""

    row: SignalRow
    reason: str
    reference: ReferenceRow | None = None
    #: Its incidents that were open when it was set aside.
    incidents: tuple[IncidentRow, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    @property
    def told(self) -> str:
        """Why nothing can be asked of its detector, and what can be done."""
        return f"signal {self.name!r} is set aside ({self.reason}): configure it, reset it or remove it"

    def status(self) -> SignalStatus:
        """What is known of it."""
        row = self.row
        promise = row.settings.get("promise")
        return SignalStatus(
            id=row.id,
            name=row.name,
            features=row.features,
            unit=row.unit,
            template=row.template,
            alarm_rate=NOTHING,
            promise=promise if promise == "observations" else "incidents",
            last_time=None,
            last_arrival=None,
            value=(NOTHING,) * len(row.features),
            p=NOTHING,
            severity=NOTHING,
            alarm=False,
            warm=False,
            observations=0,
            warm_up=0,
            own_past_after=0,
            silent=False,
            incident=self.incidents[-1].id if self.incidents else None,
            recent=(),
            reference=self.reference,
            aside=self.reason,
        )

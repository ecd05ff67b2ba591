"""What the engine keeps in mind about one signal."""

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tocsin.data import missing_steps
from tocsin.service.engine.block import Block, Stretch
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.observations import Judged
from tocsin.service.store import IncidentRow, SignalRow

RECENT = 60
# The pace of a signal is known after so many observations, and follows the newest ones.
PACES = 16
LEAST_PACES = 8
# A signal is silent after so many times its pace, and not before so many seconds.
SILENT_PACES = 10
LEAST_SILENCE = 30.0
NOTHING = float("nan")


@dataclass(eq=False)
class Watched:
    """A signal in its place, and what has come of it lately."""

    row: SignalRow
    block: Block
    place: int
    last_time: int | None = None
    last_arrival: int | None = None
    newest: Judged | None = None
    #: Observations that its detector has taken, missing ones included.
    observations: int = 0
    #: Observations since its state was last stored.
    unsaved: int = 0
    #: Numbers of its open incidents.
    alarm_incident: int | None = None
    silence_incident: int | None = None
    recent: deque[Point] = field(default_factory=lambda: deque(maxlen=RECENT))
    paces: deque[int] = field(default_factory=lambda: deque(maxlen=PACES))

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    def stretch(self, times: Sequence[int], values: Sequence[tuple[float, ...]]) -> Stretch:
        """What the detector is to take: these observations, with the missing ones before each."""
        gaps = self._gaps(times)
        if not any(gaps):
            moments = np.array(times, dtype=np.int64).view("datetime64[ns]")
            return Stretch(np.array(values, dtype=np.float64), moments, range(len(times)))
        step = self._step
        at = (np.cumsum(np.array(gaps) + 1) - 1).tolist()
        all_values = np.full((at[-1] + 1, len(self.row.features)), NOTHING)
        all_times = np.empty(at[-1] + 1, dtype=np.int64)
        all_values[at], all_times[at] = values, times
        last = self.last_time or 0  # without one there is no gap before the first
        for position, gap, time in zip(at, gaps, times, strict=True):
            all_times[position - gap : position] = last + np.arange(1, gap + 1) * step
            last = time
        return Stretch(all_values, all_times.view("datetime64[ns]"), at)

    @property
    def _step(self) -> int:
        return round((self.block.fleet.interval or 0.0) * 1e9)

    def _gaps(self, times: Sequence[int]) -> list[int]:
        """How many observations are missing before each of those at `times`."""
        if self.block.fleet.interval is None:
            return []
        step = self._step
        # What was before the first observation of a detector that forgot everything is nothing to it.
        last = self.last_time if self.block.fleet.pipeline.seen[self.place] else None
        gaps = []
        for time in times:
            gap = 0
            if last is not None and 2 * (time - last) >= 3 * step:  # in less none is missing
                gap = missing_steps(np.datetime64(last, "ns"), np.datetime64(time, "ns"), np.timedelta64(step, "ns"))
            gaps.append(gap)
            last = time
        return gaps

    def count(self) -> None:
        """Keep in mind how many observations its detector has taken."""
        self.observations = int(self.block.fleet.pipeline.seen[self.place])

    def note(self, time: int, judged: Judged) -> None:
        """Keep the newest observation in mind."""
        if self.last_time is not None:
            self.paces.append(time - self.last_time)
        self.last_time, self.newest = time, judged
        self.recent.append(Point(time, judged.value[0], judged.p, judged.alarm))

    @property
    def silent_after(self) -> float | None:
        """After how many seconds without an observation it counts as silent; None while that is not known."""
        if self.row.silent_after is not None:
            return self.row.silent_after
        if len(self.paces) < LEAST_PACES:
            return None
        return max(LEAST_SILENCE, SILENT_PACES * statistics.median(self.paces) / 1e9)

    def is_overdue(self, now: int) -> bool:
        """Whether it has become silent and nobody knows yet."""
        after = self.silent_after
        if self.silence_incident is not None or self.last_arrival is None or after is None:
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
        p = newest.p if newest else NOTHING
        return SignalStatus(
            id=self.row.id,
            name=self.row.name,
            features=self.row.features,
            unit=self.row.unit,
            template=self.row.template,
            alarm_rate=fleet.alarm_rate,
            last_time=self.last_time,
            last_arrival=self.last_arrival,
            value=newest.value if newest else (NOTHING,) * len(self.row.features),
            p=p,
            severity=-math.log10(p) if p > 0 else NOTHING,
            alarm=newest.alarm if newest else False,
            warm=newest is not None and newest.warm and self.observations > 0,
            observations=self.observations,
            warm_up=fleet.warm_up,
            silent=self.silence_incident is not None,
            incident=self.alarm_incident if self.alarm_incident is not None else self.silence_incident,
            recent=tuple(self.recent),
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
            memory_bytes=fleet.pipeline.scorer.nbytes // len(fleet.names),
        )

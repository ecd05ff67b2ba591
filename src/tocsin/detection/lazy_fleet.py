"""Creation of a fleet: at once, or with the first data, which provide what was not given."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from tocsin import checks
from tocsin.data.zones import Zone
from tocsin.detection.evidence.pipeline import Pipeline
from tocsin.detection.incidents.audit import AuditTrail
from tocsin.detection.incidents.budget import Sharing
from tocsin.detection.incidents.incident import IncidentLog
from tocsin.detection.peers import FEWEST, PeerLevels
from tocsin.detection.settings.arguments import Signals
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.settings.history_settings import ALONE, HistorySettings, resolve_names

Budget = str | float | None


@dataclass
class FleetParts:
    """Everything that exists once the settings are complete."""

    names: list[str]
    settings: DetectorSettings
    budget: Budget
    pipeline: Pipeline
    log: IncidentLog
    trail: AuditTrail
    sharing: Sharing | None
    #: Each signal's share of a budget of incidents.
    shared_rate: float | None
    #: How the signals are compared with each other, if they are.
    peers: PeerLevels | None
    #: The time of each signal's last observation from a frame.
    last_times: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def features(self) -> list[str]:
        """The names of the features of each signal."""
        return self.settings.feature_names

    @cached_property
    def given_features(self) -> list[str]:
        """The names of those that callers give; the others are their distances from the peers."""
        return self.features if self.peers is None else self.features[: len(self.features) // 2]

    @cached_property
    def interval(self) -> float | None:
        """The sampling interval in seconds, if known."""
        return self.settings.interval_seconds


class LazyFleet(ABC):
    """A fleet whose parts are created with the first data, if they need them."""

    #: How rows of a frame are aggregated.
    every: float | None
    aggregate: str
    #: The settings as given, for a fresh start, and the same until the first data complete them.
    given: tuple[Signals | None, HistorySettings, Budget] | None
    _pending: tuple[Signals | None, HistorySettings, Budget] | None
    _parts: FleetParts | None

    @classmethod
    def of(cls, signals: Signals, settings: DetectorSettings, budget: Budget = None, *, peers: bool = False) -> Self:
        """A fleet with complete settings, which with `peers` have the features of distances from them."""
        fleet = cls.__new__(cls)
        fleet.every, fleet.aggregate, fleet.given, fleet._pending = None, "mean", None, None
        fleet._parts = fleet._make(signals, settings, budget, peers=peers)
        return fleet

    @classmethod
    def pending(cls, signals: Signals | None, settings: HistorySettings, budget: Budget = None) -> Self:
        """A fleet with settings that the first data may complete."""
        fleet = cls.__new__(cls)
        fleet._wait(signals, settings, budget)
        return fleet

    def _wait(self, signals: Signals | None, settings: HistorySettings, budget: Budget) -> None:
        self.every, self.aggregate, self._parts = settings.every_seconds, settings.aggregate, None
        if signals is not None and not settings.waits_for_interval:
            self._parts = self._make_given(signals, settings, settings.of_a_signal(), budget)
        elif signals is not None:
            checks.names("signals", signals, ALONE)
        self.given = self._pending = (signals, settings, budget)

    @abstractmethod
    def _make(self, signals: Signals, settings: DetectorSettings, budget: Budget, *, peers: bool) -> FleetParts:
        """Create all parts."""

    def _make_given(
        self, signals: Signals, given: HistorySettings, complete: DetectorSettings, budget: Budget
    ) -> FleetParts:
        count = len(checks.names("signals", signals, ALONE))
        if given.has_peers and count < FEWEST:
            raise ValueError(f"peers must be used with at least {FEWEST} signals, got {count}")
        return self._make(signals, complete, budget, peers=given.has_peers)

    def clone(self) -> Self:
        """A new fleet with the same settings."""
        if self.given is not None:
            return self.pending(*self.given)
        return self.of(self.names, self.settings, self.budget, peers=self.parts.peers is not None)

    @property
    def is_complete(self) -> bool:
        """Whether everything needed to judge is known."""
        return self._parts is not None

    @property
    def expected(self) -> DetectorSettings:
        """The settings; before the first data, those known so far."""
        return self.settings if self._pending is None or self.is_complete else self._pending[1]

    def complete_from(
        self,
        *,
        features: Sequence[str],
        interval: Any = None,
        signals: Sequence[str] | None = None,
        observations: int | None = None,
    ) -> None:
        """Complete the settings from the first data: names, features, the interval, and how long a history is."""
        if self._pending is None:
            return
        given, settings, budget = self._pending
        if self._parts is not None and self.pipeline.seen.any():
            self._pending = None
            return
        own = None if given is None else checks.names("signals", given, ALONE)
        names = list(signals or [ALONE]) if own is None else resolve_names(own, signals, ALONE)
        complete = settings.of_a_signal(features, interval, observations)
        if self._parts is None or complete != self.settings or names != self.names:
            self._parts = self._make_given(names, settings, complete, budget)
        self._pending = None

    @property
    def parts(self) -> FleetParts:
        """All parts; if no data have arrived, they are created without, or what is missing is named."""
        if self._parts is None:
            signals, settings, budget = self._pending or (None, None, None)
            if signals is None or settings is None:
                raise ValueError("signals must be given, as a number or as names, or come with a frame; got neither")
            self._parts = self._make_given(signals, settings, settings.of_a_signal(), budget)
        return self._parts

    @property
    def names(self) -> list[str]:
        """The names of the signals."""
        return self.parts.names

    @property
    def settings(self) -> DetectorSettings:
        """The settings of each signal."""
        return self.parts.settings

    @property
    def features(self) -> list[str]:
        """The names of the features of each signal."""
        return self.parts.features

    @property
    def given_features(self) -> list[str]:
        """The names of the features that callers give: all, or without the distances from peers."""
        return self.expected.feature_names if self._parts is None else self._parts.given_features

    @property
    def interval(self) -> float | None:
        """The sampling interval in seconds, if known."""
        return self.parts.interval

    @property
    def zone(self) -> Zone | None:
        """The time zone of times without one; None if they are left as they are."""
        calendar = self.settings.local_calendar
        return None if calendar is None else calendar.zone

    @property
    def budget(self) -> Budget:
        """The budget that all signals share, if there is one."""
        return self.parts.budget

    @property
    def pipeline(self) -> Pipeline:
        """What judges the observations."""
        return self.parts.pipeline

    @property
    def log(self) -> IncidentLog:
        """The incidents."""
        return self.parts.log

    @property
    def trail(self) -> AuditTrail:
        """The counts of the audit."""
        return self.parts.trail

    @property
    def last_times(self) -> dict[int, Any]:
        """The time of each signal's last observation from a frame, by its row."""
        return self.parts.last_times

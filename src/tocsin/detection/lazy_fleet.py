"""Creation of a fleet: at once, or with the first data, which provide what was not given."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from tocsin import checks
from tocsin.detection.evidence.pipeline import Pipeline
from tocsin.detection.incidents.audit import AuditTrail
from tocsin.detection.incidents.budget import Sharing
from tocsin.detection.incidents.incident import IncidentLog
from tocsin.detection.settings.arguments import Signals
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.settings.history_settings import ALONE, HistorySettings, told_names


class Beginning(ABC):
    """The parts of a fleet. If some of them need the data, none exist before."""

    names: list[str]
    features: list[str]
    interval: float | None
    settings: DetectorSettings
    budget: str | float | None
    pipeline: Pipeline
    log: IncidentLog
    trail: AuditTrail
    #: How rows of a frame are aggregated, and the time of the last observation from a frame.
    every: float | None
    aggregate: str
    last_times: dict[int, Any]
    _sharing: Sharing | None
    _shared_rate: float | None
    #: The settings as given, for a fresh start, and the same until the first data complete them.
    asked_for: tuple[Signals | None, HistorySettings, str | float | None] | None
    _wanted: tuple[Signals | None, HistorySettings, str | float | None] | None

    @classmethod
    def of(cls, signals: Signals, settings: DetectorSettings, budget: str | float | None = None) -> Self:
        """A fleet with complete settings."""
        fleet = cls.__new__(cls)
        fleet.every, fleet.aggregate, fleet.asked_for, fleet._wanted = None, "mean", None, None
        fleet._begin(signals, settings, budget)
        return fleet

    @classmethod
    def wanting(cls, signals: Signals | None, settings: HistorySettings) -> Self:
        """A fleet with settings that the first data may complete."""
        fleet = cls.__new__(cls)
        fleet._want(signals, settings, None)
        return fleet

    def _want(self, signals: Signals | None, settings: HistorySettings, budget: str | float | None) -> None:
        self.every, self.aggregate = settings.every_seconds, settings.aggregate
        if signals is not None and not settings.waits_for_interval:
            self._begin(signals, settings.of_a_signal(), budget)
        elif signals is not None:
            checks.names("signals", signals, ALONE)
        self.asked_for = self._wanted = (signals, settings, budget)

    def clone(self) -> Self:
        """A new fleet with the same settings."""
        if self.asked_for is None:
            return self.of(self.names, self.settings, self.budget)
        fleet = type(self).__new__(type(self))
        fleet._want(*self.asked_for)
        return fleet

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute that is missing because no data have arrived: created without them, or refused."""
            wanted = self.__dict__.get("_wanted")
            if wanted is None or self.is_made or name not in Beginning.__annotations__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if wanted[0] is None:
                raise ValueError("signals must be given, as a number or as names, or come with a frame; got neither")
            self._begin(wanted[0], wanted[1].of_a_signal(), wanted[2])
            return getattr(self, name)

    @property
    def is_made(self) -> bool:
        """Whether everything needed to judge is known."""
        return "pipeline" in self.__dict__

    @property
    def expected(self) -> DetectorSettings:
        """The settings; before the first data, those known so far."""
        return self.settings if self._wanted is None or self.is_made else self._wanted[1]

    def meet(self, *, features: Sequence[str], interval: Any = None, signals: Sequence[str] | None = None) -> None:
        """Complete the settings from the first data: names, features, the interval."""
        if self._wanted is None:
            return
        given, settings, budget = self._wanted
        if self.is_made and self.pipeline.seen.any():
            self._wanted = None
            return
        own = None if given is None else checks.names("signals", given, ALONE)
        names = list(signals or [ALONE]) if own is None else told_names(own, signals, ALONE)
        told = settings.of_a_signal(features, interval)
        if not self.is_made or told != self.settings or names != self.names:
            self._begin(names, told, budget)
        self._wanted = None

    @abstractmethod
    def _begin(self, signals: Signals, settings: DetectorSettings, budget: str | float | None) -> None:
        """Create all parts."""

"""Settings that may partly come from the data: the features, the sampling interval and the alarm rate."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.data import AGGREGATES
from tocsin.detection.incidents.budget import check_budget
from tocsin.detection.peers import peer_features
from tocsin.detection.settings.alarm_rate import is_budget, parse_alarm_rate
from tocsin.detection.settings.declaration import declared, lists_settings, setting
from tocsin.detection.settings.detector_settings import DetectorSettings, as_features, as_seconds, check_alone
from tocsin.detection.settings.usual_rate import usual_rate

# A detector's name for its signal, so that a state does not depend on the row it came from.
ALONE = "signal"


@lists_settings()
@dataclass(frozen=True)
class HistorySettings(DetectorSettings):
    """How signals are judged. The first data may determine the features, the interval and the alarm rate.

    Parameters
    ----------
    {settings}
    """

    features: int | Sequence[str] | None = setting(  # type: ignore[assignment]  # None until data arrive
        None, "how many features each signal has, or their names", check=as_features, configured=False, saved=False,
        accepts="a number, or distinct names", unset="1, or the columns of the first frame",
    )  # fmt: skip
    _: KW_ONLY
    every: float | str | timedelta | np.timedelta64 | None = setting(
        None, "aggregate the rows of a frame to one observation per interval ('1min')",
        check=as_seconds, accepts="a duration ('1min'), or a number of seconds", configured=False, saved=False,
    )  # fmt: skip
    aggregate: str = setting("mean", "how `every` aggregates rows", choices=AGGREGATES, configured=False, saved=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every is not None and self.interval is not None:
            raise ValueError(f"interval must not be given with every, which sets it, got {self.interval!r}")

    @property
    def feature_names(self) -> list[str]:
        """The feature names; that of a single feature until data arrive."""
        return checks.names("features", 1 if self.features is None else self.features, "feature")

    @property
    def interval_seconds(self) -> float | None:
        """The sampling interval; None until data arrive."""
        return super().interval_seconds if self.every is None else self.every_seconds

    @property
    def every_seconds(self) -> float | None:
        """The interval to which the rows of a frame are aggregated."""
        return None if self.every is None else as_seconds("every", self.every)

    @property
    def waits_for_interval(self) -> bool:
        """Whether nothing can be judged before the interval is known."""
        return self.interval_seconds is None and (
            is_budget(self.alarm_rate)
            or isinstance(self.accept_after, str)
            or (isinstance(self.season, tuple) and any(isinstance(one, str) for one in self.season))
            or bool(self.zone or self.holidays)
        )

    @property
    def seasons(self) -> tuple[int, ...] | None:
        """The given periods in observations; None to look for them, or until data arrive."""
        return None if self.waits_for_interval else super().seasons

    def _check_sizes(self) -> None:
        if not self.waits_for_interval:
            super()._check_sizes()
            return
        if is_budget(self.alarm_rate):
            parse_alarm_rate(self.alarm_rate, interval_seconds=1e-9)
        if not self.loads_a_model:
            _ = self.chosen_forecaster  # reports a wrong one at once, not with the first data

    def _complete(self) -> None:
        """Without an alarm rate, it stays open until data arrive."""

    def of_a_signal(
        self, features: Sequence[str] | None = None, interval: Any = None, observations: int | None = None
    ) -> DetectorSettings:
        """The settings of each signal, completed from the data, which are the first so many observations."""
        given = {name: getattr(self, name) for name in declared(DetectorSettings)}
        if self.alarm_rate is None:
            given["alarm_rate"] = usual_rate(observations, preset=self.preset, promise=self.promise)
        given["features"] = resolve_names(self.feature_names, features, "feature", given=self.features is not None)
        seconds = self.interval_seconds
        given["interval"] = seconds if seconds is not None else _plain(interval)
        return DetectorSettings(**given)

    @property
    def has_peers(self) -> bool:
        """Whether signals are also compared with each other."""
        return False


@lists_settings()
@dataclass(frozen=True)
class FleetSettings(HistorySettings):
    """How the signals of a fleet are judged, and what they share.

    Parameters
    ----------
    {settings}
    """

    _: KW_ONLY
    budget: str | float | None = setting(
        None, "how many incidents all signals together may have ('5/week', the rarest), or what share of them may be "
        "false (0.1)", check=check_budget, configured=False, saved=False, unset="each signal has its alarm rate",
        accepts="incidents per time, or a number > 0 and < 1", presets=("full", "light"),
    )  # fmt: skip
    peers: bool = setting(
        False, "also compare each signal with the others at the same time, which doubles its features",
        configured=False, saved=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_alone(self.budget, self.alarm_rate, self.promise)
        super().__post_init__()

    @property
    def waits_for_interval(self) -> bool:
        """Whether nothing can be judged before the interval is known."""
        return super().waits_for_interval or (isinstance(self.budget, str) and self.interval_seconds is None)

    @property
    def has_peers(self) -> bool:
        """Whether signals are also compared with each other."""
        return self.peers

    def of_a_signal(
        self, features: Sequence[str] | None = None, interval: Any = None, observations: int | None = None
    ) -> DetectorSettings:
        """The settings of each signal, completed from the data, with the features of distances from its peers."""
        complete = super().of_a_signal(features, interval, observations)
        return replace(complete, features=peer_features(complete.feature_names)) if self.peers else complete


def resolve_names(own: Sequence[str], found: Sequence[str] | None, singular: str, *, given: bool = True) -> list[str]:
    """The names from the data, in place of the same number of generated ones, or if none were given.

    >>> resolve_names(["feature 1", "feature 2"], ["flow", "pressure"], "feature")
    ['flow', 'pressure']
    >>> resolve_names(["flow", "pressure"], ["a", "b"], "feature")
    ['flow', 'pressure']
    """
    fits = found is not None and (not given or (len(found) == len(own) and not are_named(own, singular)))
    return list(found) if found is not None and fits else list(own)


def are_named(names: Sequence[str], singular: str) -> bool:
    """Whether names are more than generated numbers."""
    return list(names) != checks.names("names", len(names), singular)


def _plain(interval: Any) -> Any:
    # The duration checks do not accept numpy's floats as numbers.
    return float(interval) if isinstance(interval, np.floating) else interval

"""The settings of a detector: every one is declared here, and nowhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal import MERGES
from tocsin.conformal.history import MOST_LAGS
from tocsin.conformal.scorer import MOST_THREADS
from tocsin.data import parse_duration
from tocsin.detection.alarm_rate import Sizes, is_budget, observations_to_resolve, parse_alarm_rate, sizes
from tocsin.detection.declaration import declared, lists_settings, setting
from tocsin.detection.nonconformity import NONCONFORMITIES, sides_of
from tocsin.forecasting import Forecaster, make_forecaster

DEFAULT_FORECASTER = "embedded"
LARGE = 10**9


def _features(name: str, value: Any) -> tuple[str, ...]:
    return tuple(checks.names(name, value, "feature"))


def _alarm_rate(name: str, value: Any) -> float | str:
    # What a budget comes to depends on the interval; see `rate`.
    return value if isinstance(value, str) else checks.number(name, value, above=0, below=0.5)


def _seconds(name: str, value: Any) -> float:
    # numpy counts its timedeltas among the integers.
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
        return checks.number(name, value, above=0, most=1e12)
    try:
        return float(parse_duration(value) / np.timedelta64(1, "s"))
    except ValueError as error:
        raise ValueError(f"{name} must be a number of seconds or a length of time: {error}") from None


def _forecaster(name: str, value: Any) -> Forecaster | str:
    if not isinstance(value, (Forecaster, str)):
        raise TypeError(f"{name} must be a Forecaster, the name of one, or None, got {value!r}")
    return value


@lists_settings()
@dataclass(frozen=True)
class DetectorSettings:
    """How signals are judged. What is made has been checked, all but the forecaster, which is made on first use.

    Parameters
    ----------
    {settings}

    >>> DetectorSettings(alarm_rate="1/day", interval="5min").rate
    0.003472222222222222
    """

    features: int | Sequence[str] = setting(
        1, "how many features each signal has, or their names", check=_features, configured=False, saved=False,
        accepts="a number, or different names",
    )  # fmt: skip
    _: KW_ONLY
    alarm_rate: float | str = setting(
        0.01, "the tolerated rate of false alarms: per observation (0.01), or over time ('1/day', '2/week')",
        check=_alarm_rate, accepts="a number > 0 and < 0.5, or a budget",
    )  # fmt: skip
    interval: float | str | timedelta | np.timedelta64 | None = setting(
        None, "the time between two observations: for budgets and gaps; `tocsin detect` finds it in the times",
        check=_seconds, accepts="a length of time ('5min'), or a number of seconds",
    )  # fmt: skip
    forecaster: Forecaster | str | None = setting(
        DEFAULT_FORECASTER, "what says what comes next (see `tocsin forecasters`); None where the values are scores",
        check=_forecaster, accepts="the name of a forecaster, a `Forecaster`, or None", saved=False,
    )  # fmt: skip
    forecaster_options: Mapping[str, Any] | None = setting(
        None, "arguments of a forecaster that is given by its name", accepts="names and values", saved=False
    )
    horizons: int = setting(
        15, "how many steps ahead is forecast; every observation is judged by as many forecasts", least=1, most=1024
    )
    nonconformity: str = setting(
        "absolute", "what is strange: the size of the error, both sides of it apart, only high or only low values",
        choices=NONCONFORMITIES,
    )  # fmt: skip
    scaled: bool = setting(False, "divide errors by the spread of the forecaster's own quantiles")
    light: bool = setting(
        False,
        "score the mean error over the horizons instead of each horizon: almost as good, two to three times as fast",
    )
    merge: str = setting("harmonic", "how the p-values of the horizons are merged", choices=MERGES)
    merge_features: str = setting("fisher", "how those of the features are merged", choices=MERGES)
    recalibrate: bool = setting(
        True, "rank the merged value among its own past, which makes a p-value of it whatever the merges"
    )
    learn: str = setting(
        "absorb", "learn every observation, or hold back those that stay strange", choices=("absorb", "hold")
    )
    hold_below: float | None = setting(
        None, "the p under which an observation is strange enough to be held back", above=0, below=1,
        unset="the alarm rate",
    )  # fmt: skip
    # Holding back single ones would leave nothing to compare the next strange one with, and alarms would become more
    # and more frequent.
    hold_after: int = setting(2, "how many strange observations in a row are still learned", least=0, most=LARGE)
    hold_most: int = setting(
        200, "how many observations in a row are held back before the new regime is accepted", least=1, most=LARGE
    )
    hold_context: bool = setting(False, "hide what is held back from the forecaster too")
    refresh: int = setting(
        1, "forecast only after every so many observations, to save calls of a slow model", least=1, most=1024
    )
    window: int | None = setting(
        None, "how many past errors a new one is compared with", least=250, most=MOST_LAGS,
        unset="what the alarm rate needs",
    )  # fmt: skip
    learning_rate: float = setting(
        0.01, "how fast the weights over the past are learned: about how far one can move in a step", above=0, most=0.1
    )
    gap: int = setting(
        10, "how many observations without alarm may lie between two alarms of one incident", least=0, most=LARGE
    )
    min_deviation: float = setting(
        0.0, "how far from its forecast a value must be, at least, to alarm", least=0, most=1e300
    )
    min_relative_deviation: float = setting(
        0.0, "the same, as a share of the size of the forecast", least=0, most=1e300
    )
    min_duration: int = setting(1, "how many observations an incident must last to be told of", least=1, most=LARGE)
    threads: int = setting(
        1, "how many threads share the scoring; the numbers do not depend on it", least=1, most=MOST_THREADS,
        configured=False, saved=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for one in declared(type(self)).values():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))
        self._check_together()
        _ = self.sizes  # refuses an alarm rate that could never be told

    @classmethod
    def check(cls, given: Mapping[str, Any], *, interval_known: bool = True) -> None:
        """Refuse settings that a detector would refuse, without making one.

        Where the interval comes with the data and is not known yet, all that can be told of a budget is whether it is
        one. A forecaster that has to load a model is not made: that would take long.
        """
        trial = dict(given)
        if not interval_known and trial.get("interval") is None and is_budget(trial.get("alarm_rate")):
            parse_alarm_rate(trial.pop("alarm_rate"), interval_seconds=1e-9)
        settings = cls(**trial)
        if not settings.loads_a_model:
            _ = settings.chosen_forecaster

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return checks.names("features", self.features, "feature")

    @cached_property
    def rate(self) -> float:
        """The tolerated rate of false alarms per observation."""
        return parse_alarm_rate(self.alarm_rate, self.interval_seconds)

    @property
    def interval_seconds(self) -> float | None:
        """The time between two observations."""
        return None if self.interval is None else _seconds("interval", self.interval)

    @property
    def strange_below(self) -> float:
        """The p under which an observation is strange enough to be held back."""
        return self.rate if self.hold_below is None else self.hold_below

    @property
    def judges_scores(self) -> bool:
        """Whether the values are nonconformity scores already."""
        return self.forecaster is None

    @property
    def loads_a_model(self) -> bool:
        """Whether to make the forecaster is to load a model."""
        return bool((self.forecaster_options or {}).get("model"))

    @cached_property
    def chosen_forecaster(self) -> Forecaster | None:
        """The forecaster itself; None where the values are nonconformity scores already."""
        chosen = self.forecaster
        if isinstance(chosen, str):
            chosen = make_forecaster(chosen, self.forecaster_options)
        if chosen is not None:
            self._check_forecaster(chosen)
        return chosen

    @property
    def scored_horizons(self) -> int:
        """How many errors of one feature are scored."""
        return 1 if self.judges_scores or self.light else self.horizons

    @cached_property
    def sizes(self) -> Sizes:
        """How much of the past is needed to tell the alarm rate."""
        merges = (MERGES[self.merge], MERGES[self.merge_features])
        shape = (len(self.feature_names), self.scored_horizons)
        resolving = observations_to_resolve(self.rate, merges, shape, sides_of(self.nonconformity))
        return sizes(self.rate, recalibrate=self.recalibrate, window=self.window, resolving=resolving)

    def saved(self) -> dict[str, Any]:
        """What a state keeps of them by their names."""
        kept = {one.name: getattr(self, one.name) for one in declared(type(self)).values() if one.rule.saved}
        return {**kept, "hold_below": self.strange_below}

    def _check_together(self) -> None:
        if self.forecaster_options and not isinstance(self.forecaster, str):
            raise ValueError(
                f"forecaster_options={self.forecaster_options!r} need the name of a forecaster, got {self.forecaster!r}"
            )
        if self.judges_scores:
            self._check_scores()
        if self.hold_context and self.learn != "hold":
            raise ValueError(f"hold_context=True needs learn='hold', got learn={self.learn!r}")

    def _check_scores(self) -> None:
        for name in ("scaled", "min_deviation", "min_relative_deviation", "hold_context"):
            if getattr(self, name):
                raise ValueError(f"{name}={getattr(self, name)!r} needs a forecaster, got forecaster=None")
        if self.nonconformity not in ("absolute", "high"):
            raise ValueError(
                "nonconformity must be left as it is with forecaster=None, whose values are scores already, "
                f"got {self.nonconformity!r}"
            )

    def _check_forecaster(self, forecaster: Forecaster) -> None:
        if self.scaled and not forecaster.levels:
            raise ValueError(f"scaled=True needs a forecaster with quantiles, got {forecaster!r}")
        steps = self.horizons + self.refresh - 1
        if steps > forecaster.longest_horizon:
            raise ValueError(
                f"horizons={self.horizons} with refresh={self.refresh} needs forecasts of {steps} steps, but "
                f"{forecaster!r} gives {forecaster.longest_horizon} at most"
            )

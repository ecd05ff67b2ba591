"""The settings of a detector: every one is declared here, and nowhere else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal.history import MOST_LAGS
from tocsin.conformal.scorer import MOST_THREADS
from tocsin.data import parse_duration
from tocsin.detection.alarm_rate import Sizes, is_budget, parse_alarm_rate, rarest_rate, sizes
from tocsin.detection.declaration import declared, lists_settings, setting
from tocsin.detection.nonconformity import NONCONFORMITIES
from tocsin.detection.presets import AUTO, PRESETS, VIEWS_BY_NAME
from tocsin.detection.views import View, available_views, make_view
from tocsin.detection.views.score import GivenScore
from tocsin.forecasting import Forecaster, make_forecaster

LARGE = 10**9
EXTRAPOLATION = 100.0


def as_features(name: str, value: Any) -> tuple[str, ...]:
    """The names of features, of a number of them or as they are."""
    return tuple(checks.names(name, value, "feature"))


def _alarm_rate(name: str, value: Any) -> float | str:
    # What a budget comes to depends on the interval; see `rate`.
    return value if isinstance(value, str) else checks.number(name, value, above=0, below=0.5)


def as_seconds(name: str, value: Any) -> float:
    """A length of time in seconds."""
    # numpy counts its timedeltas among the integers.
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
        return checks.number(name, value, above=0, most=1e12)
    try:
        return float(parse_duration(value) / np.timedelta64(1, "s"))
    except ValueError as error:
        raise ValueError(f"{name} must be a number of seconds or a length of time: {error}") from None


def _observations(name: str, value: Any) -> int | str:
    # How many observations a time is depends on the interval; see `accepted_after`.
    if not isinstance(value, str) or value.isdecimal():
        return checks.integer(name, int(value) if isinstance(value, str) else value, least=0, most=LARGE)
    try:
        parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a number of observations or a length of time: {error}") from None
    return value


def _forecaster(name: str, value: Any) -> Forecaster | str:
    if not isinstance(value, (Forecaster, str)):
        raise TypeError(f"{name} must be a Forecaster, the name of one, or None, got {value!r}")
    return value


def _views(name: str, value: Any) -> tuple[str, ...]:
    chosen = value
    if isinstance(value, str):
        chosen = VIEWS_BY_NAME.get(value, tuple(part.strip() for part in value.split(",")))
    names = tuple(chosen) if isinstance(chosen, Sequence) else (chosen,)
    known = available_views()
    if not names or not all(one in known for one in names) or len(set(names)) != len(names):
        accepted = ", ".join(map(repr, (*VIEWS_BY_NAME, *known)))
        raise ValueError(f"{name} must be different names among {accepted}, got {value!r}")
    return names


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
        1, "how many features each signal has, or their names", check=as_features, configured=False, saved=False,
        accepts="a number, or different names",
    )  # fmt: skip
    _: KW_ONLY
    alarm_rate: float | str = setting(
        0.01, "the tolerated rate of false incidents: per observation (0.01), or over time ('1/day', '2/week')",
        check=_alarm_rate, accepts="a number > 0 and < 0.5, or a budget",
    )  # fmt: skip
    promise: str = setting(
        "incidents", "what the alarm rate counts: incidents, or observations with p under it, as in the paper",
        choices=("incidents", "observations"),
    )  # fmt: skip
    interval: float | str | timedelta | np.timedelta64 | None = setting(
        None, "the time between two observations: for budgets and gaps; `tocsin detect` finds it in the times",
        check=as_seconds, accepts="a length of time ('5min'), or a number of seconds",
    )  # fmt: skip
    preset: str = setting(
        "full", "what forecaster, views and window are unless they are given: for most uses, or for large fleets",
        choices=PRESETS,
    )  # fmt: skip
    forecaster: Forecaster | str | None = setting(
        AUTO, "what says what comes next (see `tocsin forecasters`); None where the values are scores",
        check=_forecaster, accepts="the name of a forecaster, 'auto' for that of the preset, a `Forecaster`, or None",
        saved=False,
    )  # fmt: skip
    forecaster_options: Mapping[str, Any] | None = setting(
        None, "arguments of a forecaster that is given by its name", accepts="names and values", saved=False
    )
    views: str | Sequence[str] | None = setting(
        None, "what a signal is judged by: names of views, 'all' for every one that comes with tocsin, or 'paper'",
        check=_views, accepts="names of views, or 'paper'", unset="those of the preset",
    )  # fmt: skip
    nonconformity: str = setting(
        "absolute", "what is strange: the size of the error, both sides of it apart, only high or only low values",
        choices=NONCONFORMITIES,
    )  # fmt: skip
    scaled: bool = setting(False, "divide errors by the spread of the forecaster's own quantiles")
    merge_features: str = setting(
        "harmonic",
        "how features are merged: by the strangest few, or by all of them alike",
        choices=("harmonic", "mean"),
    )
    accept_after: int | str = setting(
        600, "when what an incident brought is accepted as normal, and learned: after so many observations, or a time",
        check=_observations, accepts=f"0 to {LARGE:,}, or a length of time ('12h')",
    )  # fmt: skip
    early: bool = setting(
        True,
        "alarm by an estimate of how rare something is, marked as such, as long as the past is too short to tell",
    )
    extrapolation: float = setting(
        EXTRAPOLATION, "how many times rarer than the past can tell such an estimate may call something",
        least=1, most=1e6, configured=False,
    )  # fmt: skip
    refresh: int = setting(
        1, "forecast only after every so many observations, to save calls of a slow model", least=1, most=1024
    )
    window: int | None = setting(
        None, "how many past scores a new one is compared with", least=250, most=MOST_LAGS,
        unset="that of the preset",
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
        self._check_sizes()

    def _check_sizes(self) -> None:
        _ = self.accepted_after
        _ = self.sizes  # refuses an alarm rate that could never be told

    @classmethod
    def check(cls, given: Mapping[str, Any], *, interval_known: bool = True) -> None:
        """Refuse settings that a detector would refuse, without making one.

        Where the interval comes with the data and is not known yet, all that can be told of a budget is whether it is
        one. A forecaster that has to load a model is not made: that would take long.
        """
        trial = dict(given)
        if not interval_known and trial.get("interval") is None and "accept_after" in trial:
            _observations("accept_after", trial.pop("accept_after"))
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
        """The tolerated rate of false incidents (or alarms) per observation."""
        return parse_alarm_rate(self.alarm_rate, self.interval_seconds)

    @property
    def interval_seconds(self) -> float | None:
        """The time between two observations."""
        return None if self.interval is None else as_seconds("interval", self.interval)

    @property
    def accepted_after(self) -> int:
        """After how many observations of an incident what it brought is accepted as normal."""
        if isinstance(self.accept_after, int):
            return self.accept_after
        if self.interval_seconds is None:
            raise ValueError(
                f"accept_after={self.accept_after!r} is a length of time: give the sampling interval too, such as "
                "interval='5min'"
            )
        return min(math.ceil(as_seconds("accept_after", self.accept_after) / self.interval_seconds), LARGE)

    @property
    def judges_scores(self) -> bool:
        """Whether the values are nonconformity scores already."""
        return self.forecaster is None

    @property
    def forecaster_name(self) -> str:
        """The name of the forecaster; empty where it has none."""
        if isinstance(self.forecaster, str):
            return PRESETS[self.preset].forecaster if self.forecaster == AUTO else self.forecaster
        return "" if self.forecaster is None else self.forecaster.name

    @property
    def loads_a_model(self) -> bool:
        """Whether to make the forecaster is to load a model."""
        return bool((self.forecaster_options or {}).get("model"))

    @cached_property
    def chosen_forecaster(self) -> Forecaster | None:
        """The forecaster itself; None where the values are nonconformity scores already."""
        chosen = PRESETS[self.preset].forecaster if self.forecaster == AUTO else self.forecaster
        if isinstance(chosen, str):
            options = PRESETS[self.preset].forecaster_options if self.forecaster == AUTO else {}
            chosen = make_forecaster(chosen, {**options, **(self.forecaster_options or {})})
        if chosen is not None:
            self._check_forecaster(chosen)
        return chosen

    @cached_property
    def chosen_views(self) -> tuple[View, ...]:
        """The views themselves."""
        if self.judges_scores:
            return (GivenScore(),)
        names = PRESETS[self.preset].views if self.views is None else self.views
        chosen = tuple(make_view(name) for name in names)
        if self.nonconformity == "absolute":
            return chosen
        # Of a shape or of stillness nobody can say whether it is high or low.
        sided = tuple(view for view in chosen if view.sided)
        if self.views is not None and len(sided) < len(chosen):
            others = ", ".join(view.name for view in chosen if not view.sided)
            raise ValueError(f"nonconformity={self.nonconformity!r} needs views that tell high from low, got {others}")
        return sided

    @property
    def horizons(self) -> int:
        """How many steps ahead of the forecasts made before an observation are looked at."""
        return max(1, *(view.horizons for view in self.chosen_views))

    @property
    def steps(self) -> int:
        """How many steps ahead is forecast."""
        return max(self.horizons, *(view.steps for view in self.chosen_views))

    @cached_property
    def sizes(self) -> Sizes:
        """How much of the past is needed to tell the alarm rate."""
        window = PRESETS[self.preset].window if self.window is None else self.window
        return sizes(self.rate, window=window, promise=self.promise)

    @property
    def rarest_rate(self) -> float:
        """The rarest that users are told that something is, in incidents an observation."""
        return rarest_rate(self.sizes, min(self.extrapolation, EXTRAPOLATION) if self.early else 1.0)

    def saved(self) -> dict[str, Any]:
        """What a state keeps of them by their names."""
        return {one.name: getattr(self, one.name) for one in declared(type(self)).values() if one.rule.saved}

    def _check_together(self) -> None:
        if self.forecaster_options and not isinstance(self.forecaster, str):
            raise ValueError(
                f"forecaster_options={self.forecaster_options!r} need the name of a forecaster, got {self.forecaster!r}"
            )
        if self.judges_scores:
            self._check_scores()
        _ = self.chosen_views

    def _check_scores(self) -> None:
        for name in ("views", "scaled", "min_deviation", "min_relative_deviation"):
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
        judging = [view.name for view in self.chosen_views if view.judgements]
        if judging and not forecaster.judges:
            raise ValueError(f"views={judging[0]!r} needs a forecaster that gives odds of faults, got {forecaster!r}")
        steps = self.steps + self.refresh - 1
        if steps > forecaster.longest_horizon:
            raise ValueError(
                f"refresh={self.refresh} needs forecasts of {steps} steps with these views, but {forecaster!r} gives "
                f"{forecaster.longest_horizon} at most"
            )


def check_alone(budget: Any, alarm_rate: Any, promise: str) -> None:
    """Refuse a promise for each signal beside a budget for all of them."""
    usual = declared(DetectorSettings)["alarm_rate"].default
    if str(alarm_rate) != str(usual) or promise != "incidents":
        raise ValueError(
            f"budget={budget!r} is a promise of its own: leave alarm_rate and promise as they are, "
            f"got {alarm_rate!r} and {promise!r}"
        )


def proposing(settings: DetectorSettings, rate: float) -> DetectorSettings:
    """The settings of a signal that proposes incidents at this rate, from which a budget selects.

    How rare each is need not be right then: it says which one is rarer than which, also far out, and is not told.
    """
    return replace(settings, alarm_rate=rate, extrapolation=EXTRAPOLATION**2)

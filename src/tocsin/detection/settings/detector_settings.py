"""The settings of a detector. Each is declared here and nowhere else."""

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
from tocsin.constants import constants
from tocsin.data import parse_duration
from tocsin.detection.settings.alarm_rate import Sizes, is_budget, most_beyond, parse_alarm_rate, rarest_rate, sizes
from tocsin.detection.settings.declaration import declared, lists_settings, setting
from tocsin.detection.views import View, available_views, make_view
from tocsin.detection.views.error import GivenScore
from tocsin.forecasting import Forecaster, make_forecaster

#: How each nonconformity score uses the error, value minus forecast; larger is more anomalous. The order is that of the
#: codes in `views/kernels.py`.
NONCONFORMITIES = {
    "absolute": "the size of the error",
    "high": "the error: only values above the forecast alarm",
    "low": "the negative error: only values below the forecast alarm",
}


def code_of(nonconformity: str) -> int:
    """Its code in the kernels."""
    return list(NONCONFORMITIES).index(nonconformity)


#: Means the forecasters of the preset.
AUTO = "auto"

PRESETS = {"full": ("embedded", "autoregression"), "light": ("autoregression",)}
"""The forecasters of each preset: "full" finds most; "light" is the same detector without the network."""

VIEWS = ("error", "shape", "quiet")

#: Options of the autoregression of a preset: a signal's memory should be small.
_REGRESSION = {"lags": 16, "search": 1152}


def named_forecasters(settings: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of each forecaster in the settings, the one with options first; none if the values are scores.

    >>> named_forecasters({"preset": "light"})
    [('autoregression', {'lags': 16, 'search': 1152})]
    >>> named_forecasters({"forecaster": "seasonal-naive", "forecaster_options": {"period": 24}})
    [('seasonal-naive', {'period': 24})]
    """
    name, given = settings.get("forecaster", AUTO), settings.get("forecaster_options") or {}
    if name is None:
        return []
    if name != AUTO:
        return [(name, dict(given))]
    # Only the first one has a spread to divide errors by.
    names = PRESETS[settings.get("preset", "full")][: 1 if settings.get("scaled") else None]
    options = [dict(_REGRESSION) if name == "autoregression" else {} for name in names]
    options[0].update(given)
    return list(zip(names, options, strict=True))


LARGE = 10**9
EXTRAPOLATION = 100.0


def as_features(name: str, value: Any) -> tuple[str, ...]:
    """Feature names, given as such or as a number of features."""
    return tuple(checks.names(name, value, "feature"))


def _alarm_rate(name: str, value: Any) -> float | str:
    # The rate of a budget depends on the interval; see `rate`.
    return value if isinstance(value, str) else checks.number(name, value, above=0, below=0.5)


def as_seconds(name: str, value: Any) -> float:
    """A duration in seconds."""
    # numpy counts its timedeltas among the integers.
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
        return checks.number(name, value, above=0, most=1e12)
    try:
        return float(parse_duration(value) / np.timedelta64(1, "s"))
    except ValueError as error:
        raise ValueError(f"{name} must be a number of seconds or a duration: {error}") from None


def _observations(name: str, value: Any) -> int | str:
    # The number of observations in a duration depends on the interval; see `accepted_after`.
    if not isinstance(value, str) or value.isdecimal():
        return checks.integer(name, int(value) if isinstance(value, str) else value, least=0, most=LARGE)
    try:
        parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a number of observations or a duration: {error}") from None
    return value


def _forecaster(name: str, value: Any) -> Forecaster | str | tuple[Forecaster, ...]:
    several = isinstance(value, (tuple, list))
    forecasters = tuple(value) if several else (value,)
    if not 1 <= len(forecasters) <= 2 or not all(
        isinstance(one, Forecaster) or (isinstance(one, str) and not several) for one in forecasters
    ):
        raise TypeError(f"{name} must be a Forecaster, the name of one, a pair of forecasters, or None, got {value!r}")
    return forecasters if several else value


def _views(name: str, value: Any) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value
    names = tuple(chosen) if isinstance(chosen, Sequence) else (chosen,)
    known = available_views()
    if not names or not all(one in known for one in names) or len(set(names)) != len(names):
        accepted = ", ".join(map(repr, known))
        raise ValueError(f"{name} must be distinct names among {accepted}, got {value!r}")
    return names


@lists_settings()
@dataclass(frozen=True)
class DetectorSettings:
    """How signals are judged. Everything is checked on creation except the forecaster, which is created on first use.

    Parameters
    ----------
    {settings}

    >>> DetectorSettings(alarm_rate="1/day", interval="5min").rate
    0.003472222222222222
    """

    features: int | Sequence[str] = setting(
        1, "how many features each signal has, or their names", check=as_features, configured=False, saved=False,
        accepts="a number, or distinct names",
    )  # fmt: skip
    _: KW_ONLY
    alarm_rate: float | str = setting(
        0.01, "the tolerated rate of false incidents: per observation (0.01), or over time ('1/day', '2/week')",
        check=_alarm_rate, accepts="a number > 0 and < 0.5, or a budget",
    )  # fmt: skip
    promise: str = setting(
        "incidents", "what the alarm rate limits: incidents, or observations with p below it, as in the paper",
        choices=("incidents", "observations"),
    )  # fmt: skip
    interval: float | str | timedelta | np.timedelta64 | None = setting(
        None, "the sampling interval, for budgets and gaps; `tocsin detect` infers it from the times",
        check=as_seconds, accepts="a duration ('5min'), or a number of seconds",
    )  # fmt: skip
    preset: str = setting(
        "full", "the default forecasters: \"full\" for most uses, \"light\" without the network, for large fleets",
        choices=PRESETS,
    )  # fmt: skip
    forecaster: Forecaster | str | Sequence[Forecaster] | None = setting(
        AUTO, "the forecaster (see `tocsin forecasters`); None if the values are scores",
        check=_forecaster, saved=False,
        accepts="the name of a forecaster, 'auto' for those of the preset, a `Forecaster` or two of them, or None",
    )  # fmt: skip
    forecaster_options: Mapping[str, Any] | None = setting(
        None, "arguments of a forecaster given by name", accepts="names and values", saved=False
    )
    views: str | Sequence[str] | None = setting(
        None, "the views that judge a signal", check=_views, accepts="names of views", unset=", ".join(VIEWS),
    )  # fmt: skip
    nonconformity: str = setting(
        "absolute", "which errors are anomalous: large ones on either side, or only high or low values",
        choices=NONCONFORMITIES,
    )  # fmt: skip
    scaled: bool = setting(False, "divide errors by the spread of the forecaster's quantiles")
    accept_after: int | str = setting(
        600, "after how many observations, or how long, a lasting incident is accepted as the new normal and learned",
        check=_observations, accepts=f"0 to {LARGE:,}, or a duration ('12h')",
    )  # fmt: skip
    early: bool = setting(
        True,
        "alarm by an estimated tail, marked as such, while the signal's past is too short for the alarm rate",
    )
    extrapolation: float = setting(
        EXTRAPOLATION, "how many times rarer than the past can show such an estimate may be",
        least=1, most=1e6, configured=False,
    )  # fmt: skip
    refresh: int = setting(
        1, "ask the first forecaster only at every n-th observation, to save calls of a slow model", least=1, most=1024
    )
    window: int | None = setting(
        None, "the size of the calibration set: how many past scores to compare with", least=250, most=MOST_LAGS,
        unset=f"{constants().calibration:,}",
    )  # fmt: skip
    learning_rate: float = setting(
        0.01, "learning rate of the weights over the past: about how far a weight can move in a step", above=0, most=0.1
    )
    gap: int = setting(
        10, "how many observations without an alarm may separate two alarms of one incident", least=0, most=LARGE
    )
    min_deviation: float = setting(
        0.0, "the least distance from its forecast at which a value may alarm", least=0, most=1e300
    )
    min_relative_deviation: float = setting(0.0, "the same, relative to the size of the forecast", least=0, most=1e300)
    min_duration: int = setting(1, "how many observations an incident must last to be reported", least=1, most=LARGE)
    threads: int = setting(
        1, "how many threads share the scoring; results do not depend on it", least=1, most=MOST_THREADS,
        configured=False, saved=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for one in declared(type(self)).values():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))
        self._check_together()
        self._check_sizes()

    def _check_sizes(self) -> None:
        _ = self.accepted_after
        _ = self.sizes  # rejects an alarm rate that is too small to measure

    @classmethod
    def check(cls, given: Mapping[str, Any], *, interval_known: bool = True) -> None:
        """Reject settings that a detector would reject, without creating one.

        If the interval comes with the data and is not known yet, a budget's syntax is all that can be checked. A
        forecaster that has to load a model is not created, because that takes long.
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
        """After how many observations a persistent incident is accepted as the new normal."""
        if isinstance(self.accept_after, int):
            return self.accept_after
        if self.interval_seconds is None:
            raise ValueError(
                f"accept_after={self.accept_after!r} is a duration: set the sampling interval too, such as "
                "interval='5min'"
            )
        return min(math.ceil(as_seconds("accept_after", self.accept_after) / self.interval_seconds), LARGE)

    @property
    def judges_scores(self) -> bool:
        """Whether the values are already nonconformity scores."""
        return self.forecaster is None

    @property
    def forecaster_name(self) -> str:
        """The name of the forecaster; empty if it has none."""
        if isinstance(self.forecaster, str):
            return PRESETS[self.preset][0] if self.forecaster == AUTO else self.forecaster
        return next((one.name for one in self.chosen_forecasters), "")

    @property
    def loads_a_model(self) -> bool:
        """Whether creating the forecaster loads a model."""
        return bool((self.forecaster_options or {}).get("model"))

    @cached_property
    def chosen_forecasters(self) -> tuple[Forecaster, ...]:
        """The forecasters themselves, the one whose forecasts are shown first; none if the values are scores."""
        if self.forecaster is None or isinstance(self.forecaster, str):
            names = ("forecaster", "forecaster_options", "preset", "scaled")
            named = named_forecasters({name: getattr(self, name) for name in names})
            chosen = tuple(make_forecaster(name, options) for name, options in named)
        else:
            chosen = (self.forecaster,) if isinstance(self.forecaster, Forecaster) else tuple(self.forecaster)
        for number, forecaster in enumerate(chosen):
            # The second one looks a single step ahead.
            self._check_forecaster(forecaster, self.horizons + self.refresh - 1 if number == 0 else 1)
        return chosen

    @property
    def chosen_forecaster(self) -> Forecaster | None:
        """The first forecaster; None if the values are already nonconformity scores."""
        return next(iter(self.chosen_forecasters), None)

    @cached_property
    def chosen_views(self) -> tuple[View, ...]:
        """The views themselves."""
        if self.judges_scores:
            return (GivenScore(),)
        chosen = tuple(make_view(name) for name in self.views or VIEWS)
        if self.nonconformity == "absolute":
            return chosen
        # Shape and stillness are neither high nor low.
        sided = tuple(view for view in chosen if view.sided)
        if self.views is not None and len(sided) < len(chosen):
            others = ", ".join(view.name for view in chosen if not view.sided)
            raise ValueError(f"nonconformity={self.nonconformity!r} needs views that tell high from low, got {others}")
        return sided

    @property
    def horizons(self) -> int:
        """How many horizons of earlier forecasts the views use."""
        return max(1, *(view.horizons for view in self.chosen_views))

    @cached_property
    def sizes(self) -> Sizes:
        """How much of the past the alarm rate needs."""
        return sizes(self.rate, window=self.window or constants().calibration, promise=self.promise)

    @property
    def rarest_rate(self) -> float:
        """The smallest rate ever reported, in incidents per observation."""
        return rarest_rate(self.sizes, min(self.extrapolation, EXTRAPOLATION) if self.early else 1.0)

    def saved(self) -> dict[str, Any]:
        """The saved settings by name."""
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
                "nonconformity must keep its default with forecaster=None, because the values are already scores, "
                f"got {self.nonconformity!r}"
            )

    def _check_forecaster(self, forecaster: Forecaster, steps: int) -> None:
        if self.scaled and not forecaster.levels:
            raise ValueError(f"scaled=True needs a forecaster with quantiles, got {forecaster!r}")
        if steps > forecaster.longest_horizon:
            raise ValueError(
                f"refresh={self.refresh} needs forecasts of {steps} steps with these views, but {forecaster!r} "
                f"supports {forecaster.longest_horizon} at most"
            )


def check_alone(budget: Any, alarm_rate: Any, promise: str) -> None:
    """Reject a per-signal promise together with a budget for all signals."""
    usual = declared(DetectorSettings)["alarm_rate"].default
    if str(alarm_rate) != str(usual) or promise != "incidents":
        raise ValueError(
            f"budget={budget!r} replaces the alarm rate: leave alarm_rate and promise at their defaults, "
            f"got {alarm_rate!r} and {promise!r}"
        )


def proposing(settings: DetectorSettings, rate: float) -> DetectorSettings:
    """The settings of a signal that proposes incidents at this rate, for a budget to select from.

    Their rates need not be calibrated then: they only order incidents by rarity, and are not reported.
    """
    return replace(settings, alarm_rate=rate, extrapolation=EXTRAPOLATION**2)


def guarantee_of(settings: DetectorSettings, alarm_rate: float, budget: str | float | None, own_past_after: int) -> str:
    """What is guaranteed, and under which assumption.

    A budget is a number of incidents of all signals together, such as "5/week", or the share of false ones.
    `own_past_after` is after how many observations a signal's own past determines the alarm rate.
    """
    p = "closed loop: in the long run p is below each of ten levels, 0.0005 to 0.5, at most that often"
    if isinstance(budget, str):
        return f"pooled: about {budget} incidents of all signals together, by how rare earlier ones were; {p}"
    if budget is not None:
        return f"estimated: a share of about {budget:g} of all incidents is false, by the signals' own rates; {p}"
    if settings.promise == "observations":
        return p
    beyond = most_beyond(settings.sizes, alarm_rate, settings.extrapolation if settings.early else 1)
    early = (
        f"; estimated: how rare an incident is in the first {own_past_after} observations of a signal"
        if settings.early
        else ""
    )
    return f"long-run, for any sequence: incidents <= alarm_rate * observations + {beyond}; {p}{early}"

"""The settings of a detector. Each is declared here and nowhere else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal import W1ACAS, available_merges
from tocsin.conformal.scorer import MOST_LAGS, MOST_THREADS
from tocsin.conformal.weighted import critical_size
from tocsin.constants import constants
from tocsin.data import parse_duration
from tocsin.data.zones import check_zone
from tocsin.detection.calendar import Calendar, check_holidays
from tocsin.detection.paper.scoring import CONTEXT, PAPER, PAPER_OPTIONS, HorizonErrors
from tocsin.detection.settings.alarm_rate import (
    RAREST,
    Sizes,
    check_rate,
    is_budget,
    most_beyond,
    parse_alarm_rate,
    rarest_rate,
    sizes,
)
from tocsin.detection.settings.declaration import declared, lists_settings, setting
from tocsin.detection.settings.usual_rate import ALPHA, IN_A_HISTORY, MOST, STREAM, usual_rate
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

# Its lags are few: a signal's memory should be small.
_REGRESSION = ("autoregression", {"lags": 16, "search": 1152})

PRESETS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "full": (("embedded", {}), _REGRESSION),
    "light": (_REGRESSION,),
    PAPER: (("embedded", {"context_length": CONTEXT}),),
}
"""The forecasters of each preset, with their options: "full" finds most; "light" is the same detector without the
network; "paper" is the detector of the paper on W1-ACAS."""

VIEWS = ("error", "shape", "movement", "level", "relation")

_USUAL = ("full", "light")
_LEARNING_RATE = 0.01


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
    chosen = PRESETS[settings.get("preset", "full")][: 1 if settings.get("scaled") else None]
    return [(name, {**options, **(given if number == 0 else {})}) for number, (name, options) in enumerate(chosen)]


LARGE = 10**9
# Two cycles have to fit into what is kept of a signal.
LONGEST_SEASON = 24_576


def as_features(name: str, value: Any) -> tuple[str, ...]:
    """Feature names, given as such or as a number of features."""
    return tuple(checks.names(name, value, "feature"))


def _alarm_rate(name: str, value: Any) -> float | str:
    # The rate of a budget depends on the interval; see `rate`.
    return value if isinstance(value, str) else check_rate(name, value)


def as_seconds(name: str, value: Any) -> float:
    """A duration in seconds."""
    # numpy counts its timedeltas among the integers.
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
        return checks.number(name, value, least=1e-9, most=1e12)
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


def _season(name: str, value: Any) -> str | tuple[int | str, ...]:
    if isinstance(value, str) and value in ("auto", "none"):
        return value
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, Sequence) else (value,)
    if not parts:
        raise ValueError(f"{name} must name at least one period, or be 'none', got {value!r}")
    # The number of observations in a duration depends on the interval; see `seasons`.
    return tuple(_observations(name, part.strip() if isinstance(part, str) else part) for part in parts)


def _views(name: str, value: Any) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value
    names = tuple(chosen) if isinstance(chosen, Sequence) else (chosen,)
    known = available_views()
    if not names or not all(one in known for one in names) or len(set(names)) != len(names):
        accepted = ", ".join(map(repr, known))
        raise ValueError(f"{name} must be distinct names among {accepted}, got {value!r}")
    return names


def _merge(name: str, value: Any) -> str:
    return checks.choice(name, value, available_merges())


def _of_the_paper(name: str, meaning: str, **rules: Any) -> Any:
    return setting(None, meaning, unset=f"{PAPER_OPTIONS[name]}", presets=(PAPER,), **rules)


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
    alarm_rate: float | str | None = setting(
        None, "the tolerated rate of false incidents: per observation (0.001), or over time ('1/day', '2/week')",
        check=_alarm_rate, accepts=f"a number from {RAREST:g} to below 0.5, or a budget",
        unset=f"{STREAM:g}, or about {IN_A_HISTORY} false incidents in a file or first frame, at most {MOST:g}; "
        f'{ALPHA:g} with preset="{PAPER}"',
    )  # fmt: skip
    promise: str = setting(
        "incidents", "what the alarm rate limits: incidents, or observations with p below it",
        choices=("incidents", "observations"),
    )  # fmt: skip
    interval: float | str | timedelta | np.timedelta64 | None = setting(
        None, "the sampling interval, for budgets and gaps; `tocsin detect` infers it from the times",
        check=as_seconds, accepts="a duration ('5min'), or a number of seconds",
    )  # fmt: skip
    preset: str = setting(
        "full", "\"full\" for most uses, \"light\" without the network, for large fleets, \"paper\" for the detector "
        "of the paper on W1-ACAS", choices=PRESETS,
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
        presets=_USUAL,
    )  # fmt: skip
    season: str | int | Sequence[str | int] | None = setting(
        "auto", "the period of the signal's season, or several; found in its past by default",
        check=_season, accepts="'auto', 'none', durations ('1d', '1w') or numbers of observations",
        presets=_USUAL,
    )  # fmt: skip
    zone: str | None = setting(
        None, "the time zone of the place: what is usual at a time goes by its clocks, in summer and in winter",
        check=check_zone, accepts="the name of a time zone ('Europe/Berlin')", unset="UTC",
    )  # fmt: skip
    holidays: str | Sequence[str | date] | None = setting(
        None, "the days that are compared with Sundays, if the signal has weeks, and no other day with them",
        check=check_holidays, accepts="codes of countries or regions ('DE', 'DE-BY'), dates ('2026-12-24'), or several",
        presets=_USUAL,
    )  # fmt: skip
    nonconformity: str = setting(
        "absolute", "which errors are anomalous: large ones on either side, or only high or low values",
        choices=NONCONFORMITIES, presets=_USUAL,
    )  # fmt: skip
    scaled: bool = setting(False, "divide errors by the spread of the forecaster's quantiles", presets=_USUAL)
    accept_after: int | str = setting(
        600, "after how many observations, or how long, a lasting incident is accepted as the new normal and learned",
        check=_observations, accepts=f"0 to {LARGE:,}, or a duration ('12h')", presets=_USUAL,
    )  # fmt: skip
    early: bool = setting(
        True,
        "alarm by an estimated tail, marked as such, while the signal's past is too short for the alarm rate",
        presets=_USUAL,
    )
    refresh: int = setting(
        1, "ask the first forecaster only at every n-th observation, to save calls of a slow model", least=1, most=1024,
        presets=_USUAL,
    )  # fmt: skip
    window: int | None = setting(
        None, "the size of the calibration set: how many past scores to compare with", least=250, most=MOST_LAGS,
        unset=f'{constants().calibration:,}; {PAPER_OPTIONS["window"]:,} with preset="{PAPER}"',
    )  # fmt: skip
    learning_rate: float = setting(
        None, "learning rate of the weights over the past: about how far a weight can move in a step", above=0,
        most=0.1, unset=f'{_LEARNING_RATE:g}; {PAPER_OPTIONS["learning_rate"]:g} with preset="{PAPER}"',
    )  # fmt: skip
    horizons: int | None = _of_the_paper(
        "horizons", "how many forecasts of an observation are judged: those made 1, 2, ... observations before",
        least=1, most=1024,
    )  # fmt: skip
    alpha_c: float | None = _of_the_paper(
        "alpha_c", "the smallest p that must stay possible: it limits how few past errors have weight",
        above=1 / MOST_LAGS, below=1,
    )  # fmt: skip
    batch: int | None = _of_the_paper("batch", "n_b, after how many p-values the weights move", least=1, most=MOST_LAGS)
    optimizer: str | None = _of_the_paper("optimizer", "how the weights move", choices=("adam", "sgd"))
    prior: str | None = _of_the_paper(
        "prior", "how an error is weighted that is older than any so far: as the oldest, or not at all, as Algorithm 1 "
        "is printed", choices=("extend", "recent"),
    )  # fmt: skip
    merge_horizons: str | None = _of_the_paper(
        "merge_horizons", "how the p-values of the horizons are merged", check=_merge, accepts="the name of a merge"
    )
    merge_features: str | None = _of_the_paper(
        "merge_features", "how the p-values of the features are merged", check=_merge, accepts="the name of a merge"
    )
    gap: int = setting(
        10, "how many observations without an alarm may separate two alarms of one incident", least=0, most=LARGE,
        presets=_USUAL,
    )  # fmt: skip
    min_deviation: float = setting(
        0.0, "the least distance from its forecast at which a value may alarm", least=0, most=1e300, presets=_USUAL
    )
    min_relative_deviation: float = setting(
        0.0, "the same, relative to the size of the forecast", least=0, most=1e300, presets=_USUAL
    )
    min_duration: int = setting(1, "how many observations an incident must last to be reported", least=1, most=LARGE)
    threads: int = setting(
        1, "how many threads share the scoring; results do not depend on it", least=1, most=MOST_THREADS,
        configured=False, saved=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for one in declared(type(self)).values():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))
        self._check_preset()
        for name, value in (PAPER_OPTIONS if self.is_paper else {"learning_rate": _LEARNING_RATE}).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._complete()
        self._check_together()
        self._check_sizes()

    def _complete(self) -> None:
        if self.alarm_rate is None:
            object.__setattr__(self, "alarm_rate", self.rate)

    def _check_preset(self) -> None:
        """Reject settings that the preset does not have."""
        for one in declared(type(self)).values():
            given, having = getattr(self, one.name), one.rule.presets
            if having and self.preset not in having and given != one.default:
                known = " or ".join(map(repr, having))
                raise ValueError(f"{one.name}={given!r} exists only with preset={known}, got preset={self.preset!r}")
        if not self.is_paper:
            return
        if is_budget(self.alarm_rate):
            raise ValueError(
                f"alarm_rate must be a number > 0 and < 0.5 with preset={PAPER!r}, which alarms where p is below it "
                f"and promises no number of incidents, got {self.alarm_rate!r}"
            )
        if self.forecaster is None or (isinstance(self.forecaster, tuple) and len(self.forecaster) > 1):
            raise ValueError(
                f"forecaster must be a single one with preset={PAPER!r}, got {self.forecaster!r}; for scores of your "
                "own there is tocsin.conformal.W1ACAS"
            )
        object.__setattr__(self, "promise", "observations")

    def _check_sizes(self) -> None:
        if self.is_paper:
            self._check_window()
        _ = self.accepted_after
        _ = self.local_calendar
        _ = self.sizes  # rejects an alarm rate that is too small to measure

    def _check_window(self) -> None:
        window = int(self.window or 0)
        if critical_size(float(self.alpha_c or 1)) >= window or self.rate * (window + 1) <= 1:
            raise ValueError(
                f"window must have room for 1 / alpha_c and 1 / alarm_rate scores, since p is never below "
                f"1 / (window + 1), got {window} with alpha_c={self.alpha_c!r} and alarm_rate={self.alarm_rate!r}"
            )

    @classmethod
    def check(cls, given: Mapping[str, Any], *, interval_known: bool = True) -> None:
        """Reject settings that a detector would reject, without creating one.

        If the interval comes with the data and is not known yet, a budget's syntax is all that can be checked. A
        forecaster that has to load a model is not created, because that takes long.
        """
        trial = dict(given)
        if not interval_known and trial.get("interval") is None:
            for name in ("accept_after", "season", "zone", "holidays"):
                if name in trial:
                    declared(cls)[name].checked(trial.pop(name))
        waits = not interval_known and trial.get("interval") is None and trial.get("preset") != PAPER
        if waits and is_budget(trial.get("alarm_rate")):
            parse_alarm_rate(trial.pop("alarm_rate"), interval_seconds=1e-9)
        settings = cls(**trial)
        if not settings.loads_a_model:
            _ = settings.chosen_forecaster

    @property
    def is_paper(self) -> bool:
        """Whether it is the detector of the paper."""
        return self.preset == PAPER

    @property
    def paper_options(self) -> dict[str, Any]:
        """The options of the paper's detector."""
        return {name: getattr(self, name) for name in PAPER_OPTIONS}

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return checks.names("features", self.features, "feature")

    @cached_property
    def rate(self) -> float:
        """The tolerated rate of false incidents (or alarms) per observation."""
        if self.alarm_rate is None:
            return usual_rate(None, preset=self.preset, promise=self.promise)
        return parse_alarm_rate(self.alarm_rate, self.interval_seconds)

    @property
    def interval_seconds(self) -> float | None:
        """The time between two observations."""
        return None if self.interval is None else as_seconds("interval", self.interval)

    @property
    def accepted_after(self) -> int:
        """After how many observations a persistent incident is accepted as the new normal."""
        return self._count("accept_after", self.accept_after)

    def _count(self, name: str, given: int | str) -> int:
        """A number of observations, given as such or as a duration."""
        if isinstance(given, int):
            return given
        if self.interval_seconds is None:
            raise ValueError(f"{name}={given!r} is a duration: set the sampling interval too, such as interval='5min'")
        return min(math.ceil(as_seconds(name, given) / self.interval_seconds - 1e-9), LARGE)

    @cached_property
    def seasons(self) -> tuple[int, ...] | None:
        """The given periods in observations; None to look for them."""
        if self.season == "auto":
            return None
        given = self.season if isinstance(self.season, tuple) else ()
        periods = tuple(self._count("season", one) for one in given)
        if any(one < 2 or one > LONGEST_SEASON for one in periods):
            raise ValueError(
                f"season must be 2 to {LONGEST_SEASON:,} observations long, got {self.season!r}, which is "
                f"{', '.join(f'{one:,}' for one in periods)}"
            )
        return periods

    @cached_property
    def calendar_periods(self) -> tuple[int, ...]:
        """A day and a week in observations, where they are whole numbers."""
        seconds = self.interval_seconds
        lengths = () if seconds is None else (86_400 / seconds, 604_800 / seconds)
        return tuple(round(one) for one in lengths if abs(one - round(one)) < 1e-6 * one and one >= 4)

    @cached_property
    def local_calendar(self) -> Calendar | None:
        """The calendar of the place; None if there is nothing to know about it."""
        if self.zone is None and not self.holidays:
            return None
        if self.interval_seconds is None:
            given = f"zone={self.zone!r}" if self.zone is not None else f"holidays={self.holidays!r}"
            raise ValueError(f"{given} needs the sampling interval too, such as interval='5min'")
        return Calendar(self.zone, self.holidays or (), self.interval_seconds)  # type: ignore[arg-type]  # checked

    @property
    def judges_scores(self) -> bool:
        """Whether the values are already nonconformity scores."""
        return self.forecaster is None

    @property
    def forecaster_name(self) -> str:
        """The name of the forecaster; empty if it has none."""
        if isinstance(self.forecaster, str):
            return PRESETS[self.preset][0][0] if self.forecaster == AUTO else self.forecaster
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
            self._check_forecaster(forecaster, self.steps_ahead + self.refresh - 1 if number == 0 else 1)
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
        if self.is_paper:
            return (HorizonErrors(int(self.horizons or 1)),)
        chosen = tuple(make_view(name).configured(self) for name in self.views or VIEWS)
        if len(self.feature_names) == 1:
            chosen = tuple(view for view in chosen if not view.relates)
            if not chosen:
                raise ValueError(f"views={self.views!r} compare features, and need at least two of them, got one")
        if self.nonconformity == "absolute":
            return chosen
        # Shape and stillness are neither high nor low.
        sided = tuple(view for view in chosen if view.sided)
        if self.views is not None and len(sided) < len(chosen):
            others = ", ".join(view.name for view in chosen if not view.sided)
            raise ValueError(f"nonconformity={self.nonconformity!r} needs views that tell high from low, got {others}")
        return sided

    @property
    def steps_ahead(self) -> int:
        """How many horizons of earlier forecasts the views use."""
        return max(1, *(view.horizons for view in self.chosen_views))

    @cached_property
    def sizes(self) -> Sizes:
        """How much of the past the alarm rate needs."""
        found = sizes(self.rate, window=self.window or constants().calibration, promise=self.promise)
        if self.is_paper:  # it needs only as many p-values as it takes for one to be below alpha
            return replace(found, min_calibration=math.ceil(1 / self.rate - 1e-9))
        return found

    @property
    def rarest_rate(self) -> float:
        """The smallest rate ever reported, in incidents per observation."""
        return rarest_rate(self.sizes, early=self.early)

    def saved(self) -> dict[str, Any]:
        """The saved settings by name."""
        return {
            one.name: getattr(self, one.name)
            for one in declared(type(self)).values()
            if one.rule.saved and self.preset in (one.rule.presets or PRESETS)
        }

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

    @property
    def _asking(self) -> str:
        return f"horizons={self.horizons}" if self.is_paper else f"refresh={self.refresh}"

    def _check_forecaster(self, forecaster: Forecaster, steps: int) -> None:
        if self.scaled and not forecaster.levels:
            raise ValueError(f"scaled=True needs a forecaster with quantiles, got {forecaster!r}")
        if steps > forecaster.longest_horizon:
            raise ValueError(
                f"{self._asking} needs forecasts of {steps} steps with these views, but {forecaster!r} "
                f"supports {forecaster.longest_horizon} at most"
            )


def check_alone(budget: Any, alarm_rate: Any, promise: str) -> None:
    """Reject a per-signal promise together with a budget for all signals."""
    if alarm_rate is not None or promise != "incidents":
        raise ValueError(
            f"budget={budget!r} replaces the alarm rate: leave alarm_rate and promise at their defaults, "
            f"got {alarm_rate!r} and {promise!r}"
        )


def guarantee_of(settings: DetectorSettings, alarm_rate: float, budget: str | float | None, own_past_after: int) -> str:
    """What is guaranteed, and under which assumption.

    A budget is a number of incidents of all signals together, such as "5/week", or the share of false ones.
    `own_past_after` is after how many observations a signal's own past determines the alarm rate.
    """
    if settings.is_paper:
        merges = available_merges()
        over = f"{settings.merge_horizons} over horizons is {merges[str(settings.merge_horizons)].guarantee.value}"
        return f"{W1ACAS.guarantee} Merged: the {over}. Nothing is promised about incidents."
    p = "closed loop: in the long run p is below each of ten levels, 0.0005 to 0.5, at most that often"
    if isinstance(budget, str):
        return f"pooled: about {budget} incidents of all signals together, by how rare earlier ones were; {p}"
    if budget is not None:
        return f"estimated: a share of about {budget:g} of all incidents is false, by the signals' own rates; {p}"
    if settings.promise == "observations":
        return p
    beyond = most_beyond(settings.sizes, alarm_rate, early=settings.early)
    early = (
        f"; estimated: how rare an incident is in the first {own_past_after} observations of a signal"
        if settings.early
        else ""
    )
    return f"long-run, for any sequence: incidents <= alarm_rate * observations + {beyond}; {p}{early}"

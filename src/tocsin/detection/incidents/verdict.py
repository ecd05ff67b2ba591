"""Verdicts on observations, and their explanations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import SMALLEST_P, Floats
from tocsin.detection.views import View
from tocsin.detection.views.level import LevelView

# A signal's state at an observation: no incident, one that may end, an ongoing one, or how one ended.
NORMAL, MAY_END, ONGOING, RETURNED, ACCEPTED, SILENT, SUBSIDED = 0, 1, 2, 3, 4, 5, 6
ENDED = (RETURNED, ACCEPTED, SILENT, SUBSIDED)

LOG_10 = float(np.log(10.0))

# One of ten usual values is beyond the usual range, but hardly one beyond this many times its reach.
NEARLY = 1.5


@dataclass(frozen=True)
class Verdict:
    """A detector's verdict on one observation of one signal.

    With several features, `value`, `forecast`, `low`, `high` and `feature_p` are arrays with one entry each. NaN stands
    for something missing: a missing value has no p and never alarms.
    """

    time: Any
    value: Any
    #: The p-value: how often to expect this much evidence from an observation. Low when anomalous.
    p: float
    #: Whether an incident with this much evidence is rarer than the alarm rate tolerates, and passes the guards; with
    #: promise="observations", whether p is below the alarm rate.
    alarm: bool
    #: The one-step forecast for this observation.
    forecast: Any
    #: The values beyond which the one-step error alone is enough evidence for an alarm, as of a few observations ago.
    #: Other views may alarm within them.
    low: Any
    high: Any
    #: The usual range at this time: nine of ten values lie in it. NaN while it is unknown.
    usual_low: Any
    usual_high: Any
    #: How anomalous the observation is: the mean of the largest votes, in powers of ten. It orders observations: of two
    #: spikes the larger is the more severe, however large both are.
    severity: float
    #: The average number of observations until an incident with this much evidence recurs; NaN during warm-up.
    return_period: float
    #: One p-value per feature, from its own views: the smallest, times their number.
    feature_p: Any
    #: The severity in each view, by its name.
    views: dict[str, float]
    #: For an alarm: the view that contributes most, its feature, and an explanation.
    view: str | None
    feature: str | None
    explanation: str | None
    #: Whether the signal is in an incident: from its first alarm until it is back to normal.
    open: bool
    #: Whether the warm-up is over, so that there may be alarms.
    warm: bool
    #: Whether alarms are decided by an estimated tail, because the signal's own past is too short for the alarm rate.
    estimated: bool

    @property
    def merged(self) -> float:
        """exp(-evidence): the geometric mean of the smallest ranks. It is not a p-value."""
        return float(_rank_of(np.array([self.severity]))[0])

    @property
    def direction(self) -> str | None:
        """Whether the value, or that of the most anomalous feature, lies "above" or "below" its forecast."""
        error = np.atleast_1d(self.value) - np.atleast_1d(self.forecast)
        return direction_of(error, np.atleast_1d(self.feature_p))


def _rank_of(severity: Floats) -> Floats:
    """Converts severities to ranks in the same way for single verdicts and many, so that both agree bit for bit."""
    return np.asarray(np.maximum(10.0**-severity, SMALLEST_P))


def direction_of(error: Floats, feature_p: Floats) -> str | None:
    """On which side of its forecast the most anomalous feature lies."""
    if np.isnan(feature_p).all():
        return None
    worst = error[most_anomalous(feature_p)]
    return "above" if worst > 0 else "below" if worst < 0 else None


def directions(errors: Floats, feature_p: Floats) -> list[str | None]:
    """The same for many observations, `(T, F)`."""
    if errors.shape[1] > 1:
        return [direction_of(error, p) for error, p in zip(errors, feature_p, strict=True)]
    sides = np.where(np.isnan(feature_p[:, 0]), 0.0, np.nan_to_num(np.sign(errors[:, 0])))
    return [("below", None, "above")[int(side) + 1] for side in sides.tolist()]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on T observations of S signals with F features, as arrays; `Verdict` explains each.

    Arrays have the shape (T, S), those with an entry for each feature (T, S, F). `evidence` is the severity,
    `feature_evidence` that which each feature alone would have, and `views`, (T, S, views), that of each view, all in
    nats; `rate` is the rate of incidents with this much evidence, per observation. `cause` holds the numbers of the
    view, its stream and the feature that contribute most (-1 for none, or for all features together), and `score` the
    score of that stream, negative below the forecast. `opened` marks where an incident began, and `state` how it
    continues (`NORMAL`, `MAY_END`, `ONGOING`) or how it ended (`ENDED`). `usual` is the usual
    value at this time and, along the last axis, how far nine of ten values and means over longer stretches lie from it
    at most; `seasonal` says whether it is that of a season. `began` is how many observations ago an incident began, at
    most and at least; -1 where that is not estimated.
    """

    value: Floats
    p: Floats
    alarm: NDArray[np.bool_]
    forecast: Floats
    low: Floats
    high: Floats
    rate: Floats
    feature_p: Floats
    feature_evidence: Floats
    views: Floats
    cause: NDArray[np.int16]
    score: Floats
    opened: NDArray[np.bool_]
    estimated: NDArray[np.bool_]
    evidence: Floats
    warm: NDArray[np.bool_]
    state: NDArray[np.int16]
    usual: Floats  # (T, S, F, 1 + streams of the level)
    seasonal: NDArray[np.bool_]  # (T, S, F)
    began: NDArray[np.int16]  # (T, S, 2)

    @property
    def usual_low(self) -> Floats:
        """The lower end of the usual range of each value."""
        return np.asarray(self.usual[..., 0] - self.usual[..., 1])

    @property
    def usual_high(self) -> Floats:
        """The upper end of the usual range of each value."""
        return np.asarray(self.usual[..., 0] + self.usual[..., 1])

    @property
    def open(self) -> NDArray[np.bool_]:
        """Whether each signal is in an incident."""
        return np.isin(self.state, (MAY_END, ONGOING))

    @property
    def severity(self) -> Floats:
        """How anomalous each observation is: the mean of the largest votes, in powers of ten."""
        return np.asarray(self.evidence / LOG_10)

    @property
    def merged(self) -> Floats:
        """exp(-evidence): the geometric mean of the smallest ranks. It is not a p-value."""
        return _rank_of(self.severity)

    @property
    def return_period(self) -> Floats:
        """The average number of observations until an incident with this much evidence recurs."""
        return np.asarray(1.0 / self.rate)

    def column(self, signal: int) -> "Verdicts":
        """The verdicts on one of the signals, as arrays of one signal."""
        return Verdicts(*(getattr(self, field.name)[:, signal : signal + 1] for field in fields(self)))

    @classmethod
    def joined(cls, parts: "list[Verdicts]") -> "Verdicts":
        """Joins verdicts on consecutive stretches of observations."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True)
class Explanation:
    """The view that contributes most, the feature (None for all of them together), and an explanation."""

    view: str
    feature: str | None
    text: str
    #: Whether it is about one observation, of a value that is usual or nearly so: only what was expected of it was not.
    usual: bool = False


def name_and_unit(feature: str) -> tuple[str, str]:
    """A feature's name and its unit, which may follow in brackets; "" if there is none.

    >>> name_and_unit("pressure [bar]"), name_and_unit("flow")
    (('pressure', 'bar'), ('flow', ''))
    """
    found = re.fullmatch(r"(.*\S)\s*\[([^\[\]]+)\]\s*", feature)
    return (found[1], found[2]) if found else (feature, "")


def explain(
    verdicts: Verdicts, step: int, signal: int, views: Sequence[View], features: Sequence[str], unit: str = "",
    interval: float | None = None,
) -> Explanation | None:  # fmt: skip
    """What happened, in values, and which view saw it; None if there is no explanation.

    `unit` is that of a feature without one of its own, and `interval` the seconds between two observations, if known.
    """
    number, stream, feature = (int(one) for one in verdicts.cause[step, signal])
    if number < 0:
        return None
    view, score = views[number], float(verdicts.score[step, signal])
    name = features[feature] if feature >= 0 else None
    shown = feature if feature >= 0 else most_anomalous(-verdicts.feature_evidence[step, signal])
    plain, own_unit = name_and_unit(features[shown])
    mean_over = stream if view.name == LevelView.name else 0
    usual = _Usual.of(verdicts, step, signal, shown, mean_over)
    value = usual.centre + score if mean_over else verdicts.value.item(step, signal, shown)
    # The band lies around the forecast that follows a signal fastest.
    forecast = (verdicts.low.item(step, signal, shown) + verdicts.high.item(step, signal, shown)) / 2.0
    single = view.streams[stream].length == 1
    back = single and usual.holds(value) and usual.excludes(forecast)
    # How far it is from a forecast that has followed a burst says nothing.
    clause = "" if back and view.forecasts else view.words(stream, score, own_unit or unit, interval)
    text = clause
    if usual.known:
        number_text, range_text = usual.in_words(value, own_unit or unit)
        if clause and not mean_over and not back and usual.holds(value):
            text = f"{number_text} is usual{usual.when} ({range_text}), but {clause}"
        else:
            went = ("fell back to " if forecast > value else "rose back to ") if back else ""
            where = f"{went}{number_text}{' on average' if mean_over else ''}, usually {range_text}{usual.when}"
            text = f"{where}; {clause}" if clause else where
    return Explanation(
        view.name, name, f"{plain}: {text}" if len(features) > 1 else text, single and usual.holds(value, NEARLY)
    )


def known_interval(interval: float | None, time: Any) -> float | None:
    """The seconds between two observations: of times that are numbers, nobody knows the unit."""
    return interval if isinstance(time, np.datetime64) else None


def most_anomalous(feature_p: Floats) -> int:
    """The number of the feature with the smallest p-value."""
    return 0 if np.isnan(feature_p).all() else int(np.nanargmin(feature_p))


class _Usual(NamedTuple):
    """Where a value, or the mean over a longer stretch, usually is: nine of ten are no further from the centre."""

    centre: float
    reach: float
    seasonal: bool

    @classmethod
    def of(cls, verdicts: Verdicts, step: int, signal: int, feature: int, stream: int) -> Self:
        centre, *reaches = verdicts.usual[step, signal, feature].tolist()
        return cls(centre, reaches[stream], bool(verdicts.seasonal[step, signal, feature]))

    @property
    def known(self) -> bool:
        return bool(np.isfinite([self.centre, self.reach]).all())

    @property
    def when(self) -> str:
        return " at this time" if self.seasonal else ""

    def holds(self, value: float, times: float = 1.0) -> bool:
        return abs(value - self.centre) <= times * self.reach

    def excludes(self, value: float) -> bool:
        return bool(np.isfinite(value)) and abs(value - self.centre) > self.reach

    def in_words(self, value: float, unit: str) -> tuple[str, str]:
        """A value and the usual range, in the same unit and with as many decimals: "140 ms", "85 to 105 ms"."""
        low, high = self.centre - self.reach, self.centre + self.reach
        digits = _digits(high - low, value, low, high)
        # Zero has no sign.
        shown, lowest, highest = (f"{round(number, digits) + 0.0:.{digits}f}" for number in (value, low, high))
        range_text = lowest if lowest == highest else f"{lowest} to {highest}"
        return f"{shown} {unit}".rstrip(), f"{range_text} {unit}".rstrip()


def _digits(width: float, *numbers: float) -> int:
    """How many decimals tell the ends of a range apart."""
    size = width if width > 0.0 else max(map(abs, numbers))
    return int(np.clip(1 - np.floor(np.log10(size)), 0, 12)) if size > 0.0 else 0


def verdict_on(
    verdicts: Verdicts, step: int, signal: int, time: Any, views: Sequence[View], features: Sequence[str],
    interval: float | None = None,
) -> Verdict:  # fmt: skip
    """The verdict on one observation of one signal."""
    single = verdicts.value.shape[2] == 1

    def plain(array: Floats) -> Any:
        return array.item(step, signal, 0) if single else array[step, signal].copy()

    alarm = verdicts.alarm.item(step, signal)
    # Only alarms need an explanation, and wording one takes as long as a view.
    why = explain(verdicts, step, signal, views, features, "", known_interval(interval, time)) if alarm else None
    severities = (verdicts.views[step, signal] / LOG_10).tolist()
    return Verdict(
        time=time,
        value=plain(verdicts.value),
        p=verdicts.p.item(step, signal),
        alarm=alarm,
        forecast=plain(verdicts.forecast),
        low=plain(verdicts.low),
        high=plain(verdicts.high),
        usual_low=plain(verdicts.usual_low),
        usual_high=plain(verdicts.usual_high),
        severity=verdicts.evidence.item(step, signal) / LOG_10,
        return_period=1.0 / verdicts.rate.item(step, signal),
        feature_p=plain(verdicts.feature_p),
        views=dict(zip((view.name for view in views), severities, strict=True)),
        view=why.view if why else None,
        feature=why.feature if why else None,
        explanation=why.text if why else None,
        open=verdicts.state.item(step, signal) in (MAY_END, ONGOING),
        warm=verdicts.warm.item(step, signal),
        estimated=verdicts.estimated.item(step, signal),
    )

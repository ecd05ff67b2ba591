"""Detectors of many signals that share their settings, run as one."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.conformal import MERGES, Guarantee
from tocsin.data import parse_duration, parse_time
from tocsin.detection.alarm_rate import Sizes, observations_to_resolve, parse_alarm_rate, sizes
from tocsin.detection.audit import Audit, AuditTrail
from tocsin.detection.incidents import Incident, IncidentLog
from tocsin.detection.nonconformity import NONCONFORMITIES, sides_of
from tocsin.detection.pipeline import Pipeline, PipelineSettings
from tocsin.detection.verdict import Verdicts
from tocsin.forecasting import Forecaster, make_forecaster

DEFAULT_FORECASTER = "embedded"


class Fleet:
    """Watches many signals at once: each as a `Detector` of its own would, with the same numbers, but faster together.

    Parameters
    ----------
    signals : how many signals, or their names.
    features : how many features each signal has, or their names.
    alarm_rate : the tolerated rate of false alarms: per observation (0.01), or over time ("1/day", "2/week").
    interval : the time between two observations ("5min", a timedelta, or a number of seconds).
    forecaster : what says what comes next: a `Forecaster`, or the name of one; None if the values given are
        nonconformity scores already (any detector's score, larger is stranger).
    forecaster_options : arguments for a forecaster that is given by its name.
    horizons : how many steps ahead is forecast; every observation is judged by as many forecasts.
    nonconformity : "absolute" error, "signed" (both sides apart), only "high" or only "low" values.
    scaled : divide errors by the spread of the forecaster's own quantiles.
    light : score the mean error over the horizons instead of each horizon: almost as good, at a fraction of the cost.
    merge : how the p-values of the horizons are merged; see `MERGES`.
    merge_features : how those of the features are merged.
    recalibrate : rank the merged value among its own past, which makes a p-value of it whatever the merges.
    learn : "absorb" every observation, or "hold" back those that are strange.
    hold_below : which p is strange enough to be held back; the alarm rate if None.
    hold_after : how many strange observations in a row are still learned. Holding back single ones would leave nothing
        to compare the next strange one with, and alarms would become more and more frequent.
    hold_most : after holding back so many observations in a row the new regime is accepted.
    hold_context : hide what is held back from the forecaster too.
    refresh : forecast only after every so many observations, to save calls of a slow model.
    window : how many past errors a new one is compared with; None for what the alarm rate needs.
    learning_rate : how fast the weights over the past are learned: about how far one can move in a step.
    gap : how many observations without alarm may lie between two alarms of one incident.
    min_deviation : how far from its forecast a value must be, at least, to alarm.
    min_relative_deviation : the same, as a share of the size of the forecast.
    min_duration : how many observations an incident must last to be told of.
    threads : how many threads share the scoring. The numbers do not depend on it.
    """

    def __init__(
        self,
        signals: int | Sequence[str],
        features: int | Sequence[str] = 1,
        *,
        alarm_rate: float | str = 0.01,
        interval: Any = None,
        forecaster: Forecaster | str | None = DEFAULT_FORECASTER,
        forecaster_options: Mapping[str, Any] | None = None,
        horizons: int = 15,
        nonconformity: str = "absolute",
        scaled: bool = False,
        light: bool = False,
        merge: str = "harmonic",
        merge_features: str = "fisher",
        recalibrate: bool = True,
        learn: str = "absorb",
        hold_below: float | None = None,
        hold_after: int = 2,
        hold_most: int = 200,
        hold_context: bool = False,
        refresh: int = 1,
        window: int | None = None,
        learning_rate: float = 0.01,
        gap: int = 10,
        min_deviation: float = 0.0,
        min_relative_deviation: float = 0.0,
        min_duration: int = 1,
        threads: int = 1,
    ) -> None:
        self.names = _names("signals", signals, "signal")
        self.features = _names("features", features, "feature")
        self.interval = None if interval is None else _seconds(interval)
        rate = parse_alarm_rate(alarm_rate, self.interval)
        if window is not None:
            window = checks.integer("window", window, least=250, most=2**16)
        if forecaster_options and not isinstance(forecaster, str):
            raise ValueError(
                f"forecaster_options={forecaster_options!r} need the name of a forecaster, got {forecaster!r}"
            )
        chosen = make_forecaster(forecaster, forecaster_options) if isinstance(forecaster, str) else forecaster
        if chosen is not None and not isinstance(chosen, Forecaster):
            raise TypeError(f"forecaster must be a Forecaster, the name of one, or None, got {forecaster!r}")
        checked: dict[str, Any] = {
            "alarm_rate": rate,
            "forecaster": chosen,
            "horizons": checks.integer("horizons", horizons, least=1, most=1024),
            "nonconformity": checks.choice("nonconformity", nonconformity, NONCONFORMITIES),
            "scaled": _truth("scaled", scaled),
            "light": _truth("light", light),
            "merge": checks.choice("merge", merge, MERGES),
            "merge_features": checks.choice("merge_features", merge_features, MERGES),
            "recalibrate": _truth("recalibrate", recalibrate),
            "learn": checks.choice("learn", learn, ("absorb", "hold")),
            "hold_below": rate if hold_below is None else checks.number("hold_below", hold_below, above=0, below=1),
            "hold_after": checks.integer("hold_after", hold_after, least=0, most=10**9),
            "hold_most": checks.integer("hold_most", hold_most, least=1, most=10**9),
            "hold_context": _truth("hold_context", hold_context),
            "refresh": checks.integer("refresh", refresh, least=1, most=1024),
            "learning_rate": checks.number("learning_rate", learning_rate, above=0, most=0.1),
        }
        settings = PipelineSettings(**checked, sizes=self._sizes(checked, window))
        self.min_deviation = _not_negative("min_deviation", min_deviation)
        self.min_relative_deviation = _not_negative("min_relative_deviation", min_relative_deviation)
        self._check_together(settings)
        self.settings = settings
        self.given = {
            "alarm_rate": alarm_rate if isinstance(alarm_rate, str) else rate,
            "interval": self.interval,
            "window": window,
            "gap": gap,
            "min_deviation": self.min_deviation,
            "min_relative_deviation": self.min_relative_deviation,
            "min_duration": min_duration,
        }
        threads = checks.integer("threads", threads, least=1, most=1024)
        self.pipeline = Pipeline(len(self.names), len(self.features), settings, threads)
        self.log = IncidentLog(
            self.names,
            self.features,
            checks.integer("gap", gap, least=0, most=10**9),
            checks.integer("min_duration", min_duration, least=1, most=10**9),
        )
        self.trail = AuditTrail(len(self.names))
        self._everything = np.arange(len(self.names))

    def _sizes(self, checked: Mapping[str, Any], window: int | None) -> Sizes:
        merges = (MERGES[checked["merge"]], MERGES[checked["merge_features"]])
        scored = 1 if checked["forecaster"] is None or checked["light"] else checked["horizons"]
        shape = (len(self.features), scored)
        rate, sides = checked["alarm_rate"], sides_of(checked["nonconformity"])
        resolving = observations_to_resolve(rate, merges, shape, sides)
        return sizes(rate, recalibrate=checked["recalibrate"], window=window, resolving=resolving)

    def _check_together(self, settings: PipelineSettings) -> None:
        if settings.forecaster is None:
            for name, value in (
                ("scaled", settings.scaled), ("min_deviation", self.min_deviation),
                ("min_relative_deviation", self.min_relative_deviation), ("hold_context", settings.hold_context),
            ):  # fmt: skip
                if value:
                    raise ValueError(f"{name}={value!r} needs a forecaster, got forecaster=None")
            if settings.nonconformity not in ("absolute", "high"):
                raise ValueError(
                    "nonconformity must be left as it is with forecaster=None, whose values are scores already, "
                    f"got {settings.nonconformity!r}"
                )
        elif settings.scaled and not settings.forecaster.levels:
            raise ValueError(f"scaled=True needs a forecaster with quantiles, got {settings.forecaster!r}")
        if settings.hold_context and settings.learn != "hold":
            raise ValueError(f"hold_context=True needs learn='hold', got learn={settings.learn!r}")

    @property
    def alarm_rate(self) -> float:
        """The tolerated rate of false alarms per observation."""
        return self.settings.alarm_rate

    @property
    def warm_up(self) -> int:
        """How many observations it takes until p-values are as calibrated as they are going to be."""
        first = max(self.pipeline.settles, self.pipeline.horizons)
        if self.settings.recalibrate:
            return first + self.settings.sizes.warm_up
        return first + self.settings.sizes.resolving

    @property
    def guarantee(self) -> str:
        """What is promised of p."""
        if self.settings.recalibrate:
            return (
                "calibrated: ranked among its own past, P(p < alpha) is alpha for merged values that keep to one law, "
                "whatever the merges; conservative during warm-up"
            )
        used = [MERGES[self.settings.merge]] if self.pipeline.scored_horizons > 1 else []
        used += [MERGES[self.settings.merge_features]] if len(self.features) > 1 else []
        worst = {merge.guarantee for merge in used} - {Guarantee.ANY_DEPENDENCE}
        if not worst:
            return "conservative: P(p < alpha) <= alpha for errors that keep to one law, whatever their dependence"
        return "not guaranteed: " + "; ".join(sorted(guarantee.value for guarantee in worst))

    def update(self, values: ArrayLike, *, rows: ArrayLike | None = None, times: Any = None) -> Verdicts:
        """Take one observation of each signal, `(S,)` or `(S, F)`; NaN where it is missing.

        `rows` are the indices of the signals that the values belong to, each at most once, all of them if None. Of
        all others no time passes. The verdicts have one step.
        """
        table = checks.numbers("values", values)
        return self.run(table[np.newaxis], rows=rows, times=None if times is None else np.asarray(times)[np.newaxis])

    def run(self, values: ArrayLike, *, rows: ArrayLike | None = None, times: Any = None) -> Verdicts:
        """Take a history, `(T, S)` or `(T, S, F)`, as if by T calls of `update`.

        `times`, dates or numbers, has the shape (T, S).
        """
        chosen = self._everything if rows is None else self._rows(rows)
        table = checks.numbers("values", values)
        count = len(self.features)
        if table.ndim == 2 and count == 1:
            table = table[..., np.newaxis]
        if table.ndim != 3 or table.shape[1:] != (chosen.size, count):
            raise ValueError(
                f"values must have shape (T, {chosen.size}, {count}), times, signals and features, got "
                f"shape {np.shape(values)}"
            )
        times = None if times is None else as_times(times, table.shape[:2])
        numbers = self.pipeline.seen[chosen] + np.arange(table.shape[0])[:, np.newaxis]
        verdicts = self.pipeline.run(table, chosen)
        exceeds = verdicts.alarm.copy()
        self._guard(verdicts)
        self.trail.add(exceeds, verdicts.warm & ~np.isnan(verdicts.p), chosen)
        if table.shape[0]:
            self.log.add(verdicts, numbers, chosen, times)
        return verdicts

    def _rows(self, rows: ArrayLike) -> NDArray[np.intp]:
        chosen = np.asarray(rows)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise TypeError(f"rows must be a sequence of indices of signals, got {rows!r}")
        chosen = chosen.astype(np.intp)
        if np.any((chosen < 0) | (chosen >= len(self.names))) or np.unique(chosen).size != chosen.size:
            raise ValueError(f"rows must be different indices from 0 to {len(self.names) - 1}, got {rows!r}")
        return chosen

    def _guard(self, verdicts: Verdicts) -> None:
        """Take back alarms of which the strangest feature is too close to its forecast."""
        if not (self.min_deviation or self.min_relative_deviation):
            return
        for step, column in np.argwhere(verdicts.alarm):
            strangest = np.nanargmin(verdicts.feature_p[step, column])
            forecast = verdicts.forecast[step, column, strangest]
            deviation = abs(verdicts.value[step, column, strangest] - forecast)
            if deviation < max(self.min_deviation, self.min_relative_deviation * abs(forecast)):
                verdicts.alarm[step, column] = False

    def incidents(self, signal: int | None = None) -> list[Incident]:
        """The newest incidents, of one signal or of all; those that are not over come last."""
        return self.log.incidents(signal)

    def audit(self, signal: int, level: float = 0.99) -> Audit:
        """Whether the promised alarm rate is kept on one signal, so far."""
        return self.trail.audit(signal, self.alarm_rate, checks.number("level", level, above=0, below=1))

    def weights(self, signal: int) -> NDArray[Any]:
        """The learned weights of past errors, `(features, streams of a feature, window)`, the newest lag first."""
        pipeline = self.pipeline
        width = pipeline.scorer.streams // pipeline.signals
        weights = pipeline.scorer.weights[signal * width : (signal + 1) * width]
        return weights.reshape(len(self.features), -1, weights.shape[1])

    def signal_state(self, row: int, last_time: Any = None) -> dict[str, NDArray[Any]]:
        """The state of one signal, for `put` or `Detector.from_state`: that of a detector which has seen the same.

        `last_time` is the time of the signal's last observation, which a detector keeps and a fleet does not.
        """
        from tocsin.detection.signals import signal_state

        return signal_state(self, row, last_time)

    def put(self, row: int, state: Mapping[str, NDArray[Any]] | None, name: str | None = None) -> Any:
        """Let another signal take a row: one from `signal_state` or `Detector.state`, or a fresh one for None.

        It goes on with exactly the numbers of a signal that was never interrupted, and all other rows as if nothing had
        happened. The signal that was there is gone, with its incidents. The row keeps its name unless another is given.
        Returns the `last_time` that was saved.
        """
        from tocsin.detection.signals import put_signal

        return put_signal(self, row, state, name)

    def save(self, file: File) -> None:
        """Write everything needed to go on later to a file (npz, never pickle), in one step or not at all."""
        from tocsin.detection.storage import fleet_state

        write_arrays(fleet_state(self, {}), file)

    @classmethod
    def load(cls, file: File, *, forecaster: Forecaster | None = None, threads: int = 1) -> "Fleet":
        """Go on from a saved file, with exactly the numbers of a fleet that was never interrupted.

        `forecaster` is needed only if it is none that goes by a name (see `available_forecasters`).
        """
        from tocsin.detection.storage import fleet_from_state

        return fleet_from_state(read_arrays(file, "a fleet"), forecaster=forecaster, threads=threads)[0]


def _names(argument: str, given: int | Sequence[str], singular: str) -> list[str]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        names = list(given)
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise ValueError(f"{argument} must be a number or different names, got {given!r}")
        return names
    count = checks.integer(argument, given, least=1, most=2**24)
    return [singular] if count == 1 else [f"{singular} {number}" for number in range(1, count + 1)]


def _seconds(interval: Any) -> float:
    # numpy counts its timedeltas among the integers.
    if isinstance(interval, Real) and not isinstance(interval, (bool, np.bool_, np.timedelta64)):
        return checks.number("interval", interval, above=0, most=1e12)
    try:
        return float(parse_duration(interval) / np.timedelta64(1, "s"))
    except ValueError as error:
        raise ValueError(f"interval must be a number of seconds or a length of time: {error}") from None


def as_times(times: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Times as datetime64 or numbers, whatever kind of dates they came as."""
    array = np.asarray(times)
    if array.shape != shape:
        raise ValueError(f"times must have shape {shape}, got {array.shape}")
    if array.dtype.kind in "iufM":
        return array
    try:
        moments = [parse_time(time) for time in array.flat]
    except ValueError as error:
        raise ValueError(f"times must be dates or numbers: {error}") from None
    return np.array(moments).reshape(shape)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _not_negative(name: str, value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and value == 0:
        return 0.0
    try:
        return checks.number(name, value, above=0, most=1e300)
    except ValueError:
        raise ValueError(f"{name} must be a number >= 0 and <= 1e+300, got {value!r}") from None

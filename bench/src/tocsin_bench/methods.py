"""The methods that judge files by errors of forecasts, and the detector, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import (
    MERGES,
    ExponentialDecay,
    GaussianTail,
    Scorer,
    SlidingWindow,
    SplitConformal,
)
from tocsin.detection import Detector, Incident
from tocsin.detection.paper.scoring import PAPER_OPTIONS, HorizonScoring
from tocsin_bench.forecast_errors import ForecastMaterial
from tocsin_bench.results import Floats

Integers = NDArray[np.int64]

FEATURE_MERGES = ("fisher", "harmonic")
"""How the p-values of several features are merged: a row of the tables for each."""

DETECTOR_SETTINGS: dict[str, Any] = {"alarm_rate": 0.001}
"""The detector as it is judged, beside its defaults. Its incidents are those that this alarm rate tolerates."""

WINDOW = 2000


@dataclass(frozen=True, eq=False)
class Judgement:
    """`p[T]`, low when anomalous and NaN where there is none, and other output of a method.

    `severity[T]`, in nats, is what orders observations and decides alarms where p does neither; `weights` are those
    learned by lag, the mean over streams, and `errors` the past errors that they weigh, likewise, the newest first;
    `incidents[n, 2]` the numbers of the first and the last observation of each incident, for a method that has its own.
    """

    p: Floats
    weights: Floats | None = None
    incidents: Integers | None = None
    severity: Floats | None = None
    errors: Floats | None = None


@dataclass(frozen=True)
class Method:
    """One way to judge a file by the errors of its forecasts.

    `feature_merges` are the ways to merge several features that are tried, and `merge_features` is the one that is
    taken; a method without any judges all features together. A method that `forecasts_itself` needs no errors, and is
    run once, not once for each forecaster. Not all output is a p-value: `Scorer.guarantee` and `Merge.guarantee` say
    what is.
    """

    name: str
    description: str
    _judge: Callable[[ForecastMaterial, Mapping[str, Any], str], Judgement]
    settings: Mapping[str, Any]
    feature_merges: tuple[str, ...] = FEATURE_MERGES
    merge_features: str = ""
    forecasts_itself: bool = False

    def __call__(self, material: ForecastMaterial) -> Judgement:
        """Judge a file."""
        return self._judge(material, self.settings, self.merge_features or next(iter(self.feature_merges), ""))

    def with_settings(self, **changed: Any) -> "Method":
        """The same with other settings, which are part of its name."""
        suffix = ",".join(f"{name}={value}" for name, value in changed.items())
        return replace(self, name=f"{self.name}[{suffix}]", settings={**self.settings, **changed})

    def for_features(self) -> list["Method"]:
        """The same, once for each way to merge several features."""
        if not self.feature_merges:
            return [self]
        return [replace(self, name=f"{self.name}-{merge}", merge_features=merge) for merge in self.feature_merges]


def _merged(scorer: Scorer, errors: Floats, merge_features: str) -> Judgement:
    """One stream for each feature and horizon; the median over horizons, then the merge of the features."""
    length, features, horizons = errors.shape
    p = scorer.run(errors.reshape(length, -1)).reshape(length, features, horizons)
    by_feature = MERGES["median"](p)
    merged = by_feature[:, 0] if features == 1 else MERGES[merge_features](by_feature)
    weights = getattr(scorer, "weights", None)
    return Judgement(merged, None if weights is None else np.asarray(weights, dtype=np.float64).mean(axis=0))


def _w1_acas(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    errors = material.errors[:, np.newaxis, :, : settings["horizons"]]
    options = {**settings, "horizons": errors.shape[-1], "merge_features": merge_features}
    scoring = HorizonScoring(1, errors.shape[2], **options)
    p, _ = scoring.run(errors, np.array([0]))
    weights = scoring.scorer.weights.mean(axis=0)
    return Judgement(p[:, 0], weights, errors=errors.mean(axis=(1, 2, 3))[::-1][: weights.size])


def _window(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    return _merged(SlidingWindow(_streams(material.errors), **settings), material.errors, merge_features)


def _decay(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    return _merged(ExponentialDecay(_streams(material.errors), **settings), material.errors, merge_features)


def _conformal(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    scorer = SplitConformal(_streams(material.errors), calibration=material.calibration, **settings)
    return _merged(scorer, material.errors, merge_features)


def _gaussian(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    # One law for the mean error over the horizons, as the paper has it.
    errors = material.errors.mean(axis=2, keepdims=True)
    scorer = GaussianTail(_streams(errors), calibration=material.calibration, **settings)
    return replace(_merged(scorer, errors, merge_features), weights=None)


def _detector(material: ForecastMaterial, settings: Mapping[str, Any], merge_features: str) -> Judgement:
    return judgement_of(Detector(**settings), material.file.values)


def judgement_of(detector: Detector, values: Floats) -> Judgement:
    """What a detector is judged by: its p, how it orders observations, and its incidents."""
    result = detector.run(values)
    weights = detector.weights.mean(axis=(0, 1))
    return Judgement(
        p=result.p,
        weights=weights,
        incidents=_bounds(detector.incidents, len(values)),
        severity=result.evidence,
    )


def _bounds(incidents: Sequence[Incident], length: int) -> Integers:
    """The first and the last observation of each incident; one that is open lasts to the end."""
    pairs = [(incident.first, length - 1 if incident.open else incident.last) for incident in incidents]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _streams(errors: Floats) -> int:
    return errors.shape[1] * errors.shape[2]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("tocsin", "the default detector: ranked and alarmed by severity, calibration by p", _detector,
               DETECTOR_SETTINGS, (), forecasts_itself=True),
        Method("tocsin-light", "the same without the network", _detector,
               {**DETECTOR_SETTINGS, "preset": "light"}, (), forecasts_itself=True),
        Method("w1-acas", "the paper's method, as preset=\"paper\" has it", _w1_acas, PAPER_OPTIONS),
        Method("fixed-window", f"conformal, the newest {WINDOW} errors with equal weights", _window,
               {"window": WINDOW}),
        Method("exponential-decay", "conformal, weights 0.99 to the power of the lag", _decay, {"decay": 0.99}),
        Method("conformal", "split conformal: the errors of the calibration part", _conformal, {}),
        Method("gaussian", "the tail of a normal law fitted to the calibration part; no p-value", _gaussian, {}),
    )
}  # fmt: skip
"""The methods that judge errors of forecasts."""

"""Metrics at each threshold on p, and the best threshold in hindsight."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin_bench.metrics.alarms import (
    PrecisionRecall,
    affiliation,
    event_based,
    point_adjusted,
    pointwise,
    range_based,
)
from tocsin_bench.metrics.marks import Flags, Floats, Marks, read_labels, read_p, read_thresholds

ALARM_METRICS: dict[str, Callable[[Flags, Flags], PrecisionRecall]] = {
    "pointwise": pointwise,
    "point-adjusted": point_adjusted,
    "event-based": event_based,
    "range-based": range_based,
    "affiliation": affiliation,
}
"""Every metric of alarms by its name."""

THRESHOLDS: Floats = np.concatenate([np.linspace(*ends, 21) for ends in ((0.001, 0.01), (0.02, 0.1), (0.2, 1.0))])
"""The paper's grid of thresholds on p-values."""

MIN_MAX_THRESHOLDS: Floats = np.sort(np.concatenate([THRESHOLDS, 1 - THRESHOLDS]))
"""The grid for 1 minus scores that were scaled to [0, 1], whose anomalies may end anywhere."""

SEVERITY_THRESHOLDS: Floats = np.exp(-np.linspace(30.0, 0.0, 121))
"""The grid for exp(-severity), which has no smallest value: a quarter of a nat apart."""

for _grid in (THRESHOLDS, MIN_MAX_THRESHOLDS, SEVERITY_THRESHOLDS):
    _grid.setflags(write=False)


class OperatingPoint(NamedTuple):
    """Metrics at one threshold: `calibration_error` (CalErr) is |false positive rate - threshold|."""

    threshold: float
    precision: float
    recall: float
    f1: float
    false_positive_rate: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Metrics at each threshold, in ascending order."""

    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    false_positive_rate: Floats

    @property
    def calibration_error(self) -> Floats:
        """|false positive rate - threshold|."""
        return np.abs(self.false_positive_rate - self.thresholds)

    def oracle(self) -> OperatingPoint:
        """The threshold with the largest F1, the smallest of several; all NaN if there is nothing to find."""
        if np.isnan(self.f1).any():
            return OperatingPoint(*[float("nan")] * len(OperatingPoint._fields))
        best = int(np.argmax(self.f1))
        return OperatingPoint(
            threshold=float(self.thresholds[best]),
            precision=float(self.precision[best]),
            recall=float(self.recall[best]),
            f1=float(self.f1[best]),
            false_positive_rate=float(self.false_positive_rate[best]),
            calibration_error=float(self.calibration_error[best]),
        )


def threshold_curve(
    labels: Flags, p: ArrayLike, metric: str = "point-adjusted", thresholds: ArrayLike = THRESHOLDS
) -> ThresholdCurve:
    """One of `ALARM_METRICS` at each threshold, where `p <= threshold` is an alarm, and the false positive rate."""
    checks.choice("metric", metric, ALARM_METRICS)
    return threshold_curves(labels, p, [metric], thresholds)[metric]


def oracle(
    labels: Flags, p: ArrayLike, metric: str = "point-adjusted", thresholds: ArrayLike = THRESHOLDS
) -> OperatingPoint:
    """The threshold with the largest F1 of one of `ALARM_METRICS`: chosen in hindsight, no detector can know it.

    >>> best = oracle([0, 0, 1, 1, 0], [0.5, 0.3, 0.05, 0.6, 0.02])
    >>> round(best.threshold, 3), round(best.f1, 3), round(best.false_positive_rate, 3)
    (0.052, 0.8, 0.333)
    """
    return threshold_curve(labels, p, metric, thresholds).oracle()


def threshold_curves(
    labels: Flags, p: ArrayLike, metrics: Iterable[str], thresholds: ArrayLike
) -> dict[str, ThresholdCurve]:
    """The curves of several metrics, which share the alarms."""
    truth = read_labels(labels)
    complete, levels = read_p(p, truth), read_thresholds(thresholds)
    found: dict[str, list[tuple[float, float, float]]] = {metric: [] for metric in metrics}
    for level in levels:
        alarms = Marks(complete <= level)
        for metric, rows in found.items():
            result = ALARM_METRICS[metric](truth, alarms)
            rows.append((*result, result.f1))
    rates = false_positive_rate(truth, complete, levels)
    curves = {}
    for metric, rows in found.items():
        precision, recall, f1 = np.array(rows).T
        curves[metric] = ThresholdCurve(
            thresholds=levels, precision=precision, recall=recall, f1=f1, false_positive_rate=rates
        )
    return curves


def false_positive_rate(labels: Flags, p: ArrayLike, thresholds: ArrayLike = THRESHOLDS) -> Floats:
    """The share of normal observations with `p <= threshold`, at each threshold in ascending order.

    For p-values it should be the threshold itself. NaN without normal observations.

    >>> false_positive_rate([0, 0, 0, 0, 1], [0.1, 0.4, 0.8, np.nan, 0.2], [0.1, 0.5, 1.0]).tolist()
    [0.25, 0.5, 1.0]
    """
    truth = read_labels(labels)
    normal = np.sort(read_p(p, truth)[~truth.flags])
    alarms = np.searchsorted(normal, read_thresholds(thresholds), side="right")
    return alarms / normal.size if normal.size else np.full(alarms.size, np.nan)

"""All metrics of one signal at once."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin_bench.metrics.budget import FoundWithinBudget, within_budget
from tocsin_bench.metrics.marks import Flags, Floats, Marks, observations, read_labels, read_p
from tocsin_bench.metrics.operation import Operation, in_operation
from tocsin_bench.metrics.ranking import WITHOUT_PERIOD, average_precision, roc_auc, volume_under_surface
from tocsin_bench.metrics.thresholds import (
    ALARM_METRICS,
    SEVERITY_THRESHOLDS,
    THRESHOLDS,
    OperatingPoint,
    false_positive_rate,
    threshold_curves,
)


@dataclass(frozen=True)
class Evaluation:
    """All metrics of one signal: rankings, each metric of alarms at its own oracle threshold, and one alarm rate.

    `false_positive_rate`, `calibration_error` and `operation` are those at the given alarm rate, `budget` is at numbers
    of false incidents.
    """

    auc_pr: float
    auc_pr_at_quantiles: float
    auc_roc: float
    vus_pr: float
    vus_roc: float
    pointwise: OperatingPoint
    point_adjusted: OperatingPoint
    event_based: OperatingPoint
    range_based: OperatingPoint
    affiliation: OperatingPoint
    false_positive_rate: float
    calibration_error: float
    operation: Operation
    budget: FoundWithinBudget

    def row(self) -> dict[str, float]:
        """Everything as one row of a table, with names such as `auc_pr`, `affiliation_f1` and `operation_incidents`."""
        row: dict[str, float] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float):
                row[field.name] = value
                continue
            inner = value._asdict() if isinstance(value, OperatingPoint) else asdict(value)
            row |= {f"{field.name}_{name}": float(number) for name, number in inner.items()}
        return row


def evaluate(
    labels: Flags,
    p: ArrayLike,
    *,
    window: int = WITHOUT_PERIOD,
    alarm_rate: float = 0.01,
    interval: Any = None,
    gap: int = 10,
    thresholds: ArrayLike = THRESHOLDS,
    incidents: ArrayLike | None = None,
    severity: ArrayLike | None = None,
    calibration: ArrayLike = (np.nan,),
) -> Evaluation:
    """All metrics of the p-values of one signal, by the protocol of the paper.

    An alarm is `p <= threshold`, a missing p-value counts as 1, and rankings are by 1 - p. The caller leaves out
    what precedes the evaluated part (warm-up, calibration). Metrics that need anomalies, or normal observations, are
    NaN without them.

    Parameters
    ----------
    p : low when anomalous, from 0 to 1; NaN where missing. For a score scaled to [0, 1], pass 1 - score and
        `thresholds=MIN_MAX_THRESHOLDS`; that does not make it a p-value.
    window : for the volume under the surface: `find_window` of the signal's values.
    alarm_rate : the threshold for the false positive rate, its calibration error and what operators see.
    interval, gap : for what operators see, as in `in_operation`.
    thresholds : from which each metric of alarms chooses its best, in hindsight.
    incidents : the method's own, for the time under them, as in `within_budget`.
    severity : what orders observations and decides alarms, in nats, where that is not p: rankings, events within a
        budget and metrics of alarms go by it. Calibration errors stay those of p, each at the best threshold on p.
    calibration : p, or the severity if there is one, of what precedes the evaluated part, for AUC-PR at its quantiles.

    >>> import numpy as np
    >>> labels, p = np.zeros(1000), np.random.default_rng(0).random(1000)
    >>> labels[600:650], p[620:650] = 1, 0.002
    >>> result = evaluate(labels, p, window=48)
    >>> round(result.vus_pr, 2), round(result.affiliation.f1, 2), round(result.false_positive_rate, 3)
    (0.64, 0.97, 0.009)
    """
    truth = read_labels(labels)
    complete = read_p(p, truth)
    rate = checks.number("alarm_rate", alarm_rate, above=0, most=1)
    order = complete if severity is None else _below_one(severity, truth)
    before = np.asarray(calibration) if severity is None else _on_scale_of_p(calibration)
    volume = volume_under_surface(truth, -order, window)
    points = {
        name: curve.oracle() for name, curve in threshold_curves(truth, complete, ALARM_METRICS, thresholds).items()
    }
    if severity is not None:
        curves = threshold_curves(truth, order, ALARM_METRICS, SEVERITY_THRESHOLDS)
        points = {
            name: curve.oracle()._replace(calibration_error=points[name].calibration_error)
            for name, curve in curves.items()
        }
    false_positives = float(false_positive_rate(truth, complete, [rate])[0])
    return Evaluation(
        auc_pr=average_precision(truth, -order),
        auc_pr_at_quantiles=average_precision(truth, -order, -before),
        auc_roc=roc_auc(truth, -order),
        vus_pr=volume.pr,
        vus_roc=volume.roc,
        **{name.replace("-", "_"): point for name, point in points.items()},
        false_positive_rate=false_positives,
        calibration_error=abs(false_positives - rate),
        operation=in_operation(truth, Marks(complete <= rate), interval=interval, gap=gap),
        budget=within_budget(truth, order, incidents=incidents, gap=gap),
    )


def _below_one(nats: ArrayLike, labels: Marks) -> Floats:
    """Values in nats on the scale of p, though not p-values; a missing one counts as normal."""
    return read_p(_on_scale_of_p(nats), labels)


def _on_scale_of_p(nats: ArrayLike) -> Floats:
    return np.asarray(np.exp(-np.maximum(observations("nats", nats), 0.0)))

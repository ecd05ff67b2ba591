"""Metrics of p-values, scores and alarms against labels."""

from tocsin_bench.metrics.alarms import (
    PrecisionRecall,
    affiliation,
    event_based,
    point_adjusted,
    pointwise,
    range_based,
)
from tocsin_bench.metrics.budget import (
    BUDGETS,
    FoundWithinBudget,
    events_found,
    loosest_threshold,
    threshold_at,
    time_under_incidents,
    within_budget,
)
from tocsin_bench.metrics.evaluation import Evaluation, evaluate
from tocsin_bench.metrics.marks import Marks
from tocsin_bench.metrics.operation import Operation, detection_delays, in_operation
from tocsin_bench.metrics.ranking import Volume, average_precision, find_window, roc_auc, volume_under_surface
from tocsin_bench.metrics.thresholds import (
    ALARM_METRICS,
    MIN_MAX_THRESHOLDS,
    SEVERITY_THRESHOLDS,
    THRESHOLDS,
    OperatingPoint,
    ThresholdCurve,
    false_positive_rate,
    oracle,
    threshold_curve,
)

__all__ = [
    "ALARM_METRICS",
    "BUDGETS",
    "MIN_MAX_THRESHOLDS",
    "SEVERITY_THRESHOLDS",
    "THRESHOLDS",
    "Evaluation",
    "FoundWithinBudget",
    "Marks",
    "OperatingPoint",
    "Operation",
    "PrecisionRecall",
    "ThresholdCurve",
    "Volume",
    "affiliation",
    "average_precision",
    "detection_delays",
    "evaluate",
    "event_based",
    "events_found",
    "false_positive_rate",
    "find_window",
    "in_operation",
    "loosest_threshold",
    "oracle",
    "point_adjusted",
    "pointwise",
    "range_based",
    "roc_auc",
    "threshold_at",
    "threshold_curve",
    "time_under_incidents",
    "volume_under_surface",
    "within_budget",
]

"""Which metrics the tables show, under which headings, and which way is better."""

import re
from typing import NamedTuple

from tocsin_bench.methods import METHODS
from tocsin_bench.outside import OUTSIDE
from tocsin_bench.results import WHOLE
from tocsin_bench.rivals import RIVALS


class Measure(NamedTuple):
    """A metric of a run: `better` is 1 if more is better, -1 if less is, 0 if neither is."""

    key: str
    heading: str
    better: int
    decimals: int = 3
    short: str = ""


MAIN = (
    Measure("point_adjusted_f1", "PA-F1", 1),
    Measure("affiliation_f1", "Affiliation-F", 1, short="Aff-F"),
    Measure("point_adjusted_false_positive_rate", "FPR", -1),
    Measure("point_adjusted_calibration_error", "CalErr", -1),
    Measure("auc_pr", "AUC-PR", 1),
    Measure("vus_pr", "VUS-PR", 1),
)
"""The columns of the paper."""

AT_QUANTILES = Measure("auc_pr_at_quantiles", "AUC-PR at 250 quantiles", 1)
"""AUC-PR as the paper describes it."""

OPERATORS = (
    Measure("false_positive_rate", "FPR at .01", 0, 4),
    Measure("calibration_error", "CalErr at .01", -1, 4),
    Measure("operation_events", "events", 0, 1),
    Measure("operation_detected_events", "detected", 1, 1),
    Measure("operation_median_delay", "median delay", -1, 1),
    Measure("operation_alarms", "alarms", 0, 1),
    Measure("operation_false_alarms", "false alarms", -1, 1),
    Measure("operation_false_alarms_per_1000", "false alarms per 1000", -1, 2),
    Measure("operation_incidents", "incidents", 0, 1),
    Measure("operation_false_incidents", "false incidents", -1, 1),
    Measure("operation_incidents_per_week", "incidents per week", 0, 2),
    Measure("operation_false_incidents_per_week", "false incidents per week", -1, 2),
)
"""What those see who answer the alarms, at an alarm rate of .01."""

BUDGET = (
    Measure("budget_events_found", "events found", 1, short="found"),
    Measure("budget_events_found_at_half", "at 0.5 per 1000", 1, short="at .5"),
    Measure("budget_events_found_at_1", "at 1", 1),
    Measure("budget_events_found_at_2", "at 2", 1),
    Measure("budget_fault_time", "fault time", 1),
    Measure("budget_normal_time", "normal time", -1),
    Measure("budget_false_over_budget", "false incidents over budget", 0, 2, short="over budget"),
)
"""What is found at the same number of false incidents, and how much time lies under incidents."""

TSB_AD = (
    Measure("vus_pr", "VUS-PR after `tr`", 1, short="VUS after"),
    Measure(f"{WHOLE}vus_pr", "VUS-PR, whole file", 1, short="VUS-PR"),
    Measure("auc_pr", "AUC-PR after `tr`", 1, short="AUC after"),
    Measure(f"{WHOLE}auc_pr", "AUC-PR, whole file", 1, short="AUC-PR"),
    Measure(f"{WHOLE}affiliation_f1", "Affiliation-F, whole file", 1, short="Aff-F"),
)
"""The evaluated part beside the whole file, which TSB-AD's leaderboard ranks by."""

_METHODS = (
    "tocsin",
    "tocsin-light",
    "w1-acas",
    "fixed-window",
    "exponential-decay",
    "conformal",
    "gaussian",
    *RIVALS,
    "kshape",
    "poly",
    "sub-pca",
    "sub-knn",
    "sand",
    "cnn",
    "usad",
    "omnianomaly",
    "moment",
)
_MERGES = re.compile("-(fisher|harmonic|mean)$")


def method_order(method: str) -> tuple[int, str]:
    """Sorts methods as the paper does: ours and its own first, then those on the same forecasts, then the others."""
    plain = without_merge(method)
    return _METHODS.index(plain) if plain in _METHODS else len(_METHODS), method


def without_merge(method: str) -> str:
    """The name of a method without the name of its merge.

    >>> without_merge("w1-acas-fisher")
    'w1-acas'
    """
    return _MERGES.sub("", method)


def ranked_by(method: str) -> str:
    """What orders the observations of a method: the severity of detectors, the p of other methods of ours, or scores.

    >>> ranked_by("tocsin"), ranked_by("w1-acas[stride=1]-fisher"), ranked_by("sub-pca")
    ('severity', 'p', 'score')
    """
    known = METHODS.get(without_merge(method).split("[")[0])
    if known is None and (method in _METHODS or method.startswith(OUTSIDE)):
        return "score"
    return "severity" if known is None or known.forecasts_itself else "p"  # a combination of settings is a detector


def forecaster_order(forecaster: str) -> tuple[bool, str]:
    """Sorts methods without a forecaster last."""
    return not forecaster, forecaster


def label(forecaster: str, method: str) -> str:
    """A short name of a method and its forecaster."""
    return f"{method} · {forecaster}" if forecaster else method

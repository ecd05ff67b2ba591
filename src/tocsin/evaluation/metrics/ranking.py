"""How well scores (larger is more anomalous) rank anomalous observations above normal ones, over all thresholds."""

import numpy as np
from numpy.typing import ArrayLike

from tocsin.evaluation.metrics.marks import Flags, Integers, Marks, read_labels, read_scores


def average_precision(labels: Flags, scores: ArrayLike) -> float:
    """AUC-PR as the mean precision over the anomalous observations, ties alarming together; NaN without anomalies.

    >>> round(average_precision([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]), 3)
    1.0
    """
    truth = read_labels(labels)
    hits, alarms = _counts(truth, scores)
    if not truth.positions.size:
        return float("nan")
    return float(np.sum(np.diff(hits, prepend=0) * (hits / alarms)) / truth.positions.size)


def roc_auc(labels: Flags, scores: ArrayLike) -> float:
    """AUC-ROC: the chance that an anomalous observation has a larger score than a normal one, ties counting half.

    NaN unless there are both.

    >>> roc_auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    truth = read_labels(labels)
    hits, alarms = _counts(truth, scores)
    anomalous, normal = truth.positions.size, truth.flags.size - truth.positions.size
    if not anomalous or not normal:
        return float("nan")
    area = np.trapezoid(np.concatenate([[0], hits]), np.concatenate([[0], alarms - hits]))
    return float(area / (anomalous * normal))


def _counts(truth: Marks, scores: ArrayLike) -> tuple[Integers, Integers]:
    """How many anomalous observations, and how many of all, have at least each score, the largest first."""
    array = read_scores(scores, truth)
    order = np.argsort(array)[::-1]
    falls = np.append(np.flatnonzero(np.diff(array[order])), array.size - 1)
    return np.cumsum(truth.flags[order])[falls], falls + 1

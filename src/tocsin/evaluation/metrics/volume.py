"""The volume under the surface (VUS) that range-based curves form over the width of the labels' soft borders."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin.evaluation.metrics.marks import Flags, read_labels, read_scores
from tocsin.evaluation.metrics.window import WITHOUT_PERIOD

LEVELS = 250


class Volume(NamedTuple):
    """The volumes under the surfaces of precision over recall, and of recall over the false positive rate."""

    pr: float
    roc: float


def volume_under_surface(labels: Flags, scores: ArrayLike, window: int = WITHOUT_PERIOD) -> Volume:
    """VUS-PR and VUS-ROC of scores (larger is more anomalous), as TSB-AD computes them ("opt", 250 thresholds).

    Each event gets borders on which labels fall from 1 to 0.7, of every width from 0 to half the `window`
    (`find_window` of the signal). Both are NaN without anomalies; VUS-ROC also if everything is anomalous.

    >>> labels = [0] * 20 + [1] * 5 + [0] * 20
    >>> late = [0] * 22 + [1] * 5 + [0] * 18
    >>> round(volume_under_surface(labels, late, window=0).pr, 3), round(volume_under_surface(labels, late, 10).pr, 3)
    (0.404, 0.693)
    """
    # numba is slow to import: only callers of this function wait for it.
    from tocsin.evaluation.metrics import kernels

    truth = read_labels(labels)
    array = read_scores(scores, truth)
    widest = checks.integer("window", window, least=0)
    if not truth.starts.size:
        return Volume(float("nan"), float("nan"))
    falling = np.sort(array)[::-1]
    thresholds = falling[np.linspace(0, array.size - 1, LEVELS).astype(np.int64)]
    level = np.searchsorted(-thresholds, -array)  # the first whose threshold an observation reaches
    alarms = np.cumsum(np.bincount(level, minlength=LEVELS))
    hits = np.cumsum(np.bincount(level[truth.flags], minlength=LEVELS))
    near, nearest, second = kernels.surroundings(truth.starts, truth.stops, array.size, widest // 2)
    return Volume(*kernels.volume(level, level[near], nearest, second, truth.starts, truth.stops, alarms, hits, widest))

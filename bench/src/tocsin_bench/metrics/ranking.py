"""How well scores (larger is more anomalous) rank anomalous observations above normal ones, over all thresholds."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin_bench.metrics.marks import Flags, Floats, Integers, Marks, observations, read_labels, read_scores

WITHOUT_PERIOD = 125
"""The window of a signal in which no period is found."""
LONGEST_SIGNAL = 20_000
MOST_LAGS = 400
LEAST_LAG = 3
# Peaks at lags outside this range are ignored.
LEAST_PERIOD, MOST_PERIOD = 6, 303

LEVELS = 250


def find_window(values: ArrayLike) -> int:
    """The lag of the highest peak of the autocorrelation, as in TSB-AD's `find_length_rank`; 125 if there is none.

    Of several features TSB-AD takes the first. `tocsin.find_period` is better at finding a period; this
    function keeps numbers comparable with TSB-AD's.

    >>> find_window(np.sin(2 * np.pi * np.arange(1000) / 24)), find_window(np.arange(1000))
    (24, 125)
    """
    correlation = _autocorrelation(observations("values", values)[:LONGEST_SIGNAL])
    inner = correlation[1:-1]
    peaks = np.flatnonzero((inner > correlation[:-2]) & (inner > correlation[2:])) + 1
    peaks = peaks[peaks > LEAST_LAG]
    if not peaks.size:
        return WITHOUT_PERIOD
    highest = int(peaks[np.argsort(correlation[peaks])[-1]])
    return highest if LEAST_PERIOD <= highest <= MOST_PERIOD else WITHOUT_PERIOD


def _autocorrelation(values: Floats) -> Floats:
    """At the lags from 0 on; all NaN for zeros or where a value is missing or infinite."""
    with np.errstate(all="ignore"):
        deviations = values - values.mean()
        length = 2 ** (2 * values.size).bit_length()  # no lag wraps around
        spectrum = np.fft.rfft(deviations, length)
        products = np.fft.irfft(spectrum * spectrum.conj(), length)
        return np.asarray(products[: min(MOST_LAGS + 1, values.size)] / products[0])


def average_precision(labels: Flags, scores: ArrayLike, calibration: ArrayLike | None = None) -> float:
    """AUC-PR as the mean precision over the anomalous observations, ties alarming together; NaN without anomalies.

    With the scores of the calibration part, NaN where there are none, only 250 quantiles of these are thresholds, as
    the paper has it.

    >>> round(average_precision([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]), 3)
    1.0
    """
    truth = read_labels(labels)
    if calibration is not None:
        known = observations("calibration", calibration)
        known = known[~np.isnan(known)]
        if not known.size:
            return float("nan")
        levels = np.quantile(known, np.linspace(0, 1, LEVELS), method="lower")
        scores = np.searchsorted(levels, read_scores(scores, truth), side="right")
    hits, alarms = _counts(truth, scores)
    if calibration is not None and np.min(scores) == 0:  # below every threshold
        hits, alarms = hits[:-1], alarms[:-1]
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
    from tocsin_bench.metrics import kernels

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

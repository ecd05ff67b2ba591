"""Whether a signal in an incident is still unlike its past."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner
from tocsin.detection.spread import centre_and_spread

Array = NDArray[Any]

_inner = inner()

# This many of the newest values are compared with the past. A signal that is like its past again for as many
# observations has returned.
LENGTH = 32
# The largest distance between stretches of the past is learned from this many of them. Each is compared with stretches
# at least this many observations before it.
SAMPLES = 48
APART = 256
# A comparison checks after this many values whether it can end early.
PART = 8
# A stretch with a smaller share of comparable values is like no other.
LEAST_KNOWN = 0.5


class Recall(NamedTuple):
    """The newest values of signals, to know them before an incident; empty if none are kept."""

    past: Array  # (S, F, width), the newest first
    heads: Array  # where the newest is
    counts: Array  # how many values there were in all
    reach: int  # how far back one can look, whatever the batch size
    units: Array  # (S, F), the spread of each feature before the incident


@_inner
def _nearest(past: Array, units: Array, at: int, first: int, last: int, enough: float) -> float:
    """The mean squared distance of the stretch at `at` to the nearest one from `first` to `last` observations before.

    It ends at the first one no further than `enough`, unless that is negative.
    """
    features = past.shape[0]
    pairs = features * LENGTH
    least = np.inf
    for lag in range(first, last + 1):
        total, known = 0.0, 0
        for part in range(0, LENGTH, PART):
            for f in range(features):
                for i in range(at + part, at + part + PART):
                    step = (past[f, i] - past[f, i + lag]) / units[f]
                    if not np.isnan(step):
                        total += step * step
                        known += 1
            if total > (enough if enough >= 0.0 else least) * pairs:
                break
        if known >= LEAST_KNOWN * pairs and total < least * known:
            least = total / known
            if least <= enough:
                break
    return least


@_inner
def learn_furthest(recall: Recall, signal: int, ago: int, before: int) -> float:
    """How far stretches were from earlier ones, at most, `before` observations ago and longer; also sets the units.

    `ago` counts the observations since the one judged. Infinite if there is too little past.
    """
    past, units = recall.past[signal], recall.units[signal]
    start = recall.heads[signal] + ago + before
    there = min(recall.counts[signal] - ago, recall.reach) - before
    apart = min(APART, there // 4)
    if apart < 2 * LENGTH:
        return np.inf
    for f in range(past.shape[0]):
        spread = centre_and_spread(past[f, start : start + there])[1]
        units[f] = spread if spread > 0.0 else 1.0
    furthest = 0.0
    # The later half of the past: each stretch has as much again before it.
    room = max((there - apart - LENGTH) // 2, 1)
    for sample in range(SAMPLES):
        at = sample * room // SAMPLES
        furthest = max(furthest, _nearest(past, units, start + at, apart, there - at - LENGTH, -1.0))
    # A little more, so that rounding in another order of summation does not matter.
    return furthest * (1.0 + 1e-9)


@_inner
def unlike(recall: Recall, signal: int, ago: int, before: int, furthest: float) -> bool:
    """Whether the newest stretch is further than that from all those that ended more than `before` observations ago."""
    at = recall.heads[signal] + ago
    last = min(recall.counts[signal] - ago, recall.reach) - LENGTH
    newest = recall.past[signal, :, at : at + LENGTH]
    # Nothing can be said if most values are missing.
    if not furthest < np.inf or last < before or np.isnan(newest).sum() > (1.0 - LEAST_KNOWN) * newest.size:
        return False
    return _nearest(recall.past[signal], recall.units[signal], at, before, last, furthest) > furthest

"""Whether a signal in an incident is still unlike what it was before."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner
from tocsin.detection.spread import centre_and_spread

Array = NDArray[Any]

_inner = inner()

# So many of the newest values are compared with the past, and a signal that is like its past again for as many
# observations has returned.
LENGTH = 32
# How far apart stretches of the past are, at most, is learned from so many of them, each compared with what came that
# many observations and more before it.
SAMPLES = 48
APART = 256
# A comparison ends early where so many values at a time already say enough.
PART = 8
# A stretch of which fewer values than this share can be compared is like no other.
LEAST_KNOWN = 0.5


class Recall(NamedTuple):
    """The newest values of signals, for what they were like before an incident; without signals where none are kept."""

    past: Array  # (S, F, width), the newest first
    heads: Array  # where the newest is
    counts: Array  # how many values were taken in all
    reach: int  # how far back one can look, whatever came at once
    units: Array  # (S, F), the spread of each feature before the incident


@_inner
def _nearest(past: Array, units: Array, at: int, first: int, last: int, enough: float) -> float:
    """The mean squared distance of the stretch at `at` to the nearest one from `first` to `last` observations before.

    It ends at the first one that is no further than `enough`, where that is not negative.
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

    `ago` counts the observations since the one that is judged. Infinite where too little came before.
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
    # The later half of the past: each has as much again before it.
    room = max((there - apart - LENGTH) // 2, 1)
    for sample in range(SAMPLES):
        at = sample * room // SAMPLES
        furthest = max(furthest, _nearest(past, units, start + at, apart, there - at - LENGTH, -1.0))
    # A little more, so that stretches of the same values are equally far whatever order they are added in.
    return furthest * (1.0 + 1e-9)


@_inner
def unlike(recall: Recall, signal: int, ago: int, before: int, furthest: float) -> bool:
    """Whether the newest stretch is further than that from all that ended more than `before` observations ago."""
    at = recall.heads[signal] + ago
    last = min(recall.counts[signal] - ago, recall.reach) - LENGTH
    newest = recall.past[signal, :, at : at + LENGTH]
    # Of a signal of which most is missing nobody can tell.
    if not furthest < np.inf or last < before or np.isnan(newest).sum() > (1.0 - LEAST_KNOWN) * newest.size:
        return False
    return _nearest(recall.past[signal], recall.units[signal], at, before, last, furthest) > furthest

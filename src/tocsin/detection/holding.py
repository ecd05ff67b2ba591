"""Compiled: whether a signal in an incident is still unlike its past."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner
from tocsin.detection.views.library import Library, ends, furthest_apart, nearest
from tocsin.detection.views.view import MOST_AT_ONCE

Array = NDArray[Any]

_inner = inner()


class Recall(NamedTuple):
    """What signals were like before an incident; arrays without signals if no past is kept."""

    library: Library
    counts: Array  # how many observations there were in all
    block: int  # how many observations a value is the mean of
    length: int  # how many of the newest observations are compared with the past
    # The largest distance between stretches of the past is learned from so many samples. Each is compared with
    # stretches at least so many observations away.
    samples: int
    apart: int


@_inner
def _span(recall: Recall, signal: int, ago: int, before: int) -> tuple[int, int, int]:
    """Where stretches begin: the first and last of those `before` observations ago and longer, and the newest one.

    `ago` counts the observations since the one judged. How far one can look back does not depend on it.
    """
    library, block = recall.library, recall.block
    seen = recall.counts[signal]
    complete = (seen - ago) // block
    end = library.ends[signal] - (seen // block - complete)
    there = min(complete, library.kept - MOST_AT_ONCE // block - 1)
    length = recall.length // block
    # What is usable is the same for all observations that are judged together.
    last = min(end - (before + block - 1) // block, ends(signal, library)) - length
    return end - there, last, end - length


@_inner
def learn_furthest(recall: Recall, signal: int, ago: int, before: int) -> float:
    """How far stretches were from others, at most, `before` observations ago and longer; infinite if there are few."""
    first, last, _ = _span(recall, signal, ago, before)
    length = recall.length // recall.block
    apart = min(recall.apart // recall.block, (last - first) // 4)
    if apart < 2 * length:
        return np.inf
    # A little more, so that rounding does not matter.
    return furthest_apart(recall.library.past[signal], first, last, length, apart, recall.samples) * (1.0 + 1e-6)


@_inner
def unlike(recall: Recall, signal: int, ago: int, before: int, furthest: float) -> bool:
    """Whether the newest stretch is further than that from all those that ended more than `before` observations ago."""
    first, last, newest = _span(recall, signal, ago, before)
    if not furthest < np.inf or last < first:
        return False
    past = recall.library.past[signal]
    near, _ = nearest(past[:, newest : newest + recall.length // recall.block], past, first, last, furthest)
    return furthest < near < np.inf

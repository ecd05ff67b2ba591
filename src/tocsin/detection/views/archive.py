"""Compiled: the archive of a signal's past, and how far a stretch is from the nearest one in it.

Shapes, references and the end of incidents all go by this one distance. Values are kept in units of their own spread,
as means over blocks of a few observations where stretches are long. The newest observations are compared with only
once it is known whether they belong to a fault. Those that do are removed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner

Array = NDArray[Any]

_inner = inner()

# Stands for a value that is not known. Squares of differences from it are larger than any other, and finite.
UNKNOWN = np.float32(1e18)
# Values further away count as this far.
FURTHEST = 1e6
# How many stretches are compared side by side, and after how many of their values those too far away are left out.
TOGETHER, PART = 256, 8


class Archive(NamedTuple):
    """The newest values of signals, the oldest first."""

    past: Array  # (signals, features, width)
    ends: Array  # (signals,), where the next value goes
    sizes: Array  # (signals,), how many were added
    usable: Array  # (signals,), how many of these may be compared with
    offsets: Array  # (signals, features); NaN before the first value
    units: Array  # (signals, features), the spread of the values; 0 before it is known
    kept: int  # how many are there, at most


@_inner
def in_units(value: float, offset: float, unit: float) -> Any:
    """A value as it is kept."""
    return np.float32(min(max((value - offset) / (unit if unit > 0.0 else 1.0), -FURTHEST), FURTHEST))


@_inner
def make_room(signal: int, archive: Archive) -> int:
    """Where the next value of the signal goes; the oldest give way if there is no room."""
    end = archive.ends[signal]
    if end == archive.past.shape[2]:
        for f in range(archive.past.shape[1]):
            row = archive.past[signal, f]
            for i in range(archive.kept):
                row[i] = row[end - archive.kept + i]
        end = archive.kept
    archive.ends[signal] = end + 1
    archive.sizes[signal] += 1
    return int(end)


@_inner
def ends(signal: int, archive: Archive) -> int:
    """Where the values of the signal end that may be compared with."""
    return int(archive.ends[signal] - (archive.sizes[signal] - archive.usable[signal]))


@_inner
def begins(signal: int, archive: Archive) -> int:
    """Where the oldest value of the signal is."""
    return int(archive.ends[signal] - min(archive.sizes[signal], archive.kept))


@_inner
def smallest(numbers: Array, bits: Array, count: int) -> Any:
    """The smallest of the first numbers, of which none is negative or NaN. The last number is overwritten.

    `bits` is the same memory seen as integers: those have the same order, and are compared many at a time.
    """
    least = bits[0]
    for i in range(1, count):
        least = min(least, bits[i])
    bits[-1] = least
    return numbers[-1]


@_inner
def nearest(stretch: Array, past: Array, first: int, last: int, enough: float) -> tuple[float, int]:
    """The mean squared distance of a stretch `[F, length]` to the nearest one of `past[F, width]`, and where it begins.

    Those that begin from `first` to `last` are compared, and nothing nearer than `enough` is looked for. Features that
    are not known throughout the stretch do not count; infinite if none is known, or no other stretch.
    """
    features, length = stretch.shape
    known = np.ones(features, dtype=np.bool_)
    for f in range(features):
        for i in range(length):
            known[f] = known[f] and stretch[f, i] < UNKNOWN
    pairs = length * known.sum()
    if pairs == 0:
        return np.inf, first
    sums = np.empty(TOGETHER + 1, dtype=np.float32)
    bits = sums.view(np.int32)
    least, begins_at = np.float32(np.inf), first
    # The newest first: they are most often the nearest.
    stop = last + 1
    while stop > first and not least <= enough * pairs:
        start = max(stop - TOGETHER, first)
        count = stop - start
        sums[:count] = 0.0
        closest = np.float32(np.inf)
        for part in range(0, length, PART):
            for f in range(features):
                if known[f]:
                    for i in range(part, min(part + PART, length)):
                        value, row = stretch[f, i], past[f, start + i : stop + i]
                        for j in range(count):
                            step = value - row[j]
                            sums[j] += step * step
            closest = smallest(sums, bits, count)
            if not closest < least:
                break
        if closest < least:
            least = closest
            for j in range(count):
                begins_at = start + j if sums[j] == closest else begins_at
        stop = start
    # A stretch with unknown values is no comparison.
    return (np.float64(least) / pairs if least < UNKNOWN else np.inf), begins_at


@_inner
def newest_apart(stretch: Array, other: Array, newest: int) -> float:
    """The mean squared distance of the newest values of two stretches `[F, length]`, of features known throughout."""
    features, length = stretch.shape
    total, pairs = 0.0, 0
    for f in range(features):
        known = True
        for i in range(length):
            known = known and stretch[f, i] < UNKNOWN
        for i in range(length - newest if known else length, length):
            step = np.float64(stretch[f, i]) - np.float64(other[f, i])
            total += step * step
            pairs += 1
    return total / pairs


@_inner
def furthest_apart(past: Array, first: int, last: int, length: int, apart: int, samples: int) -> float:
    """How far stretches that begin from `first` to `last` are from the nearest one at least `apart` away, at most.

    About this many stretches are sampled. Each is compared with those at least `apart` before or after it. Zero if no
    stretch can be compared.
    """
    furthest = 0.0
    for start in range(first, last + 1, max((last + 1 - first) // samples, 1)):
        stretch = past[:, start : start + length]
        near = nearest(stretch, past, first, start - apart, -1.0)[0]
        near = min(near, nearest(stretch, past, start + apart, last, -1.0)[0])
        if near < np.inf:
            furthest = max(furthest, near)
    return furthest

"""The compiled loops of the view of relations between features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.detection.views.kernels import BOTH, CLIP, LARGEST_KEPT, LOW, centre_and_spread
from tocsin.detection.views.view import MOST_AT_ONCE

Array = NDArray[Any]

_inner = inner()
_exact = compiled(with_files=("detection/views/kernels.py", "detection/views/view.py"))

# What is added to the variance of each feature, in units of it: features that repeat each other are no trouble.
RIDGE = 1e-3
# At first the features are taken to be independent, with the weight of this many observations.
PRIOR = 10
# An observation further from the centre than this many times what is usual counts less, in proportion.
FAR = 3.0
# What led up to a fault belongs to it: an incident is known to be one after this many observations.
LED_UP = 32
# A feature that moves by no more than this part of its size does not move.
STILL = 1e-8
# A feature whose value is as before is where the others say if it is no further from there than this part of its usual
# distance. What is left of a switch at rest is next to nothing, but never the same: any pulse would be the furthest.
AT_REST = 0.25


class RelationMemory(NamedTuple):
    """What is kept of each signal to tell each feature from the others."""

    counts: Array  # (signals,), of observations
    learned: Array  # (signals,), how many of them were learned
    values: Array  # (signals, features, 2 * MOST_AT_ONCE), a ring of the newest
    faulty: Array  # (signals, 2 * MOST_AT_ONCE), whether each of these belongs to a fault
    frozen: Array  # (signals,), whether nothing is learned any more
    centres: Array  # (signals, features), the mean of each feature; NaN before it is known
    spreads: Array  # (signals, features), its standard deviation; 0 while it does not move
    covariances: Array  # (signals, features, features)
    inverses: Array  # (signals, features, features), of the correlations
    newest: Array  # (signals, features, .), a ring of the newest distances


@_inner
def _invert(matrix: Array, size: int) -> None:
    """Invert the first rows and columns of a positive definite matrix in place."""
    row = np.empty(size)  # a copy: the compiler then knows that the loop over it does not change it, and vectorises
    for k in range(size):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(size):
            matrix[k, j] *= pivot
            row[j] = matrix[k, j]
        for i in range(size):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(size):
                    matrix[i, j] -= factor * row[j]


@_inner
def _standardise(signal: int, values: Array, memory: RelationMemory, units: Array) -> int:
    """Write the values in units of their spreads, none beyond the clip, to `units`: NaN if missing, 0 for what does
    not move. Returns how many are known and move."""
    known = 0
    for f in range(values.shape[0]):
        spread = memory.spreads[signal, f]
        units[f] = 0.0
        if spread > 0.0:
            units[f] = min(max((values[f] - memory.centres[signal, f]) / spread, -CLIP), CLIP)
            known += 0 if np.isnan(units[f]) else 1
    return known


@_inner
def _fill(inverse: Array, units: Array, gaps: Array, within: Array) -> int:
    """Replace what is missing by what the known features say, and return how much that is.

    Which features these are goes to `gaps`, and the covariance of what is not known about them to `within`.
    """
    missing = 0
    for f in range(units.shape[0]):
        if np.isnan(units[f]):
            gaps[missing] = f
            missing += 1
    if missing == 0:
        return 0
    said = np.zeros(missing)
    for a in range(missing):
        for f in range(units.shape[0]):
            if not np.isnan(units[f]):
                said[a] -= inverse[gaps[a], f] * units[f]
        for b in range(missing):
            within[a, b] = inverse[gaps[a], gaps[b]]
    _invert(within, missing)
    for a in range(missing):
        total = 0.0
        for b in range(missing):
            total += within[a, b] * said[b]
        units[gaps[a]] = total
    return missing


@_inner
def _begin(signal: int, f: int, values: Array, memory: RelationMemory) -> bool:
    """Take the centre and the variance of a feature that has not moved so far from these values, robustly.

    Returns whether any is known.
    """
    middle, spread = centre_and_spread(values)
    if not np.isnan(middle):
        memory.centres[signal, f] = middle
        memory.covariances[signal, f, :] = 0.0
        memory.covariances[signal, :, f] = 0.0
        memory.covariances[signal, f, f] = (1.4826 * spread) ** 2
    return not np.isnan(middle)


@_inner
def _relate(signal: int, memory: RelationMemory) -> None:
    """Invert the correlations, with a ridge."""
    covariance, inverse, spreads = memory.covariances[signal], memory.inverses[signal], memory.spreads[signal]
    features = spreads.shape[0]
    for f in range(features):
        spread = np.sqrt(covariance[f, f])
        spreads[f] = spread if spread > STILL * abs(memory.centres[signal, f]) else 0.0
    for f in range(features):
        for g in range(features):
            both = spreads[f] > 0.0 and spreads[g] > 0.0
            inverse[f, g] = covariance[f, g] / (spreads[f] * spreads[g]) if both and f != g else 0.0
        inverse[f, f] = 1.0 + RIDGE
    _invert(inverse, features)


@_inner
def _learn_one(signal: int, values: Array, kept: int, memory: RelationMemory) -> None:
    """Let the mean and the covariance learn one observation."""
    covariance, inverse, spreads = memory.covariances[signal], memory.inverses[signal], memory.spreads[signal]
    features = values.shape[0]
    units, gaps, within = np.empty(features), np.empty(features, dtype=np.int64), np.empty((features, features))
    known = _standardise(signal, values, memory, units)
    if known == 0:
        return
    missing = _fill(inverse, units, gaps, within)
    distance = 0.0
    for f in range(features):
        for g in range(features):
            distance += units[f] * inverse[f, g] * units[g]
    memory.learned[signal] += 1
    weight = 1.0 / min(PRIOR + memory.learned[signal], kept)
    counts = weight * min(1.0, FAR * known / distance) if distance > 0.0 else weight
    for f in range(features):
        for g in range(features):
            product = units[f] * units[g] * spreads[f] * spreads[g]
            covariance[f, g] += counts * product - weight * covariance[f, g]
    for a in range(missing):  # what is not known varies, too
        for b in range(missing):
            f, g = gaps[a], gaps[b]
            covariance[f, g] += counts * within[a, b] * spreads[f] * spreads[g]
    for f in range(features):
        memory.centres[signal, f] += weight * units[f] * spreads[f]


@_inner
def _learn(signal: int, first: int, last: int, kept: int, memory: RelationMemory) -> None:
    """Learn the observations from the first to before the last, if they belong to no fault."""
    slots, values = memory.faulty.shape[1], memory.values[signal]
    features = values.shape[0]
    some, begun = np.empty(last - first), False
    for f in range(features):
        if not memory.spreads[signal, f] > 0.0:
            for number in range(first, last):
                some[number - first] = values[f, number % slots]
            begun = _begin(signal, f, some, memory) or begun
    if begun:
        _relate(signal, memory)
    one = np.empty(features)
    for number in range(first, last):
        left_out = False
        for later in range(number, min(number + LED_UP + 1, memory.counts[signal])):
            left_out = left_out or memory.faulty[signal, later % slots]
        if not left_out:
            for f in range(features):
                one[f] = values[f, number % slots]
            _learn_one(signal, one, kept, memory)
    for number in range(first, last):
        memory.faulty[signal, number % slots] = False
    _relate(signal, memory)


@_inner
def _means(ring: Array, at: int, length: int) -> tuple[float, float]:
    """The mean of the known among this many numbers up to a place in a ring, and that of their sizes."""
    total, sizes, there = 0.0, 0.0, 0
    for i in range(at - length + 1, at + 1):
        value = ring[i % ring.shape[0]]
        if not np.isnan(value):
            total += value
            sizes += abs(value)
            there += 1
    return (total / there, sizes / there) if 2 * there >= length else (np.nan, np.nan)


@_exact
def relations(
    values: Array, rows: Array, lengths: Array, side: int, kept: int, least: int, memory: RelationMemory, scores: Array
) -> None:
    """The distance of each feature from what the others say `[T, N, F, streams]`, its means, and those of its size.

    An observation is learned at the next but one multiple of `MOST_AT_ONCE`: by then it is known whether it belongs to
    a fault.
    """
    features, slots = values.shape[2], memory.faulty.shape[1]
    units, gaps, within = np.empty(features), np.empty(features, dtype=np.int64), np.empty((features, features))
    given = np.empty(features)
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            count = memory.counts[signal]
            if count % MOST_AT_ONCE == 0 and count >= slots and not memory.frozen[signal]:
                _learn(signal, count - slots, count - MOST_AT_ONCE, kept, memory)
            for f in range(features):
                # What is too large to be squared is not known.
                given[f] = values[t, n, f] if abs(values[t, n, f]) <= LARGEST_KEPT else np.nan
                memory.values[signal, f, count % slots] = given[f]
            related = count >= least and _standardise(signal, given, memory, units) > 1
            inverse = memory.inverses[signal]
            missing = _fill(inverse, units, gaps, within) if related else 0
            for f in range(features):
                away, spread, newest = np.nan, memory.spreads[signal, f], memory.newest[signal, f]
                if related and spread > 0.0 and not np.isnan(given[f]):
                    product, share = 0.0, inverse[f, f]
                    for g in range(features):
                        product += inverse[f, g] * units[g]
                    for a in range(missing):  # what was filled in is partly what this feature says itself
                        for b in range(missing):
                            share -= inverse[f, gaps[a]] * within[a, b] * inverse[f, gaps[b]]
                    said = units[f] - product / share
                    away = given[f] - (memory.centres[signal, f] + spread * said)
                away = -away if side == LOW else away
                usual = spread / np.sqrt(inverse[f, f]) if related else 0.0
                if given[f] == memory.values[signal, f, (count - 1) % slots] and abs(away) < AT_REST * usual:
                    away = 0.0
                limit = CLIP * usual
                newest[count % newest.shape[0]] = min(max(away, -limit), limit)
                scores[t, n, f, :] = np.nan
                if not np.isnan(away):
                    scores[t, n, f, 0] = away
                    for s in range(1, lengths.shape[0]):
                        mean, size = _means(newest, count, lengths[s])
                        scores[t, n, f, s] = mean
                        if side == BOTH:
                            scores[t, n, f, lengths.shape[0] - 1 + s] = size
            memory.counts[signal] += 1


@_exact
def learn_the_rest(rows: Array, kept: int, memory: RelationMemory) -> None:
    """Learn what waits to be learned."""
    for signal in rows:
        count = memory.counts[signal]
        learned = max(count // MOST_AT_ONCE * MOST_AT_ONCE - MOST_AT_ONCE, 0)
        if count % MOST_AT_ONCE == 0 and count > 0:
            learned = max(count - 2 * MOST_AT_ONCE, 0)  # the last step is taken before the next observation
        if learned < count:
            _learn(signal, learned, count, kept, memory)

"""How large a score is expected to be at this phase of the season: the noise is expected, as the value is.

Where sizes depend on the phase, a score is also ranked relative to the expected one: what is small by day may be large
at night, and the past that it is compared with is mostly day.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import inner

Array = NDArray[Any]

_inner = inner()

# Phases of a season that are told apart, at most.
PHASES = 96
# How many of the newest relative scores one is ranked among.
KEPT = 500
# The mean size at a phase is that of about so many cycles, and of so many observations of a short season.
CYCLES, OBSERVATIONS = 8, 2000
# A score counts up to this many times its expected size: a fault must not raise its own yardstick.
MOST = 3.0
# Sizes depend on the phase if they differ by this factor between the loudest and the quietest eighth of so many groups
# of phases, each known from so many scores in so many cycles.
DIFFER, GROUPS = 1.6, 24
LEAST_SCORES, LEAST_CYCLES = 32, 5
# Every so many relative levels are kept; a single value counts in them up to this many sizes.
EVERY, LIMIT = 4, 6.0
# How far the relative score of a single observation lies beyond all others counts in full up to about this many nats:
# enough for an alarm, but what is large in any phase stays the more severe.
TRUST = 3.0
# A season found anew, this close to the one before, is only told more precisely.
CLOSE = 0.02


class ExpectedSizes(NamedTuple):
    """What is known of the sizes of scores of single observations."""

    seasons: Array  # (signals, features, 3): the period, how far into it, and how many phases are told apart
    steps: Array  # (signals, features, 2): the smallest one of the values that is not 0, and the last value
    means: Array  # (streams, phases): the mean size at each phase
    counts: Array  # (streams, phases): of how many scores, up to what is kept
    speaks: Array  # (streams,): whether sizes depend on the phase
    relative: Array  # (streams, kept): a ring of the newest scores relative to their expected sizes
    learned: Array  # (streams,): how many of them
    newest: Array  # (levels, length): a ring of the newest relative distances from what is usual; inf if unknown
    levels: Array  # (levels, kept): a ring of relative levels, their means, that share no observation with the newest
    waiting: Array  # (levels, some): those that do
    entered: Array  # (levels, 3): how many distances there were, how many levels, and how many since the last fault


def nothing_known(signals: int, features: int, streams: int, window: int, length: int) -> ExpectedSizes:
    """Nothing is known yet of the streams of all signals together.

    A score is ranked among `window` others at most, and a relative level is a mean over `length` observations. Zeros
    that nobody has written take no memory: without a season, there are no relative scores.
    """
    return ExpectedSizes(
        seasons=np.zeros((signals, features, 3), dtype=np.int64),
        steps=np.full((signals, features, 2), np.inf),
        means=np.zeros((streams, PHASES), dtype=np.float32),
        counts=np.zeros((streams, PHASES), dtype=np.uint16),
        speaks=np.zeros(streams, dtype=np.bool_),
        relative=np.zeros((streams, min(KEPT, window)), dtype=np.float32),
        learned=np.zeros(streams, dtype=np.int64),
        newest=np.full((signals * features, length), np.inf, dtype=np.float32),
        levels=np.zeros((signals * features, min(KEPT, window)), dtype=np.float32),
        waiting=np.zeros((signals * features, length // EVERY), dtype=np.float32),
        entered=np.zeros((signals * features, 3), dtype=np.int64),
    )


@_inner
def forget_sizes(k: Any, sizes: ExpectedSizes) -> None:
    """Forget what is known of a stream, or of several."""
    sizes.counts[k] = 0
    sizes.speaks[k] = False
    sizes.learned[k] = 0


@_inner
def forget_relative_levels(k: Any, sizes: ExpectedSizes) -> None:
    """Forget the relative levels of a feature, or of several."""
    sizes.newest[k] = np.inf
    sizes.entered[k] = 0


@_inner
def enter_phase(value: float, period: int, season: Array, steps: Array) -> bool:
    """Note the next value and phase of a feature; returns whether it has another season from now on."""
    if not np.isnan(value):
        step = abs(value - steps[1])
        if step > 0.0:
            steps[0] = min(steps[0], step)
        steps[1] = value
    other = abs(period - season[0]) > CLOSE * period
    if other:
        season[1], season[2] = 0, min(period, PHASES)
    season[0] = period
    if period > 0:
        season[1] = (season[1] + 1) % period
    return bool(other)


@_inner
def _phase(season: Array) -> int:
    return int(season[1] * season[2] // season[0])


@_inner
def _mean_around(k: int, first: int, phases: int, sizes: ExpectedSizes) -> tuple[float, float]:
    """The mean size over three phases, and their variance relative to its square; NaN if too little is known."""
    total, square, known, there = 0.0, 0.0, 0, 0
    for i in range(first, first + 3):
        at = i % phases
        if sizes.counts[k, at] > 0:
            size = np.float64(sizes.means[k, at])
            total += size
            square += size * size
            known += min(int(sizes.counts[k, at]), 4)
            there += 1
    if known < 6 or total == 0.0:
        return np.nan, np.inf
    mean = total / there
    return mean, square / there / (mean * mean) - 1.0


@_inner
def expected_size(k: int, season: Array, least: float, sizes: ExpectedSizes) -> float:
    """The mean size at the phase and its neighbours, but not beyond an edge; NaN if it is not known.

    Of the phases around it, before it and after it, those count that differ least, and those around it if in doubt.
    """
    if season[0] == 0:
        return np.nan
    at, phases = _phase(season), season[2]
    size, differ = _mean_around(k, at - 1 + phases, phases, sizes)
    differ *= 0.5
    for first in (at - 2 + phases, at):
        mean, differs = _mean_around(k, first, phases, sizes)
        if differs < differ:
            size, differ = mean, differs
    size = max(size, least) if not np.isnan(size) else np.nan
    return size if size > 0.0 else np.nan


@_inner
def learn_size(k: int, score: float, expected: float, season: Array, sizes: ExpectedSizes) -> None:
    """Learn the size of a score, and how large it is relative to the expected one."""
    if season[0] == 0:
        return
    size = abs(score) if np.isnan(expected) else min(abs(score), MOST * expected)
    at, kept = _phase(season), max(CYCLES * season[0], OBSERVATIONS) // season[2]
    count = min(np.int64(sizes.counts[k, at]) + 1, min(kept, 65_535))
    sizes.counts[k, at] = count
    sizes.means[k, at] += (size - sizes.means[k, at]) / count
    if sizes.speaks[k] and not np.isnan(expected):
        sizes.relative[k, sizes.learned[k] % sizes.relative.shape[1]] = score / expected
        sizes.learned[k] += 1


@_inner
def depend_on_phase(k: int, season: Array, sizes: ExpectedSizes) -> bool:
    """Whether the sizes of a stream do, to be asked at the end of a season."""
    phases = season[2]
    groups = min(GROUPS, phases)
    if groups < 4:
        return False
    means = np.empty(groups)
    needed = max(LEAST_SCORES, LEAST_CYCLES * season[0] // groups)
    for g in range(groups):
        total, known = 0.0, 0
        for at in range(g * phases // groups, (g + 1) * phases // groups):
            total += sizes.counts[k, at] * np.float64(sizes.means[k, at])
            known += sizes.counts[k, at]
        if known < needed:
            return False
        means[g] = total / known
    means.sort()
    eighth = max(groups // 8, 1)
    quietest, loudest = 0.0, 0.0
    for g in range(eighth):
        quietest += means[g]
        loudest += means[groups - 1 - g]
    return bool(loudest > DIFFER * quietest)


@_inner
def relative_level(k: int, away: float, sizes: ExpectedSizes) -> float:
    """Note the newest relative distance; returns the mean of the newest ones, NaN if fewer than half are known."""
    ring = sizes.newest[k]
    ring[sizes.entered[k, 0] % ring.shape[0]] = np.inf if np.isnan(away) else min(max(away, -LIMIT), LIMIT)
    sizes.entered[k, 0] += 1
    total, known = 0.0, 0
    for one in ring:
        if one < np.inf:
            total += np.float64(one)
            known += 1
    return total / known if 2 * known >= ring.shape[0] and not np.isnan(away) else np.nan


@_inner
def learn_relative_level(k: int, level: float, sizes: ExpectedSizes) -> None:
    """Let a relative level wait, and learn the one that shares no observation with the newest one any more."""
    number, slots = sizes.entered[k, 2], sizes.waiting.shape[1]
    sizes.entered[k, 2] += 1
    if number % EVERY == 0:
        slot = number // EVERY % slots
        if number >= EVERY * slots:
            sizes.levels[k, sizes.entered[k, 1] % sizes.levels.shape[1]] = sizes.waiting[k, slot]
            sizes.entered[k, 1] += 1
        sizes.waiting[k, slot] = level

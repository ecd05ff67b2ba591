"""The compiled rules of incidents: when evidence alarms, how long an incident lasts, and why it ends."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.conformal.kernels import fit_tail
from tocsin.constants import Constants
from tocsin.detection.incidents.verdict import ACCEPTED, MAY_END, NORMAL, ONGOING, RETURNED, SILENT, SUBSIDED
from tocsin.detection.settings.alarm_rate import EXTRAPOLATION, STAND_IN
from tocsin.detection.views.archive import Archive, ends, furthest_apart, nearest
from tocsin.detection.views.view import MOST_AT_ONCE

Array = NDArray[Any]

_inner = inner()
_exact = compiled(with_files=("conformal/kernels.py", "constants.py", "detection/settings/alarm_rate.py"))

# Columns of a signal's counters.
SCORED = 0  # observations with a score
OPEN = 1  # whether an incident is open
SINCE = 2  # observations since the last alarm
LASTED = 3  # observations since the incident opened
BLOCKS = 4  # completed blocks
IN_BLOCK = 5  # observations in the current block
CERTAIN = 6  # whether the incident is far beyond everything before it
FROZEN = 7  # whether a reference was learned, and nothing else may be
UNLIKE = 8  # whether the signal was ever unlike its past during the incident
COOLDOWN = 9  # for how many observations longer stretches are ignored, because they reach back into the incident
SETTLED = 10  # observations since the incident opened or last went further than before
CALM = 11  # observations between the incident, or now, and the one before it
REACH = 12  # the longest stretch that was ranked when the incident opened
PEAK_FEATURE = 13  # the feature whose level was furthest from the usual one in the incident
ADAPTING = 14  # for how many observations longer the past holds both what was normal and what was accepted as normal
COUNTERS = 15

# Columns of a signal's levels.
HIGHEST = 0  # the largest evidence in the current block
TIGHTENED = 1  # the logarithm of the factor on the tolerated rate
FURTHEST = 2  # how far stretches were from earlier ones before the incident; negative if not computed yet
HIGHEST_LEARNED = 3  # the cap on the block's evidence: that of a certain incident is not normal
PEAK_LEVEL = 4  # how far from the usual level the signal has been in the incident, with its sign
LEVELS = 5

# An incident goes further than before if the level is this many times as far from the usual one. A fault that grows is
# not accepted as normal.
GROWS = 1.125
# A signal is not back to normal if its level is still more than this share of the way to where it was furthest from the
# usual one.
BACK = 1.0 / 3.0
# A level, or movement, with a p-value below this is not back to normal.
UNUSUAL = 0.05

# The smallest rate that is told of evidence: it orders incidents, however far beyond all blocks.
SMALLEST_RATE = 1e-300
# Keeps the rate finite if every block had as much evidence.
ALMOST_ALL = 1.0 - 1e-9


class Recall(NamedTuple):
    """What signals were like before an incident; arrays without signals if no past is kept."""

    archive: Archive
    counts: Array  # how many observations there were in all
    block: int  # how many observations a value is the mean of
    length: int  # how many of the newest observations are compared with the past
    # The largest distance between stretches of the past is learned from `samples` stretches. Each is compared with
    # stretches at least `apart` observations away.
    samples: int
    apart: int


@_inner
def _span(recall: Recall, signal: int, ago: int, before: int) -> tuple[int, int, int]:
    """Where stretches begin: the first and last of those `before` observations ago and longer, and the newest one.

    `ago` counts the observations since the one judged. How far one can look back does not depend on it.
    """
    archive, block = recall.archive, recall.block
    seen = recall.counts[signal]
    complete = (seen - ago) // block
    end = archive.ends[signal] - (seen // block - complete)
    there = min(complete, archive.kept - MOST_AT_ONCE // block - 1)
    length = recall.length // block
    # What is usable is the same for all observations that are judged together.
    last = min(end - (before + block - 1) // block, ends(signal, archive)) - length
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
    return furthest_apart(recall.archive.past[signal], first, last, length, apart, recall.samples) * (1.0 + 1e-6)


@_inner
def unlike(recall: Recall, signal: int, ago: int, before: int, furthest: float) -> bool:
    """Whether the newest stretch is further than that from all those that ended more than `before` observations ago."""
    first, last, newest = _span(recall, signal, ago, before)
    if not furthest < np.inf or last < first:
        return False
    past = recall.archive.past[signal]
    near, _ = nearest(past[:, newest : newest + recall.length // recall.block], past, first, last, furthest)
    return furthest < near < np.inf


class Rules(NamedTuple):
    """How alarms are decided."""

    min_calibration: int
    window: int  # how many scores the newest is compared with
    by_p: bool
    rate: float
    block: int
    gap: int
    accept_after: int
    early: bool
    longest: int
    returned: int  # this many of the newest observations are compared with the past to see whether an incident is over
    constants: Constants


class SignalMemory(NamedTuple):
    """What is kept of each signal besides its streams."""

    counters: Array
    levels: Array
    blocks: Array
    thresholds: Array  # of the closed loop that holds p
    middles: Array  # (signals, scores), the middle of the range that each score has in a reference
    reach: Array  # (signals, scores), how far from it is unlike the reference; infinite where it is not compared


@_inner
def _rate(reached: int, blocks: int, length: int) -> float:
    """The rate of incidents per observation, if this many of the past blocks had one.

    It is the rate of the Poisson process that leaves as many blocks without one.
    """
    return float(-np.log1p(-min((1.0 + reached) / (1.0 + blocks), ALMOST_ALL)) / length)


@_exact
def tolerated(rate: float, tightened: float, block: int) -> float:
    """The threshold on the rate of incidents below which evidence alarms.

    Evidence that half of the blocks reach never alarms. If blocks are as long as the tolerated time between two
    incidents, everything would alarm, and an incident would never end.
    """
    return float(min(rate * np.exp(tightened), 0.5 / block))


@_exact
def evidence_tail(values: Array, constants: Constants) -> tuple[float, float, float]:
    """Where the tail of evidence begins, how many values are beyond, and its decay, shrunk to that of a prior."""
    begins, count, beyond = fit_tail(values, np.ones(values.shape[0]), constants.tail * np.sqrt(values.shape[0]))
    return begins, count, (count * beyond + constants.prior * constants.prior_decay) / (count + constants.prior)


@_exact
def known_blocks(signal: int, memory: SignalMemory) -> Array:
    """The highest evidence of past blocks; at first, of those that stand in for them, see `usual_maxima`."""
    blocks: Array = memory.blocks[signal]
    return blocks[: min(max(memory.counters[signal, BLOCKS], np.int64(STAND_IN)), blocks.shape[0])]


def usual_maxima(block: int, blocks: int, constants: Constants) -> Array:
    """The highest evidence of blocks as it usually is; a signal's own take their place one by one.

    Evidence is made of ranks, so that it is distributed nearly alike on all signals: maxima follow Gumbel's law.
    """
    number = min(STAND_IN, blocks)
    often = -np.log((np.arange(number) + 1.0) / (number + 1.0))
    return np.asarray(constants.prior_level + constants.prior_decay * (np.log(block) - np.log(often)))


@_exact
def least_evidence(maxima: Array, tolerated_rate: float, rules: Rules) -> float:
    """The evidence threshold for alarms at this tolerated rate of incidents; infinite if nothing alarms."""
    blocks = maxima.shape[0]
    allowed = (
        int(np.ceil(-np.expm1(-tolerated_rate * rules.block) * (1 + blocks))) - 1
    )  # the number of blocks that may reach it
    if allowed >= 1:
        return float(np.sort(maxima)[::-1][min(allowed, blocks) - 1])
    if not rules.early:
        return np.inf
    begins, count, decay = evidence_tail(maxima, rules.constants)
    often = _rate(int(count), blocks, rules.block)
    trust = count + rules.constants.prior
    return float(max(begins + decay * trust * np.expm1(np.log(often / tolerated_rate) / trust), np.max(maxima)))


@_inner
def _rarity(evidence: float, reached: int, maxima: Array, rules: Rules) -> float:
    """The rate of evidence that this many of the past blocks reached; estimated if none did."""
    rate = _rate(reached, maxima.shape[0], rules.block)
    if reached > 0 or not rules.early:
        return rate
    begins, count, decay = evidence_tail(maxima, rules.constants)
    often = _rate(int(count), maxima.shape[0], rules.block)
    # What is not known about the decay makes far evidence less rare: a power law that begins as the exponential one.
    trust = count + rules.constants.prior
    rarer = np.exp(-trust * np.log1p((evidence - begins) / (decay * trust)))
    return float(min(max(often * rarer, SMALLEST_RATE), rate))


@_inner
def decide(
    signal: int, evidence: float, rules: Rules, memory: SignalMemory, p: float, calibrated: bool
) -> tuple[float, bool, bool]:
    """The rate of such evidence, in incidents per observation; whether it alarms; and whether the rate is estimated.

    Evidence is ranked among the highest evidence of past blocks. A block does not end while an incident is open: a
    fault is one block, however long it lasts.
    """
    counters, levels = memory.counters[signal], memory.levels[signal]
    maxima = known_blocks(signal, memory)
    blocks = maxima.shape[0]
    certainty, tightening = rules.constants.certainty, rules.constants.tightening
    reached, certain = 0, 0
    for i in range(blocks):
        reached += 1 if maxima[i] >= evidence else 0
        certain += 1 if maxima[i] >= evidence - certainty else 0
    rate, least = _rarity(evidence, reached, maxima, rules), _rate(0, blocks, rules.block) / EXTRAPOLATION
    # At first everything is learned: nobody knows yet what comes again.
    known = 2 * counters[BLOCKS] >= STAND_IN
    if known and max(_rarity(evidence - certainty, certain, maxima, rules), least) < rules.rate:
        counters[CERTAIN] = 1
    if rules.by_p:
        return (rate if calibrated else np.nan), calibrated and p < rules.rate, False
    own = counters[BLOCKS] * rules.block * rules.rate >= 1.0 and counters[BLOCKS] >= min(STAND_IN, blocks)
    if not own and not rules.early:
        return np.nan, False, False
    levels[TIGHTENED] = min(levels[TIGHTENED] + tightening * rules.rate, 4.0 * tightening)
    return rate, max(rate, least) < tolerated(rules.rate, levels[TIGHTENED], rules.block), not own


@_inner
def advance_incident(
    signal: int, alarm: bool, goes_on: bool, evidence: float, level: float, rules: Rules, memory: SignalMemory
) -> int:
    """Open or close the incident of a signal, and end its block; returns its state.

    `level` is how far the newest observations are from the usual level.
    """
    counters, levels = memory.counters[signal], memory.levels[signal]
    state = ONGOING if goes_on else MAY_END
    if alarm and counters[OPEN] == 0:
        levels[TIGHTENED] -= rules.constants.tightening
        counters[OPEN], counters[LASTED], counters[SETTLED] = 1, 0, 0
    if state == ONGOING:
        counters[SINCE] = 0
    elif counters[OPEN] == 1:
        counters[SINCE] += 1
        patience = rules.gap
        if levels[FURTHEST] >= 0.0 and counters[SETTLED] <= rules.accept_after:
            patience = max(patience, 2 * rules.returned)
        if counters[SINCE] > patience:
            counters[OPEN] = 0
            # Not counted is the time in which nothing was unusual any more: a repaired fault is not the new normal.
            accepted = counters[SETTLED] - counters[SINCE] >= rules.accept_after and counters[FROZEN] == 0
            # Nobody can tell whether a signal is back if it was never clearly away, if its level still is, or if what
            # was just accepted as normal is usual beside what was usual before. With a reference, it always shows.
            peak = levels[PEAK_LEVEL]
            still_away = level * peak > BACK * peak * peak > 0.0
            back = counters[CERTAIN] == 1 and counters[ADAPTING] == 0 and not still_away
            state = ACCEPTED if accepted else RETURNED if back or counters[FROZEN] == 1 else SUBSIDED
            state = SILENT if np.isnan(evidence) else state
            if accepted:
                counters[ADAPTING] = rules.window
            if counters[CERTAIN] == 1 and not rules.by_p:
                # It counts as an incident, but does not make the next one like it less anomalous: faults would raise
                # the threshold until the detector is deaf.
                levels[HIGHEST_LEARNED] = least_evidence(known_blocks(signal, memory), rules.rate, rules)
            if counters[UNLIKE] == 1 and state in (RETURNED, SUBSIDED):
                # The forecasts for such a stretch look back too.
                counters[COOLDOWN] = max(2 * rules.longest - counters[SINCE], 0)
    else:
        state = NORMAL
    if counters[OPEN] == 0:
        counters[CALM] = counters[CALM] + 1 if state == NORMAL else 0
        counters[CERTAIN] = counters[UNLIKE] = 0
        levels[FURTHEST], levels[PEAK_LEVEL] = -1.0, 0.0
    counters[ADAPTING] = max(counters[ADAPTING] - 1, 0)
    counters[LASTED] += counters[OPEN]
    counters[SETTLED] += counters[OPEN]
    if np.isnan(evidence):
        return state
    levels[HIGHEST] = max(levels[HIGHEST], evidence)
    counters[IN_BLOCK] += 1
    if counters[IN_BLOCK] >= rules.block and counters[OPEN] == 0:
        memory.blocks[signal, counters[BLOCKS] % memory.blocks.shape[1]] = min(levels[HIGHEST], levels[HIGHEST_LEARNED])
        counters[BLOCKS] += 1
        counters[IN_BLOCK] = 0
        levels[HIGHEST], levels[HIGHEST_LEARNED] = -np.inf, np.inf
    return state


@_inner
def stays_open(
    signal: int, ago: int, alarm: bool, stretch: int, unusual: bool, away: float, feature: int, rules: Rules,
    memory: SignalMemory, recall: Recall,
) -> bool:  # fmt: skip
    """Whether the incident continues: by an alarm, by an unusual level, or because the signal is unlike its past.

    `stretch` is how many observations the alarm is about. `unusual` says whether the level or the movement is, and
    `away` how far an unusual level is from the usual one, in `feature`. Only these hold an incident open that is not
    certain.
    """
    counters, levels = memory.counters[signal], memory.levels[signal]
    if recall.counts.shape[0] == 0 or counters[OPEN] == 0 or counters[FROZEN] == 1:
        return alarm  # a signal with a reference alarms for as long as it is unlike it
    if counters[CERTAIN] == 0:
        return alarm or unusual
    # A gradual fault began before its first alarm.
    before = counters[LASTED] + counters[REACH]
    if levels[FURTHEST] < 0.0:
        levels[FURTHEST] = learn_furthest(recall, signal, ago, before)
    if counters[SETTLED] > rules.accept_after:
        return alarm
    if abs(away) > GROWS * abs(levels[PEAK_LEVEL]):
        levels[PEAK_LEVEL], counters[PEAK_FEATURE], counters[SETTLED] = away, feature, 0
    if unusual or unlike(recall, signal, ago, before, levels[FURTHEST]):
        counters[UNLIKE] = 1
        return True
    # Once a signal is as before, an alarm about a longer stretch is about the past.
    return alarm and (rules.by_p or stretch <= rules.returned or counters[UNLIKE] == 0)

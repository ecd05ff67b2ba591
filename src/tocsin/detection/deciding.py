"""The compiled rules of incidents: when evidence alarms, how long an incident lasts, and why it ends."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.detection.alarm_rate import LEAST_BLOCKS, TIGHTENING
from tocsin.detection.holding import LENGTH, Recall, learn_furthest, unlike
from tocsin.detection.verdict import ACCEPTED, FADES, LASTS, NORMAL, RETURNED, SILENT

Array = NDArray[Any]

_inner = inner()
_exact = compiled(with_files=("detection/alarm_rate.py",))

# Columns of a signal's counters.
SCORED = 0  # observations that had a score
OPEN = 1  # whether an incident is open
SINCE = 2  # observations since the last alarm
LASTED = 3  # observations since the incident opened
BLOCKS = 4  # blocks that are over
IN_BLOCK = 5  # observations in the one that is not
CERTAIN = 6  # whether the incident is far beyond all that came before
FROZEN = 7  # whether a reference was learned, and nothing else is to be
UNLIKE = 8  # whether the signal was ever unlike its past in the incident
RESTS = 9  # for how many observations longer stretches are no evidence: they reach back into what is over
SUDDEN_AGO = 10  # observations since the last sudden change
COUNTERS = 11

# Columns of a signal's levels.
HIGHEST = 0  # the largest evidence in the block that is not over
TIGHTENED = 1  # the logarithm of what the tolerated rate is multiplied by
FURTHEST = 2  # how far stretches were from earlier ones before the incident; negative where that was not asked yet
COMPARED = 3  # which of the scores is compared with a reference; negative where none is
BEYOND = 4  # from where on that is unlike the reference
HIGHEST_LEARNED = 5  # as how much evidence the block counts at most: that of a certain incident is not normal
LEVELS = 6

# An incident with so many nats more evidence than it takes to alarm is no chance. Only from such a one nothing is
# learned: to leave out what a signal does by chance would make all the rest look strange.
CERTAINTY = 3.0
# It counts among the past as one with so many nats more than enough, so that the next fault is as rare as the first. As
# just enough, normal signals would have a tenth more incidents than promised.
COUNTS_BEYOND = CERTAINTY / 2
# An observation with so many nats by itself is a sudden change. After one, a signal that is as before has returned;
# without one it may only look so, as a shifted season does now and then: it has to look so this many times as long.
SUDDEN = 7.0
DOUBTED = 4
# A stretch that is so many times as far from a reference as any part of the reference from the rest is unlike it.
BEYOND_REFERENCE = 1.2
# No signal is given more than this times the promised rate, however quiet it was.
LOOSEST = 0.4054651081081644  # log 1.5
# Nor does anything alarm that this share of blocks reaches: where blocks are as long as the time between two incidents
# that are tolerated, everything would, and an incident would never end.
MOST_REACHED = 0.5
# The rate is finite where every block had as much evidence.
ALMOST_ALL = 1.0 - 1e-9
# What is rarer than all blocks is estimated from so many times the root of their number of the highest, by an
# exponential tail whose decay is held back as by so many more blocks that decay by so many nats.
HIGHEST_BLOCKS = 1.5
PRIOR_BLOCKS = 10.0
PRIOR_DECAY = 1.3


class Rules(NamedTuple):
    """How alarms are decided."""

    settled: int
    believed: int
    by_p: bool
    rate: float
    block: int
    gap: int
    accept_after: int
    early: bool
    extrapolation: float
    merge_features: int
    together_alone: float
    longest: int


class SignalMemory(NamedTuple):
    """What is kept of each signal beside its streams."""

    counters: Array
    levels: Array
    blocks: Array


@_inner
def _rate(reached: int, blocks: int, length: int) -> float:
    """How often an incident comes, an observation, if so many of the past blocks had one.

    It is the rate of a Poisson process that leaves as many blocks without.
    """
    return float(-np.log1p(-min((1.0 + reached) / (1.0 + blocks), ALMOST_ALL)) / length)


@_exact
def tolerated(rate: float, tightened: float, block: int) -> float:
    """The rate of incidents below which evidence alarms."""
    return float(min(rate * np.exp(tightened), MOST_REACHED / block))


@_exact
def tail(maxima: Array, length: int) -> tuple[float, float, float]:
    """Where the tail of the highest evidence of blocks begins, how often that is reached, and by how much it decays."""
    highest = np.sort(maxima)[::-1]
    count = min(int(np.ceil(HIGHEST_BLOCKS * np.sqrt(maxima.shape[0]))), maxima.shape[0] - 1)
    begins = highest[count]
    decay = (np.sum(highest[:count] - begins) + PRIOR_BLOCKS * PRIOR_DECAY) / (count + PRIOR_BLOCKS)
    return begins, _rate(count, maxima.shape[0], length), decay


@_exact
def least_evidence(maxima: Array, tolerated_rate: float, block: int, early: bool) -> float:
    """The least evidence that alarms where incidents are tolerated at this rate; infinite where none does."""
    blocks = maxima.shape[0]
    allowed = int(np.ceil(-np.expm1(-tolerated_rate * block) * (1 + blocks))) - 1  # so many blocks may reach it
    if allowed >= 1:
        return float(np.sort(maxima)[::-1][min(allowed, blocks) - 1])
    if not early or blocks < LEAST_BLOCKS:
        return np.inf
    begins, often, decay = tail(maxima, block)
    return float(max(begins + decay * np.log(often / tolerated_rate), np.max(maxima)))


@_inner
def _rarity(evidence: float, reached: int, maxima: Array, rules: Rules) -> float:
    """How often evidence comes that so many of the past blocks reached; estimated where none did."""
    rate = _rate(reached, maxima.shape[0], rules.block)
    if reached > 0 or not rules.early or maxima.shape[0] < LEAST_BLOCKS:
        return rate
    begins, often, decay = tail(maxima, rules.block)
    return float(min(max(often * np.exp(-(evidence - begins) / decay), rate / rules.extrapolation), rate))


@_inner
def decide(
    signal: int, evidence: float, rules: Rules, memory: SignalMemory, p: float, believed: bool
) -> tuple[float, bool, bool]:
    """How often such evidence comes, in incidents an observation; whether it alarms; and whether that is estimated.

    Evidence is ranked among the highest of past blocks of observations. A block does not end while an incident is open:
    a fault is one block, however long it lasts.
    """
    counters, levels = memory.counters[signal], memory.levels[signal]
    blocks = min(counters[BLOCKS], memory.blocks.shape[1])
    maxima = memory.blocks[signal, :blocks]
    reached, certain = 0, 0
    for i in range(blocks):
        reached += 1 if maxima[i] >= evidence else 0
        certain += 1 if maxima[i] >= evidence - CERTAINTY else 0
    rate = _rarity(evidence, reached, maxima, rules)
    if _rarity(evidence - CERTAINTY, certain, maxima, rules) < rules.rate:
        counters[CERTAIN] = 1
    if rules.by_p:
        return rate, believed and p < rules.rate, False
    own = blocks * rules.block * rules.rate >= 1.0
    if not own and (not rules.early or blocks < LEAST_BLOCKS):
        return np.nan, False, False
    levels[TIGHTENED] = min(levels[TIGHTENED] + TIGHTENING * rules.rate, LOOSEST)
    return rate, rate < tolerated(rules.rate, levels[TIGHTENED], rules.block), not own


@_inner
def follow(signal: int, alarm: bool, goes_on: bool, evidence: float, rules: Rules, memory: SignalMemory) -> int:
    """Open or close the incident of a signal, and end its block; returns the state it is in."""
    counters, levels = memory.counters[signal], memory.levels[signal]
    state = LASTS if goes_on else FADES
    if alarm and counters[OPEN] == 0:
        levels[TIGHTENED] -= TIGHTENING
        counters[OPEN], counters[LASTED] = 1, 0
    if state == LASTS:
        counters[SINCE] = 0
    elif counters[OPEN] == 1:
        counters[SINCE] += 1
        patience = rules.gap
        if levels[FURTHEST] >= 0.0 and counters[LASTED] <= rules.accept_after:
            seen_to_change = counters[SUDDEN_AGO] <= counters[SINCE] + 2 * LENGTH or counters[UNLIKE] == 0
            patience = max(patience, LENGTH if seen_to_change else DOUBTED * LENGTH)
        if counters[SINCE] > patience:
            counters[OPEN] = 0
            accepted = counters[LASTED] > rules.accept_after and counters[FROZEN] == 0
            state = ACCEPTED if accepted else RETURNED
            state = SILENT if np.isnan(evidence) else state
            if counters[CERTAIN] == 1 and not rules.by_p:
                # Such an incident counts as one, but the next one like it is no less strange for it.
                blocks = min(counters[BLOCKS], memory.blocks.shape[1])
                maxima = memory.blocks[signal, :blocks]
                enough = least_evidence(maxima, rules.rate, rules.block, rules.early)
                levels[HIGHEST_LEARNED] = enough + COUNTS_BEYOND
            if counters[UNLIKE] == 1 and state == RETURNED:
                # The forecasts that such a stretch is compared with look back too.
                counters[RESTS] = max(2 * rules.longest - counters[SINCE], 0)
    else:
        state = NORMAL
    if counters[OPEN] == 0:
        counters[CERTAIN] = counters[UNLIKE] = 0
        levels[FURTHEST] = -1.0
    counters[LASTED] += counters[OPEN]
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
def lasts(signal: int, ago: int, alarm: bool, stretch: int, rules: Rules, memory: SignalMemory, recall: Recall) -> bool:
    """Whether the incident goes on: by an alarm, or because the signal is unlike what it was before.

    `stretch` is how many observations the alarm is about. Only an incident that is certain is held open.
    """
    counters, levels = memory.counters[signal], memory.levels[signal]
    if recall.past.shape[0] == 0 or counters[OPEN] == 0 or counters[CERTAIN] == 0 or counters[FROZEN] == 1:
        return alarm  # what is compared with a reference alarms for as long as it is unlike that
    # A fault that sets in slowly began before its first alarm.
    before = counters[LASTED] + rules.longest
    if levels[FURTHEST] < 0.0:
        levels[FURTHEST] = learn_furthest(recall, signal, ago, before)
    if counters[LASTED] > rules.accept_after:
        return alarm
    if unlike(recall, signal, ago, before, levels[FURTHEST]):
        counters[UNLIKE] = 1
        return True
    # Of a signal that is as before again, an alarm about a longer stretch tells what has been.
    return alarm and (rules.by_p or stretch <= LENGTH or counters[UNLIKE] == 0)

"""The compiled inner loops between the views and the verdicts.

An observation is ranked, merged and judged, and what it does not spoil learns from it, before the next one: whether a
score is learned depends on whether it belongs to an incident.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.conformal.kernels import (
    HEAD,
    LEARNED,
    SEEN,
    TAIL_TRUST,
    conformal_p,
    excess,
    learn_score,
    push,
    surprise,
)
from tocsin.detection.alarm_rate import EXTRAPOLATED, LEAST_BLOCKS, LEAST_LEARNED, TIGHTENING
from tocsin.detection.holding import LENGTH, Recall, learn_furthest, unlike
from tocsin.detection.verdict import ACCEPTED, FADES, LASTS, NORMAL, RETURNED, SILENT
from tocsin.detection.views.view import GEOMETRIC, HARMONIC, MEDIAN

Array = NDArray[Any]

_inner = inner()
_exact = compiled(
    with_files=(
        "conformal/kernels.py", "detection/alarm_rate.py", "detection/holding.py", "detection/spread.py",
        "detection/views/view.py",
    )
)  # fmt: skip

# How features are merged, by the codes of the names in `settings.py`.
MERGE_HARMONIC, MERGE_MEAN = 0, 1

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
STILL = 10  # observations since a single one was strange by itself
COUNTERS = 11

# Columns of a signal's levels.
HIGHEST = 0  # the largest evidence in the block that is not over
TIGHTENED = 1  # the logarithm of what the tolerated rate is multiplied by
FURTHEST = 2  # how far stretches were from earlier ones before the incident; negative where that was not asked yet
COMPARED = 3  # which of the scores is compared with a reference; negative where none is
BEYOND = 4  # from where on that is unlike the reference
LEVELS = 5

# How many more past scores a stream needs before it is heard, where neighbouring scores look at the same observations.
LEARNED_PER_LENGTH = 4
# The same for what the tail is fitted to: so many scores for a stretch of one observation, and more for longer ones.
TAIL_WEIGHT = 60.0
TAIL_PER_LENGTH = 7.5
# An incident with so many nats more evidence than it takes to alarm is no chance. Only from such a one nothing is
# learned: to leave out what a signal does by chance would make all the rest look strange.
CERTAINTY = 3.0
# An observation with so many nats by itself is a sudden change. After one, a signal that is as before has returned;
# without one it may only look so, as a shifted season does now and then: it has to look so this many times as long.
SUDDEN = 7.0
DOUBTED = 4
# A stretch that is so many times as far from a reference as any part of the reference from the rest is unlike it.
BEYOND_REFERENCE = 1.2
# No signal is given more than this times the promised rate, however quiet it was.
LOOSEST = 0.4054651081081644  # log 1.5
# The rate is finite where every block had as much evidence.
ALMOST_ALL = 1.0 - 1e-9
# What is rarer than all blocks is estimated from so many times the root of their number of the highest, by an
# exponential tail whose decay is held back as by so many more blocks that decay by so many nats.
HIGHEST_BLOCKS = 1.5
PRIOR_BLOCKS = 10.0
PRIOR_DECAY = 1.3
# Nor does anything alarm that this share of blocks reaches: where blocks are as long as the time between two incidents
# that are tolerated, everything would, and an incident would never end.
MOST_REACHED = 0.5

# Columns of an audit's counts.
OBSERVATIONS, ALARMS, BLOCK_OBSERVATIONS, BLOCK_ALARMS, AUDIT_BLOCKS, SUM, SQUARES = 0, 1, 2, 3, 4, 5, 6


class Columns(NamedTuple):
    """Of each score of an observation: which view and feature it belongs to, where it is kept, how it is ranked."""

    of_view: Array
    feature: Array
    stream: Array
    weight: Array
    length: Array
    folded: Array  # whether its size is what counts, and its sign only tells the side
    place: Array  # among the learned streams of a signal, or among those in windows


class Weights(NamedTuple):
    """Of each view: how its streams are merged, what it counts with others and by itself, and its shortest stretch."""

    merge: Array
    together: Array
    alone: Array
    shortest: Array


class Learned(NamedTuple):
    """The streams whose weights over the past are learned; see `W1ACAS`."""

    history: Array
    counters: Array
    weights: Array
    totals: Array
    moments: Array
    batches: Array
    critical: int
    stride: int
    learning_rate: float
    adam: bool
    extend: bool


class Window(NamedTuple):
    """Streams of equal weights; see `SlidingWindow`."""

    history: Array
    counters: Array
    weights: Array
    cumulative: Array


class Pending(NamedTuple):
    """Scores that wait until none of their observations is among those of the newest score."""

    scores: Array  # (streams, longest)
    counts: Array


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
    merge_features: int
    together_alone: float
    longest: int


class Memory(NamedTuple):
    """What is kept of each signal beside its streams."""

    counters: Array
    levels: Array
    blocks: Array


# Where the results of an observation go. Few arrays with many columns: to hand one over takes as long as to score.
P, SURPRISE, RATE, SCORE, EVIDENCE, NUMBERS = 0, 1, 2, 3, 4, 5  # then p of each feature, then the surprise of each view
ALARM, WARM, OPENED, ESTIMATED, STATE, CAUSE, MARKS = (
    0,
    1,
    2,
    3,
    4,
    5,
    8,
)  # the cause: view, stream and feature that say most


@_exact
def align(carried: Array, rows: Array, issued: Array, predicted: Array) -> None:
    """Write what had been forecast for each of T observations to `predicted[T, N, H]`, and carry the newest on.

    `issued[t, n]` was issued after observation t; `carried[series, i]` was issued H - i observations before the first.
    """
    horizons = carried.shape[1]
    steps = issued.shape[0]
    for n in range(rows.shape[0]):
        series = rows[n]
        for t in range(steps):
            for ahead in range(horizons):
                at = t - 1 - ahead
                predicted[t, n, ahead] = issued[at, n, ahead] if at >= 0 else carried[series, horizons + at, ahead]
        for i in range(horizons):
            at = steps - horizons + i
            for ahead in range(horizons):
                carried[series, i, ahead] = issued[at, n, ahead] if at >= 0 else carried[series, horizons + at, ahead]


@_exact
def mark_ready(
    values: Array, rows: Array, seen: Array, settles: int, recovers: int, longest: int, gaps: Array, rests: Array,
    ready: Array,
) -> None:  # fmt: skip
    """Where the forecaster can be judged, `[T, N, F]`: once it has settled, and `recovers` observations after a gap.

    `gaps[S, F]` counts what is missing in a row, `rests[S, F]` what is left to rest after more than `longest`.
    """
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            for f in range(values.shape[2]):
                resting = rests[signal, f] > 0
                if np.isnan(values[t, n, f]):
                    gaps[signal, f] += 1
                    if gaps[signal, f] > longest:
                        rests[signal, f] = recovers
                else:
                    gaps[signal, f] = 0
                    rests[signal, f] -= 1 if resting else 0
                ready[t, n, f] = seen[signal] + t >= settles and not resting


@_inner
def _log_mean_exp(values: Array, weights: Array, count: int) -> float:
    """The logarithm of the weighted mean of exp(values): minus the log of a weighted harmonic mean of exp(-values)."""
    largest = -np.inf
    for i in range(count):
        largest = max(largest, values[i])
    total, weight = 0.0, 0.0
    for i in range(count):
        total += weights[i] * np.exp(values[i] - largest)
        weight += weights[i]
    return largest + float(np.log(total / weight))


@_inner
def _mean(values: Array, weights: Array, count: int) -> float:
    total, weight = 0.0, 0.0
    for i in range(count):
        total += weights[i] * values[i]
        weight += weights[i]
    return total / weight


@_inner
def _median(values: Array, count: int) -> float:
    ordered = np.sort(values[:count])
    return float(0.5 * ordered[(count - 1) // 2] + 0.5 * ordered[count // 2])


@_inner
def _merged(values: Array, weights: Array, count: int, merge: int) -> float:
    """One surprise from those of the streams of a view; NaN where there are none."""
    if count == 0:
        return np.nan
    if count == 1:
        return float(values[0])
    if merge == MEDIAN:
        return _median(values, count)
    return _mean(values, weights, count) if merge == GEOMETRIC else _log_mean_exp(values, weights, count)


@_inner
def _size(score: float, folded: bool) -> float:
    """What is ranked of a score, in the precision in which it is kept."""
    kept = np.float64(np.float32(score))
    return abs(kept) if folded else kept


@_inner
def _compare_learned(k: int, score: float, learned: Learned) -> tuple[float, float, int]:
    """p-value and surprise of a score in its stream, and how many past scores that rests on."""
    row, count = learned.history[k], learned.counters[k]
    lags = min(count[LEARNED], learned.weights.shape[1])
    past, weight = row[count[HEAD] : count[HEAD] + lags], learned.weights[k, :lags]
    p = conformal_p(past, weight, learned.totals[k], score)
    return p, surprise(p, past, weight, learned.totals[k], score, TAIL_WEIGHT), count[LEARNED]


@_inner
def _compare(k: int, score: float, length: int, window: Window) -> tuple[float, float, int]:
    row, count = window.history[k], window.counters[k]
    lags = min(count[LEARNED], window.weights.shape[0])
    past, weight = row[count[HEAD] : count[HEAD] + lags], window.weights[:lags]
    p = conformal_p(past, weight, window.cumulative[lags], score)
    tail = TAIL_WEIGHT + TAIL_PER_LENGTH * length
    return p, surprise(p, past, weight, window.cumulative[lags], score, tail), count[LEARNED]


@_inner
def _remember(k: int, score: float, window: Window) -> None:
    push(window.history[k], window.counters[k], window.weights.shape[0], score)
    window.counters[k, LEARNED] += 1
    window.counters[k, SEEN] += 1


@_inner
def _wait(k: int, score: float, length: int, window: Window, pending: Pending) -> None:
    """Let a score wait, and its stream remember the one that has waited long enough."""
    slot = pending.counts[k] % length
    if pending.counts[k] >= length:
        _remember(k, pending.scores[k, slot], window)
    pending.scores[k, slot] = score
    pending.counts[k] += 1


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


@_inner
def _rarity(evidence: float, reached: int, maxima: Array, rules: Rules) -> float:
    """How often evidence comes that so many of the past blocks reached; estimated where none did."""
    rate = _rate(reached, maxima.shape[0], rules.block)
    if reached > 0 or not rules.early or maxima.shape[0] < LEAST_BLOCKS:
        return rate
    begins, often, decay = tail(maxima, rules.block)
    return float(min(max(often * np.exp(-(evidence - begins) / decay), rate / EXTRAPOLATED), rate))


@_inner
def _decide(
    signal: int, evidence: float, rules: Rules, memory: Memory, p: float, believed: bool
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
def _follow(signal: int, alarm: bool, lasts: bool, evidence: float, rules: Rules, memory: Memory) -> int:
    """Open or close the incident of a signal, and end its block; returns the state it is in."""
    counters, levels = memory.counters[signal], memory.levels[signal]
    state = LASTS if lasts else FADES
    if alarm and counters[OPEN] == 0:
        levels[TIGHTENED] -= TIGHTENING
        counters[OPEN], counters[LASTED] = 1, 0
    if state == LASTS:
        counters[SINCE] = 0
    elif counters[OPEN] == 1:
        counters[SINCE] += 1
        patience = rules.gap
        if levels[FURTHEST] >= 0.0 and counters[LASTED] <= rules.accept_after:
            seen_to_change = counters[STILL] <= counters[SINCE] + 2 * LENGTH or counters[UNLIKE] == 0
            patience = max(patience, LENGTH if seen_to_change else DOUBTED * LENGTH)
        if counters[SINCE] > patience:
            counters[OPEN] = 0
            accepted = counters[LASTED] > rules.accept_after and counters[FROZEN] == 0
            state = ACCEPTED if accepted else RETURNED
            state = SILENT if np.isnan(evidence) else state
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
        memory.blocks[signal, counters[BLOCKS] % memory.blocks.shape[1]] = levels[HIGHEST]
        counters[BLOCKS] += 1
        counters[IN_BLOCK] = 0
        levels[HIGHEST] = -np.inf
    return state


@_inner
def _lasts(signal: int, ago: int, alarm: bool, stretch: int, rules: Rules, memory: Memory, recall: Recall) -> bool:
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


@_exact
def judge(
    scores: Array, rows: Array, first: int, last: int, columns: Columns, weights: Weights, rules: Rules,
    learned: Learned, gradient: Array, scratch: Array, window: Window, pending: Pending, together: Window,
    waiting: Pending, final: Window, memory: Memory, recall: Recall, features: int, numbers: Array, marks: Array,
) -> None:  # fmt: skip
    """Rank, merge and judge the scores `[T, N, columns]` of the signals `rows[first:last]`, and learn from them."""
    steps, width = scores.shape[0], scores.shape[2]
    views = weights.merge.shape[0]
    learned_width = learned.history.shape[0] // memory.counters.shape[0]
    window_width = window.history.shape[0] // memory.counters.shape[0]
    p, surprises = np.empty(width), np.empty(width)
    some, weight = np.empty(width), np.empty(width)
    by_feature, ones = np.empty(features), np.ones(features)
    by_view, channel, share = np.empty(views), np.empty(views + 1), np.empty(views + 1)
    smallest = np.empty(features)
    for n in range(first, last):
        signal = rows[n]
        counters = memory.counters[signal]
        for t in range(steps):
            number, mark = numbers[t, n], marks[t, n]
            rests = counters[RESTS] > 0
            counters[RESTS] -= 1 if rests else 0
            # Each score in its own stream.
            least, there, sudden = np.inf, 0, False
            smallest[:] = np.inf
            present = np.zeros(features, dtype=np.int64)
            for c in range(width):
                score = _size(scores[t, n, c], columns.folded[c])
                p[c], surprises[c] = np.nan, np.nan
                if np.isnan(score):
                    continue
                if columns.length[c] == 1:
                    k = signal * learned_width + columns.place[c]
                    p[c], surprises[c], known = _compare_learned(k, score, learned)
                    sudden = sudden or surprises[c] > SUDDEN
                else:
                    k = signal * window_width + columns.place[c]
                    p[c], surprises[c], known = _compare(k, score, columns.length[c], window)
                there += 1
                least = min(least, p[c])
                feature = columns.feature[c]
                if feature >= 0:
                    present[feature] += 1
                    smallest[feature] = min(smallest[feature], p[c])
                if known < LEAST_LEARNED + LEARNED_PER_LENGTH * (columns.length[c] - 1):
                    surprises[c] = np.nan
            for f in range(features):
                number[NUMBERS + f] = min(1.0, present[f] * smallest[f]) if present[f] > 0 else np.nan
            counters[STILL] = 0 if sudden else counters[STILL] + 1
            # One surprise for each view, from its features.
            for v in range(views):
                heard = 0
                for f in range(-1, features):
                    count = 0
                    for c in range(width):
                        if columns.of_view[c] == v and columns.feature[c] == f and not np.isnan(surprises[c]):
                            some[count], weight[count] = surprises[c], columns.weight[c]
                            count += 1
                    one = _merged(some, weight, count, weights.merge[v])
                    if not np.isnan(one):
                        by_feature[heard] = one
                        heard += 1
                merge = HARMONIC if rules.merge_features == MERGE_HARMONIC else GEOMETRIC
                by_view[v] = _merged(by_feature, ones, heard, merge)
                number[NUMBERS + features + v] = by_view[v]
            # All views together, and the evidence of each by itself.
            count, merged, evidence = 0, np.nan, np.nan
            for v in range(views):
                if not np.isnan(by_view[v]) and weights.together[v] > 0.0:
                    some[count], weight[count] = by_view[v], weights.together[v]
                    count += 1
            if count > 0:
                merged = np.float64(np.float32(_mean(some, weight, count)))
                counters[SCORED] += 1
            settled = count > 0 and counters[SCORED] > rules.settled
            if settled:
                count = 0
                for v in range(views):
                    heard_of = not rests or weights.shortest[v] <= LENGTH
                    if not np.isnan(by_view[v]) and weights.alone[v] > 0.0 and heard_of:
                        channel[count], share[count] = by_view[v], weights.alone[v]
                        count += 1
                if rules.together_alone > 0.0 and not rests:
                    _, joint, known = _compare(signal, merged, rules.longest, together)
                    if known >= LEAST_LEARNED or count == 0:
                        channel[count], share[count] = joint, rules.together_alone
                        count += 1
                if count > 0:
                    evidence = np.float64(np.float32(_log_mean_exp(channel, share, count)))
            number[SURPRISE] = merged
            number[EVIDENCE] = evidence
            number[P] = min(1.0, there * least) if there > 0 else np.nan
            number[RATE] = np.nan
            alarm, warm, estimated = False, False, False
            if not np.isnan(evidence):
                lags = min(final.counters[signal, LEARNED], final.weights.shape[0])
                head = final.counters[signal, HEAD]
                past = final.history[signal, head : head + lags]
                rank = conformal_p(past, final.weights[:lags], final.cumulative[lags], evidence)
                believed = lags >= rules.believed
                if believed:
                    number[P] = rank
                rate, alarm, estimated = _decide(signal, evidence, rules, memory, rank, believed)
                number[RATE] = rate
                warm = believed and (rules.by_p or not np.isnan(rate))
                _remember(signal, evidence, final)
            stretch = _blame(by_view, surprises, scores[t, n], columns, mark[CAUSE:], number)
            compared = int(memory.levels[signal, COMPARED])
            if compared >= 0 and not rules.by_p and scores[t, n, compared] > memory.levels[signal, BEYOND]:
                alarm, stretch = True, columns.length[compared]
                mark[CAUSE], mark[CAUSE + 1] = columns.of_view[compared], columns.stream[compared]
                mark[CAUSE + 2] = columns.feature[compared]
                number[SCORE] = scores[t, n, compared]
            lasts = _lasts(signal, steps - 1 - t, alarm, stretch, rules, memory, recall)
            alarm = alarm and lasts
            mark[ALARM], mark[WARM], mark[OPENED] = alarm, warm, alarm and counters[OPEN] == 0
            mark[ESTIMATED] = estimated
            mark[STATE] = _follow(signal, alarm, lasts, evidence, rules, memory)
            # What belongs to such an incident is not learned, nor what led up to it, until it is accepted as normal.
            if counters[FROZEN] == 1:
                continue
            if counters[CERTAIN] == 1 and counters[LASTED] <= rules.accept_after:
                pending.counts[signal * window_width : (signal + 1) * window_width] = 0
                waiting.counts[signal] = 0
                continue
            rests = rests or counters[RESTS] > 0
            for c in range(width):
                score = _size(scores[t, n, c], columns.folded[c])
                if np.isnan(score) or (rests and columns.length[c] > LENGTH):
                    continue
                if columns.length[c] == 1:
                    k = signal * learned_width + columns.place[c]
                    learned.counters[k, SEEN] += 1
                    learn_score(
                        k, score, p[c], gradient, scratch, learned.history, learned.counters, learned.weights,
                        learned.totals, learned.moments, learned.batches, learned.critical, learned.stride,
                        learned.learning_rate, learned.adam, learned.extend,
                    )  # fmt: skip
                else:
                    _wait(signal * window_width + columns.place[c], score, columns.length[c], window, pending)
            if settled and rules.together_alone > 0.0 and not rests:
                _wait(signal, merged, rules.longest, together, waiting)


@_exact
def score_at(past: Array, weights: Array, total: float, wanted: float) -> float:
    """The score of a learned stream, roughly, whose surprise is `wanted`; infinite where nothing was learned."""
    if past.shape[0] == 0:
        return np.inf
    order = np.argsort(past)[::-1]
    above = np.exp(-wanted) * (1.0 + total) - 1.0
    if above > 0.0:
        reached = 0.0
        for i in order:
            reached += weights[i]
            if reached > above:
                return np.float64(past[i])
        return np.float64(past[order[-1]])
    largest = np.float64(past[order[0]])
    # `surprise` grows by one nat for each decay of the tail, and more slowly further out.
    one = excess(past, weights, largest, 2.0 * largest + 1.0, TAIL_WEIGHT)
    if not one > 0.0:
        return largest
    decay = (largest + 1.0) / (TAIL_TRUST * np.expm1(one / TAIL_TRUST))
    return float(largest + decay * TAIL_TRUST * np.expm1(max(wanted - np.log(1.0 + total), 0.0) / TAIL_TRUST))


@_inner
def _blame(
    by_view: Array, surprises: Array, scores: Array, columns: Columns, cause: Array, number: Array
) -> int:  # fmt: skip
    """Which view, stream and feature say most, and their score; -1 where there is none.

    Returns how many observations that stream looks at.
    """
    cause[:] = -1
    number[SCORE] = np.nan
    most, view = -np.inf, -1
    for v in range(by_view.shape[0]):
        if not np.isnan(by_view[v]) and by_view[v] > most:
            most, view = by_view[v], v
    most, stretch = -np.inf, 0
    for c in range(scores.shape[0]):
        if columns.of_view[c] == view and not np.isnan(surprises[c]) and surprises[c] > most:
            most, stretch = surprises[c], columns.length[c]
            cause[0], cause[1], cause[2] = view, columns.stream[c], columns.feature[c]
            number[SCORE] = scores[c]
    return stretch


@_exact
def count_alarms(exceeds: Array, counted: Array, rows: Array, block: int, counts: Array) -> None:
    """Add the observations `[T, N]` that are `counted`, and those that alarm, to the counts of their signals."""
    for n in range(rows.shape[0]):
        count = counts[rows[n]]
        for t in range(exceeds.shape[0]):
            if not counted[t, n]:
                continue
            alarm = 1 if exceeds[t, n] else 0
            count[OBSERVATIONS] += 1
            count[ALARMS] += alarm
            count[BLOCK_OBSERVATIONS] += 1
            count[BLOCK_ALARMS] += alarm
            if count[BLOCK_OBSERVATIONS] == block:
                count[AUDIT_BLOCKS] += 1
                count[SUM] += count[BLOCK_ALARMS]
                count[SQUARES] += count[BLOCK_ALARMS] * count[BLOCK_ALARMS]
                count[BLOCK_OBSERVATIONS] = 0
                count[BLOCK_ALARMS] = 0

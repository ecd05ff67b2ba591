"""The compiled inner loops between the views and the verdicts.

Each observation is ranked, merged, judged and learned before the next one, because a score in an incident may not be
learned.
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
    FixedStreams,
    LearnedStreams,
    conformal_p,
    excess,
    learn_score,
    push,
    surprise,
)
from tocsin.detection.alarm_rate import LEAST_LEARNED
from tocsin.detection.deciding import (
    BEYOND,
    CERTAIN,
    COMPARED,
    FROZEN,
    LASTED,
    OPEN,
    RESTS,
    SCORED,
    SUDDEN,
    SUDDEN_AGO,
    Rules,
    SignalMemory,
    decide,
    follow,
    lasts,
)
from tocsin.detection.holding import LENGTH, Recall
from tocsin.detection.views.view import GEOMETRIC, HARMONIC, MEDIAN

Array = NDArray[Any]

_inner = inner()
_exact = compiled(
    with_files=(
        "conformal/kernels", "detection/alarm_rate.py", "detection/deciding.py", "detection/holding.py",
        "detection/spread.py", "detection/verdict.py", "detection/views/view.py",
    )
)  # fmt: skip

# How features are merged, by the codes of the names in `settings.py`.
MERGE_HARMONIC, MERGE_MEAN = 0, 1

# How many more past scores a stream needs before it is used, if neighbouring scores share observations.
LEARNED_PER_LENGTH = 4
# The same for the fit of the tail: this many scores for a stretch of one observation, and more for longer ones.
TAIL_WEIGHT = 60.0
TAIL_PER_LENGTH = 7.5


class ScoreColumns(NamedTuple):
    """Of each score of an observation: which view and feature it belongs to, where it is kept, how it is ranked."""

    of_view: Array
    feature: Array
    stream: Array
    weight: Array
    length: Array
    folded: Array  # whether its size is what counts, and its sign only tells the side
    place: Array  # among the learned streams of a signal, or among those in windows


class ViewWeights(NamedTuple):
    """Of each view: how its streams are merged, what it counts with others and by itself, and its shortest stretch."""

    merge: Array
    together: Array
    alone: Array
    shortest: Array


class StretchStreams(NamedTuple):
    """Streams of equal weights for scores of longer stretches; see `SlidingWindow`.

    A score waits until none of its observations is among those of the newest one.
    """

    history: Array
    counters: Array
    weights: Array
    cumulative: Array
    waiting: Array  # (streams, longest)
    waited: Array  # how many scores each stream has had


class RankingLayout(NamedTuple):
    """What an observation's scores are, and how they are merged and judged."""

    columns: ScoreColumns
    weights: ViewWeights
    rules: Rules
    features: int


class RankedStreams(NamedTuple):
    """All streams in which scores are ranked."""

    learned: LearnedStreams  # scores of single observations
    window: StretchStreams  # scores of longer stretches
    together: StretchStreams  # all views merged
    final: FixedStreams  # evidence


class Gaps(NamedTuple):
    """How long a forecaster needs at first and after a gap, in observations, and where each signal and feature is."""

    warm_up: int
    recovers: int  # after a gap of more than `longest`
    longest: int
    forecast: int  # it is asked for forecasts while no more than this many in a row are missing
    missing: Array  # how many are missing in a row
    recovering: Array  # how many are left to recover


# Where the results of an observation go. Few arrays with many columns: to hand one over takes as long as to score.
P, SURPRISE, RATE, SCORE, EVIDENCE, NUMBERS = 0, 1, 2, 3, 4, 5  # then p of each feature, then the surprise of each view
ALARM, WARM, OPENED, ESTIMATED, STATE = 0, 1, 2, 3, 4
CAUSE, MARKS = 5, 8  # the cause: the view, stream and feature with the highest surprise


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
def mark_ready(values: Array, rows: Array, seen: Array, gaps: Gaps, ready: Array, asked: Array) -> None:
    """Where the forecaster can be judged, `[T, N, F]`, and where it is asked for forecasts."""
    missing, recovering = gaps.missing, gaps.recovering
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            for f in range(values.shape[2]):
                resting = recovering[signal, f] > 0
                if np.isnan(values[t, n, f]):
                    missing[signal, f] += 1
                    if missing[signal, f] > gaps.longest:
                        recovering[signal, f] = gaps.recovers
                else:
                    missing[signal, f] = 0
                    recovering[signal, f] -= 1 if resting else 0
                ready[t, n, f] = seen[signal] + t >= gaps.warm_up and not resting
                asked[t, n, f] = missing[signal, f] <= gaps.forecast


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
    """One surprise from those of the streams of a view; NaN if there are none."""
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
def _compare_learned(k: int, score: float, learned: LearnedStreams) -> tuple[float, float, int]:
    """p-value and surprise of a score in its stream, and how many past scores that rests on."""
    row, count = learned.history[k], learned.counters[k]
    lags = min(count[LEARNED], learned.weights.shape[1])
    past, weight = row[count[HEAD] : count[HEAD] + lags], learned.weights[k, :lags]
    p = conformal_p(past, weight, learned.totals[k], score)
    return p, surprise(p, past, weight, learned.totals[k], score, TAIL_WEIGHT), count[LEARNED]


@_inner
def _compare(k: int, score: float, length: int, window: StretchStreams) -> tuple[float, float, int]:
    row, count = window.history[k], window.counters[k]
    lags = min(count[LEARNED], window.weights.shape[0])
    past, weight = row[count[HEAD] : count[HEAD] + lags], window.weights[:lags]
    p = conformal_p(past, weight, window.cumulative[lags], score)
    tail = TAIL_WEIGHT + TAIL_PER_LENGTH * length
    return p, surprise(p, past, weight, window.cumulative[lags], score, tail), count[LEARNED]


@_inner
def _remember(k: int, score: float, window: FixedStreams | StretchStreams) -> None:
    push(window.history[k], window.counters[k], window.weights.shape[0], score)
    window.counters[k, LEARNED] += 1
    window.counters[k, SEEN] += 1


@_inner
def _wait(k: int, score: float, length: int, window: StretchStreams) -> None:
    """Let a score wait, and its stream remember the one that has waited long enough."""
    slot = window.waited[k] % length
    if window.waited[k] >= length:
        _remember(k, window.waiting[k, slot], window)
    window.waiting[k, slot] = score
    window.waited[k] += 1


@_exact
def judge(
    scores: Array, rows: Array, first: int, last: int, layout: RankingLayout, streams: RankedStreams,
    memory: SignalMemory, recall: Recall, gradient: Array, scratch: Array, numbers: Array, marks: Array,
) -> None:  # fmt: skip
    """Rank, merge and judge the scores `[T, N, columns]` of the signals `rows[first:last]`, and learn from them."""
    columns, weights, rules, features = layout.columns, layout.weights, layout.rules, layout.features
    learned, window, together, final = streams.learned, streams.window, streams.together, streams.final
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
            counters[SUDDEN_AGO] = 0 if sudden else counters[SUDDEN_AGO] + 1
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
            warmed_up = count > 0 and counters[SCORED] > rules.view_warm_up
            if warmed_up:
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
                calibrated = lags >= rules.min_calibration
                if calibrated:
                    number[P] = rank
                rate, alarm, estimated = decide(signal, evidence, rules, memory, rank, calibrated)
                number[RATE] = rate
                warm = calibrated and (rules.by_p or not np.isnan(rate))
                _remember(signal, evidence, final)
            stretch = _blame(by_view, surprises, scores[t, n], columns, mark[CAUSE:], number)
            compared = int(memory.levels[signal, COMPARED])
            if compared >= 0 and not rules.by_p and scores[t, n, compared] > memory.levels[signal, BEYOND]:
                alarm, stretch = True, columns.length[compared]
                mark[CAUSE], mark[CAUSE + 1] = columns.of_view[compared], columns.stream[compared]
                mark[CAUSE + 2] = columns.feature[compared]
                number[SCORE] = scores[t, n, compared]
            goes_on = lasts(signal, steps - 1 - t, alarm, stretch, rules, memory, recall)
            alarm = alarm and goes_on
            mark[ALARM], mark[WARM], mark[OPENED] = alarm, warm, alarm and counters[OPEN] == 0
            mark[ESTIMATED] = estimated
            mark[STATE] = follow(signal, alarm, goes_on, evidence, rules, memory)
            # Such an incident, and what led up to it, is not learned until it is accepted as normal.
            if counters[FROZEN] == 1:
                continue
            if counters[CERTAIN] == 1 and counters[LASTED] <= rules.accept_after:
                window.waited[signal * window_width : (signal + 1) * window_width] = 0
                together.waited[signal] = 0
                continue
            rests = rests or counters[RESTS] > 0
            for c in range(width):
                score = _size(scores[t, n, c], columns.folded[c])
                if np.isnan(score) or (rests and columns.length[c] > LENGTH):
                    continue
                if columns.length[c] == 1:
                    k = signal * learned_width + columns.place[c]
                    learned.counters[k, SEEN] += 1
                    learn_score(k, score, p[c], learned, gradient, scratch)
                else:
                    _wait(signal * window_width + columns.place[c], score, columns.length[c], window)
            if warmed_up and rules.together_alone > 0.0 and not rests:
                _wait(signal, merged, rules.longest, together)


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
    by_view: Array, surprises: Array, scores: Array, columns: ScoreColumns, cause: Array, number: Array
) -> int:  # fmt: skip
    """Which view, stream and feature have the highest surprise, and their score; -1 if there is none.

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

"""The compiled inner loops between the views and the verdicts, and those that align forecasts with observations.

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
    FixedStreams,
    LearnedStreams,
    conformal_p,
    fit_tail,
    learn_score,
    push,
    surprise,
    unweighted_p,
)
from tocsin.constants import Constants
from tocsin.detection.evidence.sizes import (
    EVERY,
    TRUST,
    ExpectedSizes,
    depend_on_phase,
    enter_phase,
    expected_size,
    forget_relative_levels,
    forget_sizes,
    learn_relative_level,
    learn_size,
    relative_level,
)
from tocsin.detection.incidents.rules import (
    CALM,
    CERTAIN,
    COOLDOWN,
    FROZEN,
    GROWS,
    LASTED,
    OPEN,
    PEAK_FEATURE,
    REACH,
    SCORED,
    SETTLED,
    UNLIKE,
    UNUSUAL,
    Recall,
    Rules,
    SignalMemory,
    advance_incident,
    decide,
    stays_open,
)
from tocsin.detection.views.view import LONG

Array = NDArray[Any]

_inner = inner()
_exact = compiled(
    with_files=(
        "conformal/kernels.py", "constants.py", "detection/evidence/sizes.py", "detection/incidents/rules.py",
        "detection/incidents/verdict.py", "detection/settings/alarm_rate.py", "detection/views/archive.py",
        "detection/views/view.py",
    )
)  # fmt: skip

# The frequencies at which p is kept by a closed loop.
LEVELS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class ScoreColumns(NamedTuple):
    """Of each score of an observation: which vote and feature it belongs to, where it is kept, how it is ranked."""

    vote: Array  # the number of its stream, over all that vote; -1 if it does not
    of_view: Array
    feature: Array
    stream: Array  # its number within the view
    length: Array
    sided: Array  # whether its sign tells high from low
    folded: Array  # whether its size is what counts, and its sign only tells the side
    holds: Array  # whether an incident stays open while it is unusual
    place: Array  # among the learned streams of a signal, or among those in windows
    of_values: Array  # whether it is in the unit of the values
    relative_of: Array  # the column of single scores whose relative mean over a short stretch shares its vote, or -1
    shown: Array  # (features, 2): the columns whose expected sizes are told, of the error and of the level, or -1


class StretchStreams(NamedTuple):
    """Streams of equal weights for scores of longer stretches; see `SlidingWindow`.

    A score waits until none of its observations is among those of the newest one.
    """

    history: Array
    counters: Array
    weights: Array
    cumulative: Array
    waiting: Array  # (streams, the most that wait)
    waited: Array  # how many scores each stream has had
    back: Array  # in an incident, how far each level was from the usual one, at most, when its newest part was back;
    # of another score that holds incidents open, whether it was as usual


class RankingLayout(NamedTuple):
    """What an observation's scores are, and how they are judged."""

    columns: ScoreColumns
    rules: Rules
    features: int
    learned_streams: int  # of each signal
    window_streams: int


class RankedStreams(NamedTuple):
    """All streams in which scores are ranked."""

    learned: LearnedStreams  # scores of single observations
    sizes: ExpectedSizes  # of the same
    window: StretchStreams  # scores of longer stretches
    final: FixedStreams  # evidence


class Work(NamedTuple):
    """Space to work in, of one thread: an entry for each score of an observation, or for each vote."""

    p: Array
    nats: Array
    some: Array
    expected: Array  # the size of a score of a single observation; of a level, the relative one
    votes: Array
    gradient: Array
    scratch: Array


class Gaps(NamedTuple):
    """How long a forecaster needs at first and after a gap, in observations, and where each signal and feature is."""

    warm_up: int
    recovers: int  # after a gap of more than `longest`
    longest: int
    forecast: int  # it is asked for forecasts while no more than this many in a row are missing
    missing: Array  # how many are missing in a row
    recovering: Array  # how many are left to recover


# Where the results of an observation go. Few arrays with many columns: to hand one over takes as long as to score.
# After the numbers: p of each feature, its evidence, two expected sizes, then the largest vote of each view.
P, RATE, SCORE, EVIDENCE, NUMBERS = 0, 1, 2, 3, 4
ALARM, WARM, OPENED, ESTIMATED, FAULTY, STATE = 0, 1, 2, 3, 4, 5
CAUSE = 6  # the view, stream and feature with the largest vote
CALM_FOR, MARKS = 9, 10  # when an incident becomes certain: for how long there was none before; else -1


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
def _log_mean_exp(values: Array, count: int) -> float:
    """The logarithm of the mean of exp(values): minus the log of the harmonic mean of exp(-values)."""
    if count == 1:
        return float(values[0])
    largest = -np.inf
    for i in range(count):
        largest = max(largest, values[i])
    total = 0.0
    for i in range(count):
        total += np.exp(values[i] - largest)
    return largest + float(np.log(total / count))


@_inner
def mean_of_largest(votes: Array, count: float) -> float:
    """The mean of the `count` largest votes, the last one by a part if that is not whole; NaN if nobody votes.

    Votes that are NaN do not count.
    """
    total, taken = 0.0, 0.0
    below = np.inf  # the last vote taken
    while taken < count:
        largest, alike = -np.inf, 0
        for vote in votes:
            if vote < below and vote >= largest:
                alike = alike + 1 if vote == largest else 1
                largest = vote
        if alike == 0:
            break
        times = min(np.float64(alike), count - taken)
        total += times * largest
        taken += times
        below = largest
    return total / taken if taken > 0 else np.nan


@_inner
def _size(score: float, folded: bool) -> float:
    """What is ranked of a score, in the precision in which it is kept."""
    kept = np.float64(np.float32(score))
    return abs(kept) if folded else kept


@_inner
def trusted(total: float, constants: Constants) -> float:
    """How far the tail of scores of this total weight is trusted: few values say little about how it decays."""
    return float(min(constants.trust, constants.tail * np.sqrt(total)))


@_inner
def _compare_learned(k: int, score: float, learned: LearnedStreams, constants: Constants) -> tuple[float, float, int]:
    """p-value and surprise of a score in its stream, and how many past scores that rests on."""
    row, count = learned.history[k], learned.counters[k]
    lags = min(count[LEARNED], learned.weights.shape[1])
    past, weight = row[count[HEAD] : count[HEAD] + lags], learned.weights[k, :lags]
    p = conformal_p(past, weight, learned.totals[k], score)
    trust = trusted(learned.totals[k], constants)
    return p, surprise(p, past, weight, learned.totals[k], score, 1, constants.tail, trust), count[LEARNED]


@_inner
def _compare(
    k: int, score: float, length: int, window: StretchStreams, constants: Constants
) -> tuple[float, float, int]:
    row, count = window.history[k], window.counters[k]
    lags = min(count[LEARNED], window.weights.shape[0])
    past, weight = row[count[HEAD] : count[HEAD] + lags], window.weights[:lags]
    p = unweighted_p(past, score)
    total = window.cumulative[lags]
    trust = trusted(total, constants)
    return p, surprise(p, past, weight, total, score, length, constants.tail, trust), count[LEARNED]


@_inner
def _remember(k: int, score: float, window: FixedStreams | StretchStreams) -> None:
    push(window.history[k], window.counters[k], window.weights.shape[0], score)
    window.counters[k, LEARNED] += 1
    window.counters[k, SEEN] += 1


@_inner
def _kept_every(length: int) -> int:
    """Of how many scores of stretches this long one is kept."""
    return max(length // LONG, 1)


@_inner
def _wait(k: int, score: float, length: int, window: StretchStreams) -> None:
    """Let a score wait, and its stream remember the one that has waited long enough.

    Of scores of very long stretches, which hardly differ from one observation to the next, only some are kept.
    """
    number, every = window.waited[k], _kept_every(length)
    window.waited[k] += 1
    if number % every == 0:
        slot = number // every % (length // every)
        if number >= length:
            _remember(k, window.waiting[k, slot], window)
        window.waiting[k, slot] = score


@_inner
def _part_said(known: int, length: int, constants: Constants) -> float:
    """The part of its surprise with which a score votes: all of it, once it is ranked among enough past scores."""
    return float(min(known * _kept_every(length) / (constants.least * np.sqrt(np.float64(length))), 1.0))


@_inner
def _compare_relative(
    score: float, ring: Array, learned: int, every: int, length: int, window: StretchStreams, constants: Constants
) -> float:
    """The surprise with which a relative score votes: it is ranked among the newest ones, every so many of which are
    kept."""
    lags = min(learned, ring.shape[0])
    if lags == 0 or np.isnan(score):
        return 0.0
    past, weight, total = ring[:lags], window.weights[:lags], window.cumulative[lags]
    kept = np.float64(np.float32(score))
    p = unweighted_p(past, kept)
    trust = min(TRUST, trusted(total, constants)) if length == 1 else trusted(total, constants)
    nats = surprise(p, past, weight, total, kept, length, constants.tail, trust)
    return float(nats * _part_said(every * lags, length, constants))


@_inner
def _relative_nats(
    signal: int, c: int, scores: Array, layout: RankingLayout, streams: RankedStreams, expected: Array
) -> float:
    """The surprise of a score relative to its expected size; 0 if it says nothing.

    A level over a long stretch is joined by the relative one over a short stretch, which is left in `expected`.
    """
    columns, sizes, constants = layout.columns, streams.sizes, layout.rules.constants
    single = columns.relative_of[c] if columns.length[c] > 1 else c
    if single < 0:
        return 0.0
    k = signal * layout.learned_streams + columns.place[single]
    if not sizes.speaks[k]:
        return 0.0
    if single == c:
        relative = _size(scores[c], columns.folded[c]) / expected[c]
        return _compare_relative(relative, sizes.relative[k], sizes.learned[k], 1, 1, streams.window, constants)
    k = signal * layout.features + columns.feature[c]
    level = relative_level(k, scores[single] / expected[single], sizes)
    expected[c] = _size(level, columns.folded[c])
    return _compare_relative(
        expected[c], sizes.levels[k], sizes.entered[k, 1], EVERY, sizes.newest.shape[1], streams.window, constants
    )


@_inner
def _enter_phases(
    signal: int, values: Array, periods: Array, layout: RankingLayout, sizes: ExpectedSizes
) -> None:  # fmt: skip
    """Go on by one observation in the season of each feature; at its end, ask whether sizes depend on the phase."""
    columns = layout.columns
    for f in range(periods.shape[0]):
        season = sizes.seasons[signal, f]
        anew = enter_phase(values[f], periods[f], season, sizes.steps[signal, f])
        if not anew and (periods[f] == 0 or season[1] > 0):
            continue
        if anew:
            forget_relative_levels(signal * layout.features + f, sizes)
        for c in range(columns.length.shape[0]):
            if columns.length[c] == 1 and columns.feature[c] == f:
                k = signal * layout.learned_streams + columns.place[c]
                if anew:
                    forget_sizes(k, sizes)
                else:
                    sizes.speaks[k] = depend_on_phase(k, season, sizes)


@_inner
def _expected(signal: int, c: int, k: int, columns: ScoreColumns, sizes: ExpectedSizes) -> float:
    """The expected size of a score of a single observation: half a step of the values, at least."""
    f = columns.feature[c]
    if f < 0:
        return np.nan
    step = sizes.steps[signal, f, 0]
    least = 0.5 * step if columns.of_values[c] and step < np.inf else 0.0
    return expected_size(k, sizes.seasons[signal, f], least, sizes)


@_inner
def _rank(signal: int, scores: Array, layout: RankingLayout, streams: RankedStreams, work: Work) -> None:
    """The p-value and surprise of each score in its own stream, NaN where there is none."""
    columns, constants, p, nats = layout.columns, layout.rules.constants, work.p, work.nats
    for c in range(scores.shape[0]):
        score = _size(scores[c], columns.folded[c])
        p[c], nats[c], work.expected[c] = np.nan, np.nan, np.nan
        if np.isnan(score):
            continue
        length = columns.length[c]
        if length == 1:
            k = signal * layout.learned_streams + columns.place[c]
            p[c], nats[c], known = _compare_learned(k, score, streams.learned, constants)
            work.expected[c] = _expected(signal, c, k, columns, streams.sizes)
        else:
            k = signal * layout.window_streams + columns.place[c]
            p[c], nats[c], known = _compare(k, score, length, streams.window, constants)
        nats[c] = nats[c] * _part_said(known, length, constants) if columns.vote[c] >= 0 and known > 0 else np.nan
        if columns.feature[c] >= 0 and not np.isnan(nats[c]):
            nats[c] = max(nats[c], _relative_nats(signal, c, scores, layout, streams, work.expected))


@_inner
def _tell_sizes(signal: int, layout: RankingLayout, sizes: ExpectedSizes, work: Work, told: Array) -> None:
    """The expected sizes of errors and levels, two of each feature; NaN where scores are not compared with them."""
    columns = layout.columns
    for f in range(layout.features):
        for i in range(2):
            c = columns.shown[f, i]
            speaks = c >= 0 and sizes.speaks[signal * layout.learned_streams + columns.place[c]]
            told[2 * f + i] = work.expected[c] if speaks else np.nan


@_inner
def _vote(columns: ScoreColumns, longest: int, work: Work, by_view: Array) -> int:
    """One vote for each stream of at most that length, and the largest of each view; returns how many vote."""
    nats, some, votes = work.nats, work.some, work.votes
    voting = 0
    by_view[:] = np.nan
    for v in range(votes.shape[0]):
        count, view, length = 0, 0, 0
        for c in range(nats.shape[0]):
            if columns.vote[c] == v:
                view, length = columns.of_view[c], columns.length[c]
                if not np.isnan(nats[c]):
                    some[count] = nats[c]
                    count += 1
        votes[v] = np.nan
        if count > 0:
            vote = _log_mean_exp(some, count)
            by_view[view] = vote if np.isnan(by_view[view]) else max(by_view[view], vote)
            if length <= longest:
                votes[v] = vote
                voting += 1
    return voting


@_inner
def _merge(
    signal: int, longest: int, layout: RankingLayout, memory: SignalMemory, work: Work, by_view: Array
) -> float:  # fmt: skip
    """The evidence of an observation: the mean of the largest votes; NaN during the warm-up of the views."""
    rules, counters = layout.rules, memory.counters[signal]
    voting = _vote(layout.columns, longest, work, by_view)
    counters[SCORED] += 1 if voting > 0 else 0
    if voting == 0 or counters[SCORED] < rules.constants.least:
        return np.nan
    return np.float64(np.float32(mean_of_largest(work.votes, rules.constants.witnesses)))


@_inner
def _bounds_of_features(p: Array, columns: ScoreColumns, bounds: Array) -> float:
    """One bound on the p-value of each feature, from its own scores: Bonferroni; returns that of the observation.

    The latter is over scores of single observations, if there are any: at first, those of stretches have too few
    independent ones to be ranked among.
    """
    least, there, single = np.inf, 0, False
    for c in range(p.shape[0]):
        single = single or (columns.length[c] == 1 and not np.isnan(p[c]))
    for f in range(bounds.shape[0]):
        bounds[f] = np.nan
        smallest, present = np.inf, 0
        for c in range(p.shape[0]):
            if columns.feature[c] == f and not np.isnan(p[c]):
                smallest, present = min(smallest, p[c]), present + 1
        if present > 0:
            bounds[f] = min(1.0, present * smallest)
    for c in range(p.shape[0]):
        if not np.isnan(p[c]) and (columns.length[c] == 1 or not single):
            least, there = min(least, p[c]), there + 1
    return min(1.0, there * least) if there > 0 else np.nan


@_inner
def _evidence_of_features(columns: ScoreColumns, longest: int, constants: Constants, work: Work, found: Array) -> None:
    """The evidence that each feature alone would give: the mean of the largest of its own scores' surprises."""
    for f in range(found.shape[0]):
        count = 0
        for c in range(work.nats.shape[0]):
            if columns.feature[c] == f and columns.length[c] <= longest:
                work.some[count] = work.nats[c]
                count += 1
        found[f] = mean_of_largest(work.some[:count], constants.witnesses)


@_inner
def calibrated_p(rank: float, thresholds: Array, step: float) -> float:
    """The p-value of a rank, by the thresholds on ranks that hold their frequencies; they learn from it.

    A rank is below its threshold at most as often as its level says, in the long run, on any sequence. A rank below a
    threshold lowers it by `step` over the root of its level, and any other raises it by `step` times that root, but
    never above 1.
    """
    log_rank = np.log(rank)
    lower, at = -np.inf, -1
    p = 0.0
    for j in range(len(LEVELS)):
        threshold = max(thresholds[j], lower)  # levels may cross for a moment
        if log_rank < threshold:
            level = np.log(LEVELS[j])
            if j == 0:
                p = level + (log_rank - threshold)
            else:
                below = np.log(LEVELS[j - 1])
                p = below + (level - below) * (log_rank - lower) / (threshold - lower)
            at = j
            break
        lower = threshold
    if at < 0:
        # Beyond the last level p reaches 1 where the rank does.
        last = np.log(LEVELS[len(LEVELS) - 1])
        p = last - last * (log_rank - lower) / -lower if lower < 0.0 else 0.0
    for j in range(len(LEVELS)):
        hit = 1.0 if log_rank < thresholds[j] else 0.0
        thresholds[j] = min(thresholds[j] + step * (LEVELS[j] - hit) / np.sqrt(LEVELS[j]), 0.0)
    return float(min(np.exp(p), 1.0))


@_inner
def _decide(
    signal: int, evidence: float, rules: Rules, memory: SignalMemory, final: FixedStreams, number: Array
) -> tuple[bool, bool, bool]:
    """Whether the evidence alarms, whether it may, and whether by an estimate; p and its rate go to `number`."""
    if np.isnan(evidence):
        return False, False, False
    lags = min(final.counters[signal, LEARNED], final.weights.shape[0])
    head = final.counters[signal, HEAD]
    calibrated = lags >= rules.min_calibration
    if calibrated:
        past = final.history[signal, head : head + lags]
        rank = unweighted_p(past, evidence)
        number[P] = calibrated_p(rank, memory.thresholds[signal], rules.constants.tightening / 2.0)
    rate, alarm, estimated = decide(signal, evidence, rules, memory, number[P], calibrated)
    number[RATE] = rate
    _remember(signal, evidence, final)
    return alarm, calibrated if rules.by_p else not np.isnan(rate), estimated


@_inner
def _beyond_reference(
    signal: int, scores: Array, layout: RankingLayout, memory: SignalMemory, number: Array, cause: Array
) -> int:
    """How many observations the score looks at that is furthest beyond the reference, and then is the cause; else 0."""
    columns, middles, reach = layout.columns, memory.middles[signal], memory.reach[signal]
    furthest, stretch = 1.0, 0
    if layout.rules.by_p or memory.counters[signal, FROZEN] == 0:
        return stretch
    for c in range(scores.shape[0]):
        if not reach[c] < np.inf:
            continue
        away = _size(scores[c] - middles[c], columns.folded[c])
        times = away / reach[c] if reach[c] > 0.0 else np.inf if away > 0.0 else 0.0
        if times > furthest:
            furthest, stretch = times, columns.length[c]
            cause[0], cause[1], cause[2] = columns.of_view[c], columns.stream[c], columns.feature[c]
            number[SCORE] = scores[c]
    return stretch


@_inner
def _forget_levels(signal: int, layout: RankingLayout, window: StretchStreams) -> None:
    """Learn levels anew, because another one is accepted as normal: the past of the old one would alarm for long."""
    columns = layout.columns
    for c in range(columns.length.shape[0]):
        if columns.sided[c] and columns.length[c] > 1:
            window.counters[signal * layout.window_streams + columns.place[c], LEARNED] = 0


@_inner
def _longest_ranked(nats: Array, lengths: Array) -> int:
    longest = 0
    for c in range(nats.shape[0]):
        if not np.isnan(nats[c]):
            longest = max(longest, lengths[c])
    return longest


@_inner
def _longest_heard(rules: Rules, counters: Array) -> int:
    """The longest stretch that votes and is learned: after an incident, longer ones still reach back into it."""
    return int(max(rules.returned, (2 * rules.longest - counters[COOLDOWN]) // 2))


@_inner
def _learn(
    signal: int, scores: Array, longest: int, layout: RankingLayout, streams: RankedStreams, memory: SignalMemory,
    work: Work,
) -> bool:  # fmt: skip
    """Let each stream of at most that length learn its score; returns whether the observation is faulty.

    A certain incident, and what led up to it, is not learned until it is accepted as normal.
    """
    columns, learned, window, counters = layout.columns, streams.learned, streams.window, memory.counters[signal]
    if counters[FROZEN] == 1:
        return False
    if counters[CERTAIN] == 1 and counters[SETTLED] <= layout.rules.accept_after:
        window.waited[signal * layout.window_streams : (signal + 1) * layout.window_streams] = 0
        streams.sizes.entered[signal * layout.features : (signal + 1) * layout.features, 2] = 0
        return bool(counters[LASTED] > layout.rules.returned)
    if counters[UNLIKE] == 1 and counters[SETTLED] > layout.rules.accept_after:
        _forget_levels(signal, layout, window)
        streams.sizes.entered[signal * layout.features : (signal + 1) * layout.features, 1] = 0
        counters[UNLIKE] = 0
    for c in range(scores.shape[0]):
        score = _size(scores[c], columns.folded[c])
        if np.isnan(score) or columns.length[c] > longest:
            continue
        if columns.length[c] == 1:
            k = signal * layout.learned_streams + columns.place[c]
            learned.counters[k, SEEN] += 1
            learn_score(k, score, work.p[c], learned, work.gradient, work.scratch)
            if columns.feature[c] >= 0:
                season = streams.sizes.seasons[signal, columns.feature[c]]
                learn_size(k, score, work.expected[c], season, streams.sizes)
        else:
            _wait(signal * layout.window_streams + columns.place[c], score, columns.length[c], window)
            if not np.isnan(work.expected[c]):
                learn_relative_level(signal * layout.features + columns.feature[c], work.expected[c], streams.sizes)
    return False


@_exact
def judge(
    scores: Array, values: Array, periods: Array, deviates: Array, rows: Array, first: int, last: int,
    layout: RankingLayout, streams: RankedStreams, memory: SignalMemory, recall: Recall, work: Work, numbers: Array,
    marks: Array,
) -> None:  # fmt: skip
    """Rank, merge and judge the scores `[T, N, columns]` of the signals `rows[first:last]`, and learn from them.

    They are of the values `[T, N, F]`; `periods[N, F]` are those of their seasons.
    """
    rules, features, steps = layout.rules, layout.features, scores.shape[0]
    for n in range(first, last):
        signal = rows[n]
        counters = memory.counters[signal]
        for t in range(steps):
            score, number, mark = scores[t, n], numbers[t, n], marks[t, n]
            number[RATE] = np.nan
            longest = _longest_heard(rules, counters)
            counters[COOLDOWN] = max(counters[COOLDOWN] - 1, 0)
            _enter_phases(signal, values[t, n], periods[n], layout, streams.sizes)
            _rank(signal, score, layout, streams, work)
            number[P] = _bounds_of_features(work.p, layout.columns, number[NUMBERS : NUMBERS + features])
            _tell_sizes(signal, layout, streams.sizes, work, number[NUMBERS + 2 * features : NUMBERS + 4 * features])
            evidence = _merge(signal, longest, layout, memory, work, number[NUMBERS + 4 * features :])
            of_features = number[NUMBERS + features : NUMBERS + 2 * features]
            _evidence_of_features(layout.columns, longest, rules.constants, work, of_features)
            number[EVIDENCE] = evidence
            certain = counters[CERTAIN]
            alarm, warm, estimated = _decide(signal, evidence, rules, memory, streams.final, number)
            stretch = _blame(work.nats, score, longest, layout.columns, mark[CAUSE : CAUSE + 3], number)
            beyond = _beyond_reference(signal, score, layout, memory, number, mark[CAUSE : CAUSE + 3])
            if beyond > 0:
                alarm, stretch = True, beyond
            if alarm and deviates.shape[0] > 0:
                alarm = _deviates(of_features, deviates[t, n])
            if counters[OPEN] == 0:
                counters[REACH] = _longest_ranked(work.nats, layout.columns.length)
            unusual, away, feature, level = False, 0.0, 0, np.nan
            if counters[OPEN] == 1:
                unusual, away, feature = _unusual(signal, score, layout, streams.window, work)
                level = _level_while_waiting(signal, score, layout, rules, memory)
            goes_on = stays_open(signal, steps - 1 - t, alarm, stretch, unusual, away, feature, rules, memory, recall)
            alarm = alarm and goes_on
            mark[ALARM], mark[WARM], mark[OPENED] = alarm, warm, alarm and counters[OPEN] == 0
            mark[ESTIMATED] = estimated
            if mark[OPENED]:
                streams.window.back[signal * layout.window_streams : (signal + 1) * layout.window_streams] = 0.0
            mark[CALM_FOR] = -1
            if alarm and counters[CERTAIN] == 1 and (counters[OPEN] == 0 or certain == 0):
                mark[CALM_FOR] = min(counters[CALM] + counters[OPEN] * counters[LASTED], 32_767)
            mark[STATE] = advance_incident(signal, alarm, goes_on, evidence, level, rules, memory)
            longest = min(longest, _longest_heard(rules, counters))  # the incident may just have ended
            mark[FAULTY] = _learn(signal, score, longest, layout, streams, memory, work)


@_inner
def _unusual(
    signal: int, scores: Array, layout: RankingLayout, window: StretchStreams, work: Work
) -> tuple[bool, float, int]:
    """Whether a score that holds incidents open is unusual, how far the level then is from the usual one, and of what.

    The distance has its sign, and is that of the feature which is furthest away.

    The newest part of the stretch has to show an unusual level too: of a fault that is over, only the older part does.
    Once the newest part has been back at the usual level, the level has to go further than it was then. Other scores,
    once they have been as usual, hold no longer.
    """
    columns, unusual, most, feature = layout.columns, False, 0.0, 0
    for c in range(scores.shape[0]):
        if not columns.holds[c] or np.isnan(work.nats[c]):
            continue
        k, level = signal * layout.window_streams + columns.place[c], columns.sided[c] and columns.stream[c] > 0
        if _part_said(window.counters[k, LEARNED], columns.length[c], layout.rules.constants) < 1.0:
            continue
        distance = abs(scores[c]) if level else 1.0
        if not work.p[c - 1 if level else c] < 0.5:  # it, or its newest part, is no further away than usual
            window.back[k] = max(window.back[k], distance)
        shown = window.back[k] == 0.0
        if level:
            shown = 2.0 * np.copysign(scores[c - 1], scores[c] * scores[c - 1]) >= distance > GROWS * window.back[k]
        if shown and work.p[c] < UNUSUAL:
            unusual = True
            if level and distance > abs(most):
                most, feature = scores[c], columns.feature[c]
    return unusual, most, feature


@_inner
def _level_while_waiting(
    signal: int, scores: Array, layout: RankingLayout, rules: Rules, memory: SignalMemory
) -> float:
    """How far the level is from the usual one, on average over as long as an incident waits for its end.

    It is the level of the feature that was furthest away in the incident.
    """
    columns = layout.columns
    for c in range(scores.shape[0]):
        of_level = columns.holds[c] and columns.sided[c] and columns.length[c] == 2 * rules.returned
        if of_level and columns.feature[c] == memory.counters[signal, PEAK_FEATURE]:
            return float(scores[c])
    return np.nan


@_inner
def _deviates(evidence: Array, deviates: Array) -> bool:
    """Whether the most anomalous feature is far enough from its forecast; any if none has a score of its own."""
    most, at = -np.inf, -1
    for f in range(evidence.shape[0]):
        if evidence[f] > most:
            most, at = evidence[f], f
    return bool(deviates.any() if at < 0 else deviates[at])


@_exact
def score_at(
    past: Array, weights: Array, total: float, wanted: float, trust: float, constants: Constants
) -> float:  # fmt: skip
    """The score, roughly, whose surprise among these is `wanted`; infinite where nothing was learned."""
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
    _, _, decay = fit_tail(past, weights, constants.tail * np.sqrt(total))
    if not 0.0 < decay < np.inf:
        return largest
    # `surprise` grows by one nat for each decay of the tail, and more slowly further out.
    beyond = max(wanted - np.log(1.0 + total), 0.0)
    return float(largest + decay * trust * np.expm1(beyond / trust))


@_inner
def _blame(nats: Array, scores: Array, longest: int, columns: ScoreColumns, cause: Array, number: Array) -> int:
    """Which view, stream and feature explain it, of stretches of at most that length, and their score; -1 for none.

    Of the scores at least half as surprising as the most surprising one, it is the one about the fewest observations:
    it says most precisely what happened. Returns how many observations it looks at.
    """
    cause[:] = -1
    number[SCORE] = np.nan
    most = -np.inf
    for c in range(scores.shape[0]):
        if columns.length[c] <= longest and nats[c] > most:
            most = nats[c]
    best, stretch = -np.inf, 0
    for c in range(scores.shape[0]):
        if columns.length[c] > longest:
            continue
        shorter = stretch == 0 or columns.length[c] < stretch
        if nats[c] >= 0.5 * most and (shorter or (columns.length[c] == stretch and nats[c] > best)):
            best, stretch = nats[c], columns.length[c]
            cause[0], cause[1], cause[2] = columns.of_view[c], columns.stream[c], columns.feature[c]
            number[SCORE] = scores[c]
    return stretch

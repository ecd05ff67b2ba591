"""Compiled: streams of scores, each with its history, scored and learned in one pass.

Each stream owns one row of `history`, written from the right end towards the left: the score at lag k (0 is the newest)
is at `row[head + k]`. So scores and weights run in the same direction over contiguous memory, which lets the compiler
vectorise. A row has some slack beyond what must be kept. When the head reaches the left end, the part still needed is
moved back to the right end.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.conformal.kernels.p_values import conformal_p, finer_p, smoothed_p, uniform
from tocsin.conformal.kernels.weights import adam_step, batch_gradient, project, sgd_step, wasserstein_slopes

Array = NDArray[Any]

_exact, _inner = compiled(with_folder=True, with_files=("constants.py",)), inner()

# Columns of a stream's counters; everything else about its position follows from these.
SEEN = 0  # scores that got a p-value
LEARNED = 1  # of those, scores that entered the history
HEAD = 2  # where the newest score stands in its history row
COUNTERS = 3

# Rows of a stream's ring of p-values that wait for a gradient step.
P = 0  # the p-values
TOTAL = 1  # the sum of weights that each was computed with


class LearnedStreams(NamedTuple):
    """Streams whose weights over the past are learned; see `W1ACAS`."""

    history: Array
    counters: Array
    weights: Array
    totals: Array  # the sums of weights
    moments: Array  # of Adam
    batches: Array  # p-values that wait for a gradient step
    critical: int  # the least sum of weights
    stride: int
    learning_rate: float
    adam: bool
    extend: bool
    smooth: bool  # whether a random draw breaks ties
    seed: Any


class FixedStreams(NamedTuple):
    """Streams that share fixed weights over the past; see `SlidingWindow`."""

    history: Array
    counters: Array
    weights: Array
    cumulative: Array  # entry m is the sum of the newest m weights
    capacity: int  # how many scores a stream learns before it stops
    smooth: bool
    seed: Any


@_inner
def push(row: Array, count: Array, kept: int, score: float) -> None:
    """Write `score` as the newest of its history row. The `kept` newest scores stay readable."""
    head = count[HEAD]
    if head == 0:
        moved = row.shape[0] - kept
        for i in range(kept - 1, -1, -1):
            row[moved + i] = row[i]
        head = moved
    row[head - 1] = score
    count[HEAD] = head - 1


@_inner
def _learn_weights(
    k: int, streams: LearnedStreams, gradient: Array, scratch: Array, newest: int, available: int, steps: int
) -> float:
    """One projected gradient step of stream `k` from its last batch of p-values; returns the new sum of weights.

    `newest` is the slot of the last p-value in the stream's ring, `available` the number of scores before it.
    """
    weights, batch = streams.weights[k], streams.batches[k]
    size = batch.shape[1]
    p, slopes = scratch[:size], scratch[size:]
    for i in range(size):
        p[i] = batch[P, (newest + 1 + i) % size]
    wasserstein_slopes(p, slopes)
    for i in range(size):
        slopes[i] /= 1.0 + batch[TOTAL, (newest + 1 + i) % size]
    lags = min(available, weights.shape[0])
    batch_gradient(gradient[:lags], streams.history[k], streams.counters[k, HEAD], available, p, slopes)
    if streams.adam:
        moments = streams.moments[k]
        adam_step(gradient, weights[:lags], moments[0], moments[1], streams.learning_rate, steps)
    else:
        sgd_step(gradient, weights[:lags], streams.learning_rate)
    return project(gradient[:lags], float(streams.critical), weights[:lags])


@_inner
def learn_score(k: int, score: float, p: float, streams: LearnedStreams, gradient: Array, scratch: Array) -> None:
    """Let stream `k` remember a score that was given the p-value `p`, and learn from the batch that it completes.

    `gradient`, one number for each lag, and `scratch`, two for each p-value of a batch, hold intermediate results.
    """
    count, weights, totals = streams.counters[k], streams.weights[k], streams.totals
    window, size = weights.shape[0], streams.batches.shape[2]
    learned = count[LEARNED]
    push(streams.history[k], count, window + size, score)
    recorded = learned - streams.critical + 1
    if recorded >= 1:
        slot = (recorded - 1) % size
        streams.batches[k, P, slot] = p
        streams.batches[k, TOTAL, slot] = totals[k]
        if recorded >= size and (recorded - size) % streams.stride == 0:
            steps = (recorded - size) // streams.stride + 1
            totals[k] = _learn_weights(k, streams, gradient, scratch, slot, learned, steps)
    if learned < window:
        # Algorithm 1 gives weight to the newest `critical` lags only; "extend" goes on with the oldest weight.
        if learned < streams.critical:
            weights[learned] = 1
        elif streams.extend:
            weights[learned] = weights[learned - 1]
        totals[k] += weights[learned]
    count[LEARNED] = learned + 1


@_exact
def advance_learned(
    scores: Array, learn: Array, p: Array, rank: Array, first: int, last: int, gradient: Array, scratch: Array,
    *fields: Any,
) -> None:  # fmt: skip
    """Score and learn `scores[T, K]` with learned weights (W1-ACAS, Algorithm 1), writing p-values to `p[T, K]`.

    Only the streams from `first` up to `last` are touched, so that threads can share the others. If `rank` is not
    empty, finer p-values are written to it. `learn_score` explains `gradient` and `scratch`. `fields` are those of
    `LearnedStreams`: numba takes longer to unpack a structure than its fields, which shows for single scores.
    """
    streams = LearnedStreams(*fields)
    totals, window = streams.totals, streams.weights.shape[1]
    for k in range(first, last):
        row = streams.history[k]
        count = streams.counters[k]
        for t in range(scores.shape[0]):
            score = row.dtype.type(scores[t, k])
            if np.isnan(score):
                p[t, k] = np.nan
                if rank.shape[0] > 0:
                    rank[t, k] = np.nan
                continue
            lags = min(count[LEARNED], window)
            past = row[count[HEAD] : count[HEAD] + lags]
            weight = streams.weights[k, :lags]
            plain = conformal_p(past, weight, totals[k], score)
            if streams.smooth:
                p[t, k] = smoothed_p(past, weight, totals[k], score, uniform(streams.seed, k, count[SEEN]))
            else:
                p[t, k] = plain
            if rank.shape[0] > 0:
                rank[t, k] = finer_p(plain, past, weight, totals[k], score)
            count[SEEN] += 1
            if learn[t, k]:
                learn_score(k, score, plain, streams, gradient, scratch)


@_exact
def advance_fixed(scores: Array, learn: Array, p: Array, rank: Array, first: int, last: int, *fields: Any) -> None:
    """Score `scores[T, K]` with fixed weights, those of `FixedStreams(*fields)`; see `advance_learned`."""
    streams = FixedStreams(*fields)
    cumulative, window = streams.cumulative, streams.weights.shape[0]
    for k in range(first, last):
        row = streams.history[k]
        count = streams.counters[k]
        for t in range(scores.shape[0]):
            score = row.dtype.type(scores[t, k])
            if np.isnan(score):
                p[t, k] = np.nan
                if rank.shape[0] > 0:
                    rank[t, k] = np.nan
                continue
            lags = min(count[LEARNED], window)
            past = row[count[HEAD] : count[HEAD] + lags]
            weight = streams.weights[:lags]
            plain = conformal_p(past, weight, cumulative[lags], score)
            if streams.smooth:
                p[t, k] = smoothed_p(past, weight, cumulative[lags], score, uniform(streams.seed, k, count[SEEN]))
            else:
                p[t, k] = plain
            if rank.shape[0] > 0:
                rank[t, k] = finer_p(plain, past, weight, cumulative[lags], score)
            count[SEEN] += 1
            if learn[t, k] and count[LEARNED] < streams.capacity:
                push(row, count, window, score)
                count[LEARNED] += 1

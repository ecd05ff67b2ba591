"""The compiled inner loops between the forecaster and the scorers, and behind them.

Each does for many observations what a line or two of numpy would do; called for one observation at a time, those lines
would take longer than the scoring itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled

Array = NDArray[Any]

_exact = compiled()

# How errors become scores: the codes of the names in `nonconformity.py`.
ABSOLUTE, SIGNED, HIGH, LOW = 0, 1, 2, 3

# The merges of horizons that are done here, by the names of `MERGES`; numpy does the others.
MEDIAN, HARMONIC = 0, 1
COMPILED_MERGES = {"median": MEDIAN, "harmonic": HARMONIC}

# A fade is at least this share of where it begins: of scores without any spread the end is as good as a wall.
SHORTEST_FADE = 1e-9
MOST_NEWTON_STEPS = 64

# Columns of an audit's counts.
OBSERVATIONS, ALARMS, BLOCK_OBSERVATIONS, BLOCK_ALARMS, BLOCKS, SUM, SQUARES = 0, 1, 2, 3, 4, 5, 6


@_exact
def put_in_order(values: Array, ordered: Array) -> int:
    """Write what is not NaN to `ordered`, ascending; returns how many that are."""
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        if np.isnan(value):
            continue
        at = count
        while at > 0 and ordered[at - 1] > value:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = value
        count += 1
    return count


@_exact
def merge_ordered(ordered: Array, count: int, merge: int) -> float:
    """The merge of the first `count` of what `put_in_order` wrote; NaN where there are none."""
    if count == 0:
        return np.nan
    if merge == MEDIAN:
        low, high = float(ordered[(count - 1) // 2]), float(ordered[count // 2])
        return low if low == high else 0.5 * low + 0.5 * high
    smallest = float(ordered[0])
    if smallest == 0.0:
        return 0.0
    total = 0.0
    for i in range(count):
        total += smallest / ordered[i]
    return min(1.0, smallest * (count / total))


@_exact
def median(values: Array, scratch: Array) -> float:
    """The median of what is not NaN; NaN where all is."""
    return merge_ordered(scratch, put_in_order(values, scratch), MEDIAN)


@_exact
def edge(ends: Array, fades: Array, merge: int, scratch: Array) -> float:
    """How far a value may go until the merge alarms, if each horizon by itself would alarm from its end on.

    NaN is left out. By the median, until half of the horizons would alarm. By the harmonic mean, if around its end each
    p-value falls by a factor of e with its fade, until the mean of exp((value - end) / fade) is 1.
    """
    if merge == MEDIAN:
        return median(ends, scratch)
    count, at, size = 0, -np.inf, 0.0
    for h in range(ends.shape[0]):
        if np.isfinite(ends[h]):
            count += 1
            at, size = max(at, ends[h]), max(size, abs(ends[h]))
    if count == 0:
        return median(ends, scratch)
    rates = scratch
    for h in range(ends.shape[0]):
        rates[h] = 1.0 / max(fades[h], SHORTEST_FADE * size + 1e-300)
    # The logarithm of such a mean is convex and increasing: from above, Newton's method comes down to its root.
    for _ in range(MOST_NEWTON_STEPS):
        largest = -np.inf
        for h in range(ends.shape[0]):
            if np.isfinite(ends[h]):
                largest = max(largest, (at - ends[h]) * rates[h])
        total, slope = 0.0, 0.0
        for h in range(ends.shape[0]):
            if np.isfinite(ends[h]):
                part = np.exp((at - ends[h]) * rates[h] - largest)
                total += part
                slope += part * rates[h]
        excess = largest + np.log(total / count)
        at -= excess * (total / slope)
        if excess <= 1e-6:
            break
    return at


@_exact
def align(carried: Array, rows: Array, issued: Array, predicted: Array) -> None:
    """Write what had been forecast for each of T observations to `predicted[T, N, H]`, and carry the newest on.

    `issued[t, n]` was issued after observation t; `carried[i, series]` was issued H - i observations before the first.
    """
    horizons = carried.shape[0]
    steps = issued.shape[0]
    for n in range(rows.shape[0]):
        series = rows[n]
        for t in range(steps):
            for ahead in range(horizons):
                at = t - 1 - ahead
                predicted[t, n, ahead] = issued[at, n, ahead] if at >= 0 else carried[horizons + at, series, ahead]
        for i in range(horizons):
            at = steps - horizons + i
            carried[i, series] = issued[at, n] if at >= 0 else carried[horizons + at, series]


@_exact
def judge(
    values: Array, predicted: Array, spread: Array, kind: int, light: bool, rows: Array, seen: Array, settles: int,
    recovers: int, gaps: Array, rests: Array, merge: int, quantiles: Array, fades: Array, scores: Array,
    forecast: Array, low: Array, high: Array,
) -> None:  # fmt: skip
    """Scores, forecast and band of the observations `values[T, N, F]` with the forecasts `predicted[T, N, F, H]`.

    Scores go to `scores[T, S, F, sides, H]`, in which the other signals are NaN. So are those of the first observations
    of a signal, until `settles` of them were `seen`, and those of the `recovers` observations after a gap longer than
    the horizon: `gaps[S, F]` counts what is missing in a row, `rests[S, F]` what is left to rest. Errors are divided by
    `spread` unless it is empty. The forecast is the median over the horizons. The band reaches to the edges of the
    merge, with ends from the largest scores that do not alarm, `quantiles[S, F, sides, H]`, and with `fades` of that
    shape; NaN for divided errors. Where every value would alarm it is a single point.
    """
    steps, count, features, horizons = predicted.shape
    scaled = spread.shape[0] > 0
    errors, lows, highs, scratch = np.empty(horizons), np.empty(horizons), np.empty(horizons), np.empty(horizons)
    for t in range(steps):
        for n in range(count):
            signal = rows[n]
            for f in range(features):
                resting = rests[signal, f] > 0
                if np.isnan(values[t, n, f]):
                    gaps[signal, f] += 1
                    if gaps[signal, f] > horizons:
                        rests[signal, f] = recovers
                else:
                    gaps[signal, f] = 0
                    rests[signal, f] -= 1 if resting else 0
                total, there = 0.0, 0
                for h in range(horizons):
                    error = values[t, n, f] - predicted[t, n, f, h]
                    if scaled:
                        error /= max(spread[t, n, f, h], 1e-9 * (abs(predicted[t, n, f, h]) + 1e-300))
                    errors[h] = error
                    if not np.isnan(error):
                        total += abs(error) if kind == ABSOLUTE else error
                        there += 1
                if light:
                    errors[0] = total / there if there > 0 else np.nan
                known = scores.shape[4] if seen[signal] + t >= settles and not resting else 0
                for h in range(known):
                    error = errors[h]
                    scores[t, signal, f, 0, h] = abs(error) if kind == ABSOLUTE else -error if kind == LOW else error
                    if kind == SIGNED:
                        scores[t, signal, f, 1, h] = -error
                forecast[t, n, f] = median(predicted[t, n, f], scratch)
                if scaled:
                    low[t, n, f], high[t, n, f] = np.nan, np.nan
                    continue
                below = quantiles.shape[2] - 1
                for h in range(horizons):
                    base = forecast[t, n, f] if light else predicted[t, n, f, h]
                    bound = quantiles[signal, f, :, 0 if light else h]
                    lows[h] = bound[below] - base if kind != HIGH else np.inf - base
                    highs[h] = bound[0] + base if kind != LOW else np.inf + base
                low[t, n, f] = -edge(lows, fades[signal, f, below], merge, scratch)
                high[t, n, f] = edge(highs, fades[signal, f, 0], merge, scratch)
                if low[t, n, f] > high[t, n, f]:
                    low[t, n, f] = high[t, n, f] = 0.5 * low[t, n, f] + 0.5 * high[t, n, f]


@_exact
def gather(
    p: Array, rank: Array, rows: Array, merge: int, horizon_p: Array, horizon_rank: Array, feature_p: Array,
    feature_rank: Array, bound: Array,
) -> None:  # fmt: skip
    """From p-values and ranks `[T, S, F, sides, H]` those of the signals `rows`, sides joined, `[T, N, F, H]`.

    Also both merged over the horizons, `[T, N, F]`; and `bound[T, N]`, a p-value of the signal whatever the
    dependence: of each feature twice the median over the horizons, of those the smallest times their number.
    """
    steps, count, features, horizons = horizon_p.shape
    ordered = np.empty(horizons)
    two_sided = p.shape[3] > 1
    for t in range(steps):
        for n in range(count):
            signal = rows[n]
            smallest, present = np.inf, 0
            for f in range(features):
                for h in range(horizons):
                    one, fine = p[t, signal, f, 0, h], rank[t, signal, f, 0, h]
                    if two_sided and not np.isnan(one):  # the smaller of 1 and NaN would be 1
                        one = min(1.0, 2.0 * min(one, p[t, signal, f, 1, h]))
                        fine = min(1.0, 2.0 * min(fine, rank[t, signal, f, 1, h]))
                    horizon_p[t, n, f, h], horizon_rank[t, n, f, h] = one, fine
                known = put_in_order(horizon_rank[t, n, f], ordered)
                feature_rank[t, n, f] = merge_ordered(ordered, known, merge)
                known = put_in_order(horizon_p[t, n, f], ordered)
                feature_p[t, n, f] = merge_ordered(ordered, known, merge)
                if known > 0:
                    present += 1
                    middle = merge_ordered(ordered, known, MEDIAN)
                    smallest = min(smallest, middle if known == 1 else min(1.0, 2.0 * middle))
            bound[t, n] = min(1.0, present * smallest) if present > 0 else np.nan


@_exact
def settle(
    merged: Array, rows: Array, scored: Array, learned: Array, settled: int, believed: int, scores: Array, warm: Array
) -> None:
    """The scores of merged values `[T, N]` for the second scorer, `[T, S]`, and whether it is to be believed.

    Values count once the signal had `settled` of them, and are believed once the second scorer knew `believed`.
    """
    for n in range(rows.shape[0]):
        signal = rows[n]
        before, known = scored[signal], learned[signal]
        for t in range(merged.shape[0]):
            warm[t, n] = known >= believed
            if np.isnan(merged[t, n]):
                continue
            if before >= settled:
                scores[t, signal] = -merged[t, n]
                known += 1
            before += 1


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
                count[BLOCKS] += 1
                count[SUM] += count[BLOCK_ALARMS]
                count[SQUARES] += count[BLOCK_ALARMS] ** 2
                count[BLOCK_OBSERVATIONS] = 0
                count[BLOCK_ALARMS] = 0

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

# Columns of an audit's counts.
OBSERVATIONS, ALARMS, BLOCK_OBSERVATIONS, BLOCK_ALARMS, BLOCKS, SUM, SQUARES = 0, 1, 2, 3, 4, 5, 6


@_exact
def median(values: Array, scratch: Array) -> tuple[float, int]:
    """The median of what is not NaN, and how many that are; NaN and 0 where all is."""
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        if np.isnan(value):
            continue
        at = count
        while at > 0 and scratch[at - 1] > value:
            scratch[at] = scratch[at - 1]
            at -= 1
        scratch[at] = value
        count += 1
    if count == 0:
        return np.nan, 0
    low, high = scratch[(count - 1) // 2], scratch[count // 2]
    return low if low == high else 0.5 * low + 0.5 * high, count


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
    recovers: int, gaps: Array, rests: Array, quantiles: Array, scores: Array, forecast: Array, low: Array, high: Array,
) -> None:  # fmt: skip
    """Scores, forecast and band of the observations `values[T, N, F]` with the forecasts `predicted[T, N, F, H]`.

    Scores go to `scores[T, S, F, sides, H]`, in which the other signals are NaN. So are those of the first observations
    of a signal, until `settles` of them were `seen`, and those of the `recovers` observations after a gap longer than
    the horizon: `gaps[S, F]` counts what is missing in a row, `rests[S, F]` what is left to rest. Errors are divided by
    `spread` unless it is empty. The forecast is the median over the horizons. The band, from the largest scores that do
    not alarm, `quantiles[S, F, sides, H]`, reaches as far as half of the horizons find nothing strange; NaN for divided
    ones.
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
                forecast[t, n, f] = median(predicted[t, n, f], scratch)[0]
                if scaled:
                    low[t, n, f], high[t, n, f] = np.nan, np.nan
                    continue
                for h in range(horizons):
                    base = forecast[t, n, f] if light else predicted[t, n, f, h]
                    bound = quantiles[signal, f, :, 0 if light else h]
                    lows[h] = base - bound[bound.shape[0] - 1] if kind != HIGH else base - np.inf
                    highs[h] = base + bound[0] if kind != LOW else base + np.inf
                low[t, n, f] = median(lows, scratch)[0]
                high[t, n, f] = median(highs, scratch)[0]


@_exact
def gather(
    p: Array, rank: Array, rows: Array, horizon_p: Array, horizon_rank: Array, feature_p: Array, feature_rank: Array,
    bound: Array,
) -> None:  # fmt: skip
    """From p-values and ranks `[T, S, F, sides, H]` those of the signals `rows`, sides joined, `[T, N, F, H]`.

    Also the medians over the horizons of both, `[T, N, F]`; and `bound[T, N]`, a p-value of the signal whatever the
    dependence: of each feature twice the median over the horizons, of those the smallest times their number.
    """
    steps, count, features, horizons = horizon_p.shape
    scratch = np.empty(horizons)
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
                feature_p[t, n, f], known = median(horizon_p[t, n, f], scratch)
                feature_rank[t, n, f], _ = median(horizon_rank[t, n, f], scratch)
                if known > 0:
                    present += 1
                    smallest = min(smallest, feature_p[t, n, f] if known == 1 else min(1.0, 2.0 * feature_p[t, n, f]))
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

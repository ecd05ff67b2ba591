"""The compiled inner loops of the forecasters that learn as they go along.

All sums here run in one fixed order, so that the same observations give the same bits, one at a time or all at once.
A series' newest values stand in a ring: the value at time u in `past[u % capacity]`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled

Array = NDArray[Any]

_exact = compiled()

# Learning rows far larger than usual would rule the fit: beyond this many typical sizes they are scaled down.
LARGE_ROW = 8.0
# How fast the typical size follows. It follows at most up to twice itself: an anomaly stays in the rows for as long as
# there are lags, and must not pass for usual before it has left them.
SIZE_RATE = 0.01
SIZE_STEP = 2.0
# How many rows of learning lie between two solutions of the normal equations; fewer at first.
SOLVE_EVERY = 16
EARLY_ROWS = 64
SOLVE_EVERY_EARLY = 4
# Squares of values beyond this, or of values closer to 0 than its inverse, would leave the range of doubles.
LEARNABLE = 1e140

# Columns of an autoregression's counters.
SEEN = 0  # observations, missing ones included
GAP = 1  # of those, how many came since the last that was not missing
ROWS = 2  # rows learned
PERIOD = 3  # 0 while none is known
COUNTERS = 4


class Regression(NamedTuple):
    """An autoregression: its settings (see `Autoregression`), and what it keeps of each series."""

    lags: int
    forget: float
    ridge: float
    past: Array  # rings of values
    missing: Array  # of those, which were filled in
    counters: Array
    gram: Array  # products of the inputs
    cross: Array  # products of inputs and targets
    totals: Array  # the weight of all rows, and their typical size
    weights: Array
    issued: Array  # the newest forecast


@_exact
def last_value(values: Array, rows: Array, last: Array, median: Array) -> None:
    """Forecast the newest value that was not missing."""
    for n in range(rows.shape[0]):
        series = rows[n]
        for t in range(values.shape[0]):
            if not np.isnan(values[t, n]):
                last[series] = values[t, n]
            median[t, n, :] = last[series]


@_exact
def seasonal(
    values: Array, rows: Array, periods_back: int, past: Array, seen: Array, period: Array, last: Array, median: Array
) -> None:
    """Forecast the newest value that stands a whole number of periods before; the last value where there is none."""
    capacity = past.shape[1]
    for n in range(rows.shape[0]):
        series = rows[n]
        ring = past[series]
        for t in range(values.shape[0]):
            if seen[series] == 0 and np.isnan(values[t, n]):
                median[t, n, :] = np.nan  # nothing was ever seen: the series has not begun
                continue
            ring[seen[series] % capacity] = values[t, n]
            if not np.isnan(values[t, n]):
                last[series] = values[t, n]
            seen[series] += 1
            now = seen[series]
            oldest = max(0, now - periods_back * period[series])
            for step in range(median.shape[2]):
                found = last[series]
                if period[series] > 0:
                    at = now + step - period[series]
                    while at >= now:
                        at -= period[series]
                    while at >= oldest:
                        if not np.isnan(ring[at % capacity]):
                            found = ring[at % capacity]
                            break
                        at -= period[series]
                median[t, n, step] = found


@_exact
def smoothing(
    values: Array, rows: Array, rates: Array, forget: float, levels: Array, errors: Array, median: Array
) -> None:
    """Forecast by the exponentially smoothed level whose rate has had the smallest errors of late."""
    for n in range(rows.shape[0]):
        series = rows[n]
        for t in range(values.shape[0]):
            value = values[t, n]
            if not np.isnan(value):
                for i in range(rates.shape[0]):
                    if np.isnan(levels[series, i]):
                        levels[series, i] = value
                    else:
                        # Written so that a constant series stays exactly constant.
                        error = value - levels[series, i]
                        errors[series, i] = forget * errors[series, i] + abs(error)
                        levels[series, i] += rates[i] * error
            median[t, n, :] = levels[series, np.argmin(errors[series])]


@_exact
def _fill_row(ring: Array, now: int, lags: int, period: int, horizon: int, x: Array) -> int:
    """Write what is known at time `now` to `x`, relative to the value then; returns how many entries were written.

    The newest lags come first. Behind them, if there is a period that they do not reach, the values one period before
    each step of the horizon, relative to the value one period before now; and that one, relative to the value now.
    """
    capacity = ring.shape[0]
    base = ring[now % capacity]
    at = now % capacity
    for lag in range(lags - 1):
        at = at - 1 if at > 0 else capacity - 1
        x[lag] = ring[at] - base
    if period <= lags:
        return lags - 1
    before = ring[(now - period) % capacity]
    for step in range(horizon):
        back = period
        while back < step + 1:
            back += period
        x[lags - 1 + step] = ring[(now + step + 1 - back) % capacity] - before
    x[lags - 1 + horizon] = before - base
    return lags + horizon


@_exact
def _learn_row(series: int, now: int, model: Regression, x: Array, y: Array) -> None:
    """Learn from the row known at time `now`, all of whose targets have been seen since."""
    ring, missing, count = model.past[series], model.missing[series], model.counters[series]
    gram, cross, totals = model.gram[series], model.cross[series], model.totals[series]
    lags, forget = model.lags, model.forget
    capacity = ring.shape[0]
    horizon = y.shape[0]
    absent = 0
    base = ring[now % capacity]
    largest = 0.0
    for step in range(horizon):
        at = (now + 1 + step) % capacity
        absent += missing[at]
        y[step] = ring[at] - base
        largest = max(largest, abs(y[step]))
    if 2 * absent > horizon:
        return
    size = _fill_row(ring, now, lags, count[PERIOD], horizon, x)
    for i in range(size):
        largest = max(largest, abs(x[i]))
    if not 1.0 / LEARNABLE < largest < LEARNABLE:
        return  # nothing moved, or not within the range of doubles
    shrink = 1.0
    if totals[1] > 0.0 and largest > LARGE_ROW * totals[1]:
        shrink = LARGE_ROW * totals[1] / largest
    typical = min(largest, SIZE_STEP * totals[1]) if totals[1] > 0.0 else largest
    totals[1] += SIZE_RATE * (typical - totals[1]) if totals[1] > 0.0 else typical
    totals[0] = forget * totals[0] + 1.0
    for i in range(size):
        scaled = shrink * x[i]
        for j in range(i + 1):
            gram[i, j] = forget * gram[i, j] + scaled * (shrink * x[j])
        for step in range(horizon):
            cross[i, step] = forget * cross[i, step] + scaled * (shrink * y[step])
    count[ROWS] += 1


@_exact
def _solve(gram: Array, cross: Array, size: int, ridge: float, factor: Array, weights: Array) -> None:
    """Write the solution of (gram + ridge) weights = cross to `weights`, by Cholesky's decomposition."""
    for i in range(size):
        for j in range(i + 1):
            factor[j, i] = gram[i, j]
        factor[i, i] += ridge
    # Upper triangle, row by row, so that the inner loops run over contiguous memory.
    for k in range(size):
        root = np.sqrt(factor[k, k])
        for j in range(k, size):
            factor[k, j] /= root
        for i in range(k + 1, size):
            scale = factor[k, i]
            for j in range(i, size):
                factor[i, j] -= scale * factor[k, j]
    weights[:size] = cross[:size]
    for i in range(size):
        weights[i] /= factor[i, i]
        for k in range(i + 1, size):
            weights[k] -= factor[i, k] * weights[i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            weights[i] -= factor[i, k] * weights[k]
        weights[i] /= factor[i, i]
    weights[size:] = 0.0


@_exact
def _refit(series: int, model: Regression, factor: Array) -> None:
    """Solve for the weights again; `factor` is scratch."""
    gram, weights, lags = model.gram[series], model.weights[series], model.lags
    count = model.counters[series]
    size = lags - 1 + (weights.shape[1] + 1 if count[PERIOD] > lags else 0)
    trace = 0.0
    for i in range(size):
        trace += gram[i, i]
    if trace > 1.0 / LEARNABLE**2:
        variance = trace / (size * model.totals[series, 0])
        _solve(gram, model.cross[series], size, model.ridge * variance + 1e-9 * trace, factor, weights)


@_exact
def _is_time_to_solve(learned: int) -> bool:
    return learned % (SOLVE_EVERY if learned >= EARLY_ROWS else SOLVE_EVERY_EARLY) == 0


@_exact
def relearn(series: int, model: Regression, scratch: Array) -> None:
    """Start learning anew from the values that the ring holds, after the period has changed."""
    count = model.counters[series]
    horizon = model.weights.shape[2]
    wide = model.gram.shape[1]
    model.gram[series], model.cross[series] = 0.0, 0.0
    model.totals[series], model.weights[series] = 0.0, 0.0
    count[ROWS] = 0
    first = max(0, count[SEEN] - model.past.shape[1]) + max(model.lags, count[PERIOD])
    for now in range(first, count[SEEN] - horizon):
        _learn_row(series, now, model, scratch[wide], scratch[wide + 1, :horizon])
    _refit(series, model, scratch[:wide])


@_exact
def autoregression(values: Array, rows: Array, wanted: Array, model: Regression, scratch: Array, median: Array) -> None:
    """Forecast all steps of the horizon by ridge regressions on the newest values, learned row by row."""
    past, missing, weights, issued = model.past, model.missing, model.weights, model.issued
    lags = model.lags
    capacity = past.shape[1]
    horizon = weights.shape[2]
    wide = model.gram.shape[1]
    factor, x, y = scratch[:wide], scratch[wide], scratch[wide + 1, :horizon]
    for n in range(rows.shape[0]):
        series = rows[n]
        count = model.counters[series]
        ring = past[series]
        for t in range(values.shape[0]):
            value = values[t, n]
            if count[SEEN] == 0 and np.isnan(value):
                median[t, n, :] = np.nan  # nothing was ever seen: the series has not begun
                continue
            now = count[SEEN]
            if np.isnan(value):
                # A gap is filled by what was forecast before it; then by what was a period before, or the last of that.
                if count[GAP] >= horizon and 0 < count[PERIOD] <= now:
                    ring[now % capacity] = ring[(now - count[PERIOD]) % capacity]
                else:
                    ring[now % capacity] = issued[series, min(count[GAP], horizon - 1)]
                count[GAP] += 1
            else:
                ring[now % capacity] = value
                count[GAP] = 0
            missing[series, now % capacity] = count[GAP] > 0
            count[SEEN] += 1
            row = now - horizon
            if row >= max(lags, count[PERIOD]):
                before = count[ROWS]
                _learn_row(series, row, model, x, y)
                if count[ROWS] > before and _is_time_to_solve(count[ROWS]):
                    _refit(series, model, factor)
            if not (wanted[t, n] or count[GAP] == 0):
                median[t, n, :] = np.nan
                continue
            for step in range(horizon):
                y[step] = 0.0
            if now >= max(lags, count[PERIOD]):
                size = _fill_row(ring, now, lags, count[PERIOD], horizon, x)
                for i in range(size):
                    for step in range(horizon):
                        y[step] += x[i] * weights[series, i, step]
            for step in range(horizon):
                y[step] += ring[now % capacity]
                if not abs(y[step]) < np.inf:
                    y[step] = ring[now % capacity]
                median[t, n, step] = y[step]
            if count[GAP] == 0:
                for step in range(horizon):
                    issued[series, step] = y[step]

"""The compiled inner loops of the views."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.detection.spread import centre_and_spread

Array = NDArray[Any]

_inner = inner()
_exact = compiled(with_files=("detection/spread.py",))
_reduction = compiled(fastmath={"reassoc", "nsz", "nnan"})

# Which side of its forecast is anomalous: the codes of the names in `nonconformity.py`.
BOTH, HIGH, LOW = 0, 1, 2

# The score of a signal that does not move at all; no finite mean step has a score as large.
STILL = 745.0

# A stretch of which fewer values than this share can be compared has no distance.
LEAST_KNOWN = 0.5
# So many lags must be there to compare with.
LEAST_LAGS = 50
# The spread of a feature is so many steps, and values further away than so many spreads count as that far. Squared
# differences of such steps add up exactly in double precision.
STEPS = 2.0**12
FURTHEST = 2.0**22
# Offset and spread are taken anew when the signal has doubled its length, and from then on so often.
UNITS_EVERY = 1024
FIRST_UNITS = 32
# So many stretches of a reference, at least, are compared with all others.
REFERENCE_SAMPLES = 200


class LevelMemory(NamedTuple):
    """What is kept of each signal for the level view: rings of the newest values and of the means of forecasts."""

    counts: Array  # of observations
    filled: Array  # values, or what was forecast where they are missing
    known: Array
    paths: Array  # means of forecasts, and of their spreads


class ShapeMemory(NamedTuple):
    """What is kept of each signal for the shape view."""

    past: Array  # (signals, features, width)
    steps: Array  # the same in whole steps
    heads: Array  # where the newest value is
    counts: Array  # of observations
    units: Array  # offset and unit of the steps
    distances: Array  # (signals, lengths, lags + 1), sums of squares
    lost: Array  # of those, how many pairs are not known
    missing: Array


@_inner
def _sided(error: float, side: int) -> float:
    return -error if side == LOW else error


@_exact
def mean_errors(
    values: Array, predicted: Array, spread: Array, ready: Array, first: int, last: int, side: int, scores: Array
) -> None:
    """The mean error `[T, N, F]` over the horizons from `first` up to `last`.

    Where both sides count it is the mean of the sizes, with the sign of the mean error.
    """
    scaled = spread.shape[0] > 0
    for t in range(values.shape[0]):
        for n in range(values.shape[1]):
            for f in range(values.shape[2]):
                total, sizes, known = 0.0, 0.0, 0
                for h in range(first, last):
                    forecast = predicted[t, n, f, h]
                    error = values[t, n, f] - forecast
                    if scaled:
                        error /= max(spread[t, n, f, h], 1e-9 * (abs(forecast) + 1e-300))
                    if not np.isnan(error):
                        total += _sided(error, side)
                        sizes += abs(error)
                        known += 1
                scores[t, n, f] = np.nan
                if known > 0 and ready[t, n, f]:
                    scores[t, n, f] = np.copysign(sizes, total) / known if side == BOTH else total / known


@_exact
def levels(
    values: Array, predicted: Array, issued: Array, issued_spread: Array, ready: Array, rows: Array, side: int,
    memory: LevelMemory, scores: Array,
) -> None:  # fmt: skip
    """The mean of the newest values less that of the forecasts issued before them, `[T, N, F]`.

    A missing value counts as what was forecast for it a step before.
    """
    count, filled, known, paths = memory.counts, memory.filled, memory.known, memory.paths
    length = filled.shape[2]
    scaled = issued_spread.shape[0] > 0
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            slot = count[signal] % length
            for f in range(values.shape[2]):
                value = values[t, n, f]
                known[signal, f, slot] = not np.isnan(value)
                filled[signal, f, slot] = predicted[t, n, f, 0] if np.isnan(value) else value
                scores[t, n, f] = np.nan
                path = paths[0, signal, f, slot]
                if not np.isnan(value) and ready[t, n, f] and not np.isnan(path):
                    total, there = 0.0, 0
                    for i in range(length):
                        total += filled[signal, f, i]
                        there += 1 if known[signal, f, i] else 0
                    if there >= LEAST_KNOWN * length:
                        error = total / length - path
                        if scaled:
                            error /= max(paths[1, signal, f, slot], 1e-9 * (abs(path) + 1e-300))
                        scores[t, n, f] = _sided(error, side)
                total, wide = 0.0, 0.0
                for h in range(length):
                    total += issued[t, n, f, h]
                    wide += issued_spread[t, n, f, h] if scaled else 0.0
                usable = ready[t, n, f]
                paths[0, signal, f, slot] = total / length if usable else np.nan
                paths[1, signal, f, slot] = wide / length if usable else np.nan
            count[signal] += 1


@_exact
def quiets(values: Array, rows: Array, count: Array, steps: Array, last: Array, scores: Array) -> None:
    """Minus the logarithm of the mean step from one value to the next, `[T, N, F]`."""
    length = steps.shape[2]
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            slot = count[signal] % length
            for f in range(values.shape[2]):
                value = values[t, n, f]
                steps[signal, f, slot] = abs(value - last[signal, f])
                last[signal, f] = value
                total, there = 0.0, 0
                for i in range(length):
                    if not np.isnan(steps[signal, f, i]):
                        total += steps[signal, f, i]
                        there += 1
                scores[t, n, f] = np.nan
                if not np.isnan(value) and there >= LEAST_KNOWN * length and count[signal] >= length:
                    mean = total / there
                    scores[t, n, f] = min(-np.log(mean), STILL) if mean > 0.0 else STILL
            count[signal] += 1


@_inner
def _add_squares(newest: float, past: Array, distances: Array) -> None:
    """Add the squared differences of one value from those at lags 1, 2, ... to the distances at those lags."""
    for i in range(past.shape[0]):
        step = np.float64(newest - past[i])
        distances[i] += step * step


@_inner
def _move_squares(newest: float, past: Array, oldest: float, older: Array, distances: Array) -> None:
    """The same, taking away those of the value that leaves the stretch."""
    for i in range(older.shape[0]):
        step = np.float64(newest - past[i])
        gone = np.float64(oldest - older[i])
        distances[i] += step * step - gone * gone


@_reduction
def _least(distances: Array) -> float:
    least = np.inf
    for i in range(distances.shape[0]):
        least = min(least, distances[i])
    return least


@_inner
def _change_with_gaps(newest: float, past: Array, sign: int, distances: Array, lost: Array) -> None:
    """Add or take away squared differences where both values are known, and count where they are not."""
    for i in range(past.shape[0]):
        step = np.float64(newest - past[i])
        if np.isnan(step):
            lost[i] += sign
        else:
            distances[i] += sign * (step * step)


@_inner
def _least_with_gaps(distances: Array, lost: Array, pairs: int) -> float:
    least = np.inf
    for i in range(distances.shape[0]):
        known = pairs - lost[i]
        if known >= LEAST_KNOWN * pairs:
            least = min(least, distances[i] / known)
    return least


@_inner
def _steps_of(value: float, offset: float, unit: float, furthest: float) -> float:
    return float(min(max(np.round((value - offset) / unit), -furthest), furthest))


@_inner
def _furthest(features: int) -> float:
    """How far values count, so that the sum over all features stays exact."""
    furthest = FURTHEST
    while features > 1:
        furthest *= 0.5
        features = (features + 3) // 4
    return furthest


@_exact
def units_of(past: Array, unit: Array) -> bool:
    """Take offset and unit `[2, F]` from the known values `[F, kept]`; false if the ones that are there still do."""
    changed = False
    for f in range(past.shape[0]):
        middle, spread = centre_and_spread(past[f])
        if spread == 0.0:
            continue
        held = unit[1, f] * STEPS
        if held == 0.0 or not 0.5 * held < spread < 2.0 * held or abs(middle - unit[0, f]) > 64.0 * held:
            unit[0, f], unit[1, f] = middle, max(spread / STEPS, 1e-300)
            changed = True
    return changed


@_inner
def _remake(signal: int, lengths: Array, kept: int, memory: ShapeMemory) -> None:
    """Make steps, distances and counts of one signal from its values."""
    past, steps, unit = memory.past[signal], memory.steps[signal], memory.units[signal]
    distances, lost, head = memory.distances[signal], memory.lost[signal], memory.heads[signal]
    features, width = past.shape
    there = min(memory.counts[signal], kept)
    furthest = _furthest(features)
    missing = 0
    for f in range(features):
        for i in range(head, width):
            steps[f, i] = np.nan
        for i in range(head, head + there):
            if np.isnan(past[f, i]):
                missing += 1
            elif unit[1, f] > 0.0:
                steps[f, i] = _steps_of(past[f, i], unit[0, f], unit[1, f], furthest)
    for m in range(lengths.shape[0]):
        distances[m] = 0.0
        # Few signals have gaps, and memory that is never written is not taken from the machine.
        if lost[m].any():
            lost[m] = 0
        for age in range(min(lengths[m], there)):
            for f in range(features):
                row = steps[f, head + age : head + there]
                lags = min(row.shape[0] - 1, distances.shape[1] - 1)
                _change_with_gaps(row[0], row[1 : 1 + lags], 1, distances[m, 1 : 1 + lags], lost[m, 1 : 1 + lags])
    memory.missing[signal] = missing


@_exact
def remake_shapes(rows: Array, lengths: Array, kept: int, memory: ShapeMemory) -> None:
    """Make everything that follows from the values of these signals."""
    for signal in rows:
        _remake(signal, lengths, kept, memory)


@_inner
def _take(
    length: int, steps: Array, head: int, there: int, gaps: bool, distances: Array, lost: Array
) -> None:  # fmt: skip
    """Let the distances `[lags + 1]` of stretches of this length follow the newest of `there` values."""
    most = distances.shape[0] - 1
    for f in range(steps.shape[0]):
        row = steps[f, head : head + there]
        lags = min(row.shape[0] - 1, most)
        older = max(min(row.shape[0] - 1 - length, most), 0)
        if gaps:
            _change_with_gaps(row[0], row[1 : 1 + lags], 1, distances[1:], lost[1:])
            if row.shape[0] > length:
                oldest = row[length + 1 : length + 1 + older]
                _change_with_gaps(row[length], oldest, -1, distances[1:], lost[1:])
            continue
        if older > 0:
            oldest = row[length + 1 : length + 1 + older]
            _move_squares(row[0], row[1 : 1 + lags], row[length], oldest, distances[1:])
        _add_squares(row[0], row[1 + older : 1 + lags], distances[1 + older : 1 + lags])


@_exact
def shapes(values: Array, rows: Array, lengths: Array, kept: int, memory: ShapeMemory, scores: Array) -> None:
    """The root mean square distance `[T, N, lengths]` of the newest values to the nearest stretch before them.

    Of one stretch the distance to lag k is that of the observation before, plus the squared difference of the newest
    value from the one k before it, less that of the value that leaves the stretch.
    """
    past, steps, heads, count, units, distances, lost, missing = memory
    features, width = past.shape[1], past.shape[2]
    furthest = _furthest(features)
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            head = heads[signal]
            if head == 0:
                moved = width - kept
                for f in range(features):
                    for i in range(kept - 1, -1, -1):
                        past[signal, f, moved + i] = past[signal, f, i]
                        steps[signal, f, moved + i] = steps[signal, f, i]
                head = moved
            head -= 1
            heads[signal] = head
            count[signal] += 1
            there = min(count[signal], kept)
            known = False
            for f in range(features):
                value = values[t, n, f]
                known = known or not np.isnan(value)
                missing[signal] += 1 if np.isnan(value) else 0
                if count[signal] > kept and np.isnan(past[signal, f, head + kept]):
                    missing[signal] -= 1
                past[signal, f, head] = value
                unit = units[signal, 1, f]
                steps[signal, f, head] = _steps_of(value, units[signal, 0, f], unit, furthest) if unit > 0.0 else np.nan
            taken = count[signal]
            due = taken % UNITS_EVERY == 0 or (
                taken < UNITS_EVERY and taken >= FIRST_UNITS and taken & (taken - 1) == 0
            )
            changed = due and units_of(past[signal, :, head : head + there], units[signal])
            if changed or taken == FIRST_UNITS:
                _remake(signal, lengths, kept, memory)
            elif taken > FIRST_UNITS:
                gaps = missing[signal] > 0
                for m in range(lengths.shape[0]):
                    _take(lengths[m], steps[signal], head, there, gaps, distances[signal, m], lost[signal, m])
            for m in range(lengths.shape[0]):
                length = lengths[m]
                last = min(there - length, distances.shape[2] - 1)
                scores[t, n, m] = np.nan
                if not known or last - length < LEAST_LAGS or taken < FIRST_UNITS:
                    continue
                pairs = length * features
                if missing[signal] > 0:
                    least = _least_with_gaps(distances[signal, m, length : last + 1], lost[signal, m, length:], pairs)
                else:
                    least = _least(distances[signal, m, length : last + 1]) / pairs
                scores[t, n, m] = np.sqrt(least) / STEPS if least < np.inf else np.nan


@_inner
def _mean_square(one: Array, at: int, other: Array, start: int, length: int, units: Array) -> float:
    """The mean squared difference of two stretches where both are known; infinite where too little is."""
    total, pairs = 0.0, 0
    for f in range(one.shape[0]):
        for i in range(length):
            step = (one[f, at + i] - other[f, start + i]) / units[f]
            if not np.isnan(step):
                total += step * step
                pairs += 1
    return total / pairs if pairs >= LEAST_KNOWN * length * one.shape[0] else np.inf


@_exact
def shapes_beside(
    past: Array, head: int, count: int, lengths: Array, reference: Array, units: Array, scores: Array
) -> None:
    """The distance `[T, lengths]` of the newest values to the nearest stretch of a reference `[F, n]`.

    The T newest of `past[F, width]` have just been taken. Each stretch is compared anew: a reference is short.
    """
    steps, features, longest = scores.shape[0], reference.shape[0], reference.shape[1]
    for t in range(steps):
        at = head + steps - 1 - t
        there = count - (steps - 1 - t)
        for m in range(lengths.shape[0]):
            length = lengths[m]
            known = False
            for f in range(features):
                known = known or not np.isnan(past[f, at])
            scores[t, m] = np.nan
            if not known or there < length:
                continue
            least = np.inf
            for start in range(longest - length + 1):
                least = min(least, _mean_square(past, at, reference, start, length, units))
            scores[t, m] = np.sqrt(least) if least < np.inf else np.nan


@_exact
def furthest_within(reference: Array, units: Array, length: int) -> float:
    """How far stretches of a reference `[F, n]` are from the nearest other one that shares no value, at most.

    So many of them are compared that all of a short reference are. Infinite where there is no other one.
    """
    starts = reference.shape[1] - length + 1
    furthest = 0.0 if starts > length else np.inf
    for start in range(0, starts, max(starts // REFERENCE_SAMPLES, 1)):
        least = np.inf
        for other in range(starts):
            if abs(other - start) >= length:
                least = min(least, _mean_square(reference, start, reference, other, length, units))
        if least < np.inf:
            furthest = max(furthest, least)
    return float(np.sqrt(furthest))

"""The compiled loops of the views."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.detection.views.archive import (
    UNKNOWN,
    Archive,
    begins,
    ends,
    furthest_apart,
    in_units,
    make_room,
    nearest,
    newest_apart,
)
from tocsin.detection.views.view import MOST_AT_ONCE

Array = NDArray[Any]

_inner = inner()
_exact = compiled(with_files=("detection/views/archive.py", "detection/views/view.py"))

# Which side of its forecast is anomalous: the codes of the names in `NONCONFORMITIES`.
BOTH, HIGH, LOW = 0, 1, 2

# The score of a signal that does not move at all; no finite mean step has a score as large.
STILL = 745.0
# A step counts as movement up to this many times the median step: a spike or a shift does not make a signal restless.
JUMP = 3.0
# Units are taken after 50, 100, 200 and 400 observations, or later if the signal has not moved until then. After that
# they stay: a distance of today can be compared with one of last week.
LAST_UNITS = 8 * MOST_AT_ONCE
# A distance from what is usual counts in means up to this many times the usual distance, so that a spike does not
# become a level; and up to twice the level that has been reached, so that a leak can be seen to grow.
CLIP = 6.0


@_inner
def _middle(ordered: Array) -> float:
    half = ordered.shape[0] // 2
    return float(ordered[half] if ordered.shape[0] % 2 else 0.5 * (ordered[half - 1] + ordered[half]))


@_inner
def centre_and_spread(values: Array) -> tuple[float, float]:
    """The median of the known values, and the median distance from it; NaN and 0 if none is known.

    If most values are equal, the mean distance; if all are, a small fraction of their size.
    """
    known = np.empty(values.shape[0])
    count = 0
    for value in values:
        if not np.isnan(value):
            known[count] = value
            count += 1
    if count == 0:
        return np.nan, 0.0
    middle = _middle(np.sort(known[:count]))
    away = np.abs(known[:count] - middle)
    spread = _middle(np.sort(away))
    if spread == 0.0:
        spread = float(np.mean(away))
    return middle, spread if spread > 0.0 else max(1e-9 * abs(middle), 1e-300)


class ShapeMemory(NamedTuple):
    """What is kept of each signal for one length of stretches, beside the archive of its past."""

    counts: Array  # (signals,), of observations
    sums: Array  # (signals, features), of the known values in the current block
    known: Array  # (signals, features), how many these are
    gaps: Array  # (signals, features), for how many blocks nothing is known
    newest: Array  # (signals, features, length), the newest stretch
    held: Array  # (signals,), the score since the last complete block
    frozen: Array  # (signals,), whether the archive is a reference that nothing is added to
    faulty: Array  # (signals, 2 * MOST_AT_ONCE), whether each of the newest observations belongs to a fault


@_inner
def _sided(error: float, side: int) -> float:
    return -error if side == LOW else error


@_exact
def mean_errors(values: Array, predicted: Array, spread: Array, ready: Array, side: int, scores: Array) -> None:
    """The mean error `[T, N, F]` over all horizons.

    Where both sides count it is the mean of the sizes, with the sign of the mean error.
    """
    scaled = spread.shape[0] > 0
    for t in range(values.shape[0]):
        for n in range(values.shape[1]):
            for f in range(values.shape[2]):
                total, sizes, known = 0.0, 0.0, 0
                for h in range(predicted.shape[3]):
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


@_inner
def _minus_log(step: float) -> float:
    return min(-np.log(step), STILL) if step > 0.0 else STILL


@_exact
def movements(values: Array, rows: Array, count: Array, steps: Array, last: Array, scores: Array) -> None:
    """How far a signal moves from one value to the next, `[T, N, F, 3]`.

    The logarithm of the mean step: its negative, and without jumps. Then the newest step itself.
    """
    length = steps.shape[2]
    known = np.empty(length)
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
                        known[there] = steps[signal, f, i]
                        total += known[there]
                        there += 1
                scores[t, n, f, :] = np.nan
                if not np.isnan(value) and 2 * there >= length and count[signal] >= length:
                    scores[t, n, f, 0] = _minus_log(total / there)
                    most, total = JUMP * _middle(np.sort(known[:there])), 0.0
                    for i in range(there):
                        total += min(known[i], most)
                    scores[t, n, f, 1] = -_minus_log(total / there)
                    scores[t, n, f, 2] = steps[signal, f, slot]
            count[signal] += 1


@_inner
def _take_units(signal: int, memory: ShapeMemory, archive: Archive) -> None:
    """Take the offset and unit of each feature anew from its values, if they have become others."""
    end = archive.ends[signal]
    for f in range(archive.past.shape[1]):
        newest = archive.past[signal, f, begins(signal, archive) : end].astype(np.float64)
        middle, spread = centre_and_spread(np.where(newest < UNKNOWN, newest, np.nan))
        rests = np.count_nonzero(newest == middle)
        moves = np.count_nonzero(newest < UNKNOWN) - rests
        if rests > moves > 0:
            # The mean distance of those that are not at rest: a switch that seldom moves must not outweigh all others.
            spread *= (rests + moves) / moves
        # A signal that has not moved has no unit yet.
        known = archive.units[signal, f] > 0.0
        if np.isnan(middle) or spread < 1e-200 or (known and memory.counts[signal] > LAST_UNITS):
            continue
        unit = archive.units[signal, f] if known else 1.0
        if known and 0.5 < spread < 2.0 and abs(middle) < 64.0:
            continue
        for row in (archive.past[signal, f, begins(signal, archive) : end], memory.newest[signal, f]):
            for i in range(row.shape[0]):
                if row[i] < UNKNOWN:
                    row[i] = in_units(np.float64(row[i]), middle, spread)
        archive.offsets[signal, f] += middle * unit
        archive.units[signal, f] = unit * spread


@_inner
def _complete_block(signal: int, memory: ShapeMemory, archive: Archive) -> None:
    """Add the mean of the block's values to the newest stretch and, unless it is a reference, to the archive."""
    features, length = memory.newest.shape[1], memory.newest.shape[2]
    grows = not memory.frozen[signal]
    end = make_room(signal, archive) if grows else 0
    for f in range(features):
        newest = memory.newest[signal, f]
        value = newest[length - 1]
        if memory.known[signal, f] > 0:
            mean = memory.sums[signal, f] / memory.known[signal, f]
            if np.isnan(archive.offsets[signal, f]):
                archive.offsets[signal, f] = mean
            value = in_units(mean, archive.offsets[signal, f], archive.units[signal, f])
            memory.gaps[signal, f] = 0
        else:
            # A short gap repeats the last value; of a long one nothing is known.
            memory.gaps[signal, f] += 1
            value = UNKNOWN if 2 * memory.gaps[signal, f] > length else value
        for i in range(length - 1):
            newest[i] = newest[i + 1]
        newest[length - 1] = value
        if grows:
            archive.past[signal, f, end] = value
        memory.sums[signal, f], memory.known[signal, f] = 0.0, 0


@_inner
def _make_usable(signal: int, block: int, memory: ShapeMemory, archive: Archive) -> None:
    """Let stretches be compared with all but the newest observations, and with none that belong to a fault.

    The newest ones stay as they are for a while: whether an incident is over shows in them.
    """
    count, slots = memory.counts[signal], memory.faulty.shape[1]
    pieces = count // MOST_AT_ONCE
    if pieces > 0 and pieces & (pieces - 1) == 0:
        _take_units(signal, memory, archive)
    archive.usable[signal] = max(archive.sizes[signal] - MOST_AT_ONCE // block, 0)
    for number in range(max(count - slots, 0), count - MOST_AT_ONCE):
        # A block goes with its last observation.
        if memory.faulty[signal, number % slots] and (number + 1) % block == 0:
            at = archive.ends[signal] - (count // block - number // block)
            for f in range(archive.past.shape[1]):
                archive.past[signal, f, at] = UNKNOWN
        memory.faulty[signal, number % slots] = False


@_exact
def shapes(
    values: Array,
    rows: Array,
    block: int,
    newest: int,
    least: int,
    memory: ShapeMemory,
    archive: Archive,
    scores: Array,
) -> None:
    """The root mean square distance `[T, N]` of the newest stretch to the nearest one before it.

    Where its newest blocks are nearer to that one than the whole, their distance counts: a fault in the others is over.
    There is none while there are fewer than `least` to compare with. Between the ends of two
    blocks the last one stays.
    """
    features, length = memory.newest.shape[1], memory.newest.shape[2]
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            if memory.counts[signal] % MOST_AT_ONCE == 0 and not memory.frozen[signal]:
                _make_usable(signal, block, memory, archive)
            known = False
            for f in range(features):
                value = values[t, n, f]
                if not np.isnan(value):
                    known = True
                    memory.sums[signal, f] += value
                    memory.known[signal, f] += 1
            memory.counts[signal] += 1
            count = memory.counts[signal]
            if count % block == 0:
                _complete_block(signal, memory, archive)
                # Stretches that share values with the newest one are no comparison.
                last = ends(signal, archive) - length
                if not memory.frozen[signal]:
                    last = min(last, archive.ends[signal] - 2 * length)
                first = begins(signal, archive)
                memory.held[signal] = np.nan
                if last - first >= least:
                    near, at = nearest(memory.newest[signal], archive.past[signal], first, last, 0.0)
                    if near < np.inf:
                        other = archive.past[signal][:, at : at + length]
                        near = min(near, newest_apart(memory.newest[signal], other, newest))
                        memory.held[signal] = np.sqrt(near)
            scores[t, n] = memory.held[signal] if known else np.nan


@_exact
def note_faults(faulty: Array, rows: Array, counts: Array, noted: Array) -> None:
    """Note which of the newest T observations belong to a fault, `faulty[T, N]`, in `noted[signals, slots]`."""
    steps, slots = faulty.shape[0], noted.shape[1]
    for n in range(rows.shape[0]):
        for t in range(steps):
            noted[rows[n], (counts[rows[n]] - steps + t) % slots] = faulty[t, n]


class LevelMemory(NamedTuple):
    """What is kept of each signal to tell what is usual."""

    counts: Array  # (signals,), of observations
    fine: Array  # (signals, features, .), a ring of the newest values
    coarse: Array  # (signals, features, .), a ring of the means of blocks
    fine_faults: Array  # a bit for each of these: whether it belongs to a fault, and is no comparison
    coarse_faults: Array
    sums: Array  # (signals, features), of the known values in the current block
    known: Array  # (signals, features), how many these are
    periods: Array  # (signals, features), of the season; 0 if there is none
    noise_periods: Array  # of the season of the noise: that of the values or, without one, of how much they move
    centres: Array  # (signals, features), the usual level of a signal without a season; NaN if it has none
    spreads: Array  # (signals, features), the usual distance from what is usual
    newest: Array  # (signals, features, .), a ring of the newest distances
    blocks: Array  # (signals, features, .), a ring of their means over blocks
    held: Array  # (signals, features), the mean of those since the last complete block
    faulty: Array  # (signals, 2 * MOST_AT_ONCE), whether each of the newest observations belongs to a fault
    frozen: Array  # (signals,), how many observations are the reference for all later ones; 0 if there is none
    # (signals, ., 3), the changes of the calendar, the newest first: since which observation (-1 before any time is
    # known), how many observations local time is ahead, and on a holiday how many it is back to a Sunday
    changes: Array


# Values are compared with those at the same phase of this many cycles, and their neighbours: the newest cycles that are
# known and belong to no fault. The newest values may yet turn out to belong to one.
CYCLES, SETTLED = 5, 2 * MOST_AT_ONCE
# Values are kept in single precision.
LARGEST_KEPT = 1e38


@_inner
def _mark(bits: Array, at: int, yes: bool) -> None:
    bit = np.uint8(1 << (at & 7))
    bits[at >> 3] = bits[at >> 3] | bit if yes else bits[at >> 3] & ~bit


@_inner
def _marked(bits: Array, at: int) -> bool:
    return bool(bits[at >> 3] >> (at & 7) & 1)


@_inner
def _note_change(signal: int, ahead: int, back: int, memory: LevelMemory) -> None:
    """Note that the calendar of this observation is not that of the one before."""
    changes = memory.changes[signal]
    if changes[0, 0] < 0:  # nothing was known before
        changes[:, 0], changes[:, 1], changes[:, 2] = 0, ahead, 0
    if changes[0, 1] != ahead or changes[0, 2] != back:
        for i in range(changes.shape[0] - 2, 0, -1):  # the first one stays: a reference is as old
            changes[i] = changes[i - 1]
        changes[0, 0], changes[0, 1], changes[0, 2] = memory.counts[signal], ahead, back


@_inner
def _at_local_time(local: int, changes: Array) -> int:
    """Which observation was made at a local time, in observations; the later one if clocks showed it twice."""
    last = changes.shape[0] - 1
    for i in range(last):
        if local - changes[i, 1] >= changes[i, 0]:
            return int(local - changes[i, 1])
    return int(local - changes[last, 1])


@_inner
def _on_holiday(number: int, changes: Array) -> bool:
    for i in range(changes.shape[0]):
        if number >= changes[i, 0]:
            return bool(changes[i, 2] > 0)
    return False


@_inner
def _usual(signal: int, f: int, week: int, memory: LevelMemory, block: int, some: Array) -> float:
    """What is usual at this time; NaN if nobody knows.

    On a holiday that is what is usual on Sundays, and what was seen on one is not usual on any other day.
    """
    period, count = memory.periods[signal, f], memory.counts[signal]
    if period == 0:
        return float(memory.centres[signal, f])
    fine = CYCLES * period <= memory.fine.shape[2]
    ring = memory.fine[signal, f] if fine else memory.coarse[signal, f]
    faults = memory.fine_faults[signal, f] if fine else memory.coarse_faults[signal, f]
    step = 1 if fine else block
    kept = count if memory.frozen[signal] == 0 else memory.frozen[signal]
    complete, found, taken = kept // step, 0, 0
    oldest = max(complete - ring.shape[0], 0)
    changes = memory.changes[signal]
    back = changes[0, 2] if period == week else 0
    local = count + changes[0, 1] - back
    cycle = (max(SETTLED + step, count - kept) - back) // period + 1
    at = _at_local_time(local - cycle * period, changes) // step
    while taken < CYCLES and at + 1 >= oldest:
        before = found
        for i in range(max(at - 1, oldest), min(at + 2, complete)):
            slot = i % ring.shape[0]
            left_out = _marked(faults, slot) or _on_holiday((i + 1) * step - 1, changes)
            if not np.isnan(ring[slot]) and not left_out:
                some[found] = ring[slot]
                found += 1
        taken += 1 if found > before else 0
        cycle += 1
        at = _at_local_time(local - cycle * period, changes) // step
    if found < 3:
        return np.nan
    return _middle(np.sort(some[:found]))


@_inner
def _leave_out_faults(signal: int, block: int, memory: LevelMemory) -> None:
    """Forget observations that belong to a fault, once that is known."""
    count, slots = memory.counts[signal], memory.faulty.shape[1]
    for number in range(max(count - slots, 0), count - MOST_AT_ONCE):
        if memory.faulty[signal, number % slots]:
            for f in range(memory.fine.shape[1]):
                _mark(memory.fine_faults[signal, f], number % memory.fine.shape[2], True)
                _mark(memory.coarse_faults[signal, f], number // block % memory.coarse.shape[2], True)
            memory.faulty[signal, number % slots] = False


@_inner
def _mean_of_newest(ring: Array, at: int, length: int) -> float:
    """The mean of the known among this many values up to a place in a ring; NaN if fewer than half are known."""
    total, there = 0.0, 0
    for i in range(at - length + 1, at + 1):
        value = ring[i % ring.shape[0]]
        if not np.isnan(value):
            total += value
            there += 1
    return total / there if 2 * there >= length else np.nan


@_inner
def _keep(signal: int, f: int, value: float, block: int, memory: LevelMemory) -> None:
    """Keep a value, and the mean of its block if that is complete."""
    count, kept = memory.counts[signal], memory.fine.shape[2]
    memory.fine[signal, f, count % kept] = value
    _mark(memory.fine_faults[signal, f], count % kept, False)
    if not np.isnan(value):
        memory.sums[signal, f] += value
        memory.known[signal, f] += 1
    if (count + 1) % block == 0:
        known, slot = memory.known[signal, f], count // block % memory.coarse.shape[2]
        memory.coarse[signal, f, slot] = memory.sums[signal, f] / known if 2 * known >= block else np.nan
        _mark(memory.coarse_faults[signal, f], slot, False)
        memory.sums[signal, f], memory.known[signal, f] = 0.0, 0


@_exact
def levels(
    values: Array, calendar: Array, rows: Array, lengths: Array, week: int, side: int, memory: LevelMemory,
    scores: Array,
) -> None:  # fmt: skip
    """The distance from what is usual `[T, N, F, streams]`: of each value, and on average over the newest ones."""
    some = np.empty(3 * CYCLES)
    longest = memory.newest.shape[2]
    block = lengths[-1] // longest
    for n in range(rows.shape[0]):
        signal = rows[n]
        for t in range(values.shape[0]):
            if memory.counts[signal] % MOST_AT_ONCE == 0:
                _leave_out_faults(signal, block, memory)
            count = memory.counts[signal]
            if calendar.shape[0] > 0:
                _note_change(signal, calendar[t, n, 0], calendar[t, n, 1], memory)
            for f in range(values.shape[2]):
                # What is too large to be kept is not known.
                value = values[t, n, f] if abs(values[t, n, f]) <= LARGEST_KEPT else np.nan
                away = _sided(value - _usual(signal, f, week, memory, block, some), side)
                newest = memory.newest[signal, f]
                limit, reached = (
                    CLIP * memory.spreads[signal, f],
                    2.0 * abs(_mean_of_newest(newest, count - 1, longest)),
                )
                limit = reached if limit > 0.0 and reached > limit else limit
                newest[count % longest] = min(max(away, -limit), limit) if limit > 0.0 else away
                if memory.frozen[signal] == 0:
                    _keep(signal, f, value, block, memory)
                if (count + 1) % block == 0:
                    blocks = memory.blocks[signal, f]
                    blocks[count // block % longest] = _mean_of_newest(newest, count, block)
                    memory.held[signal, f] = _mean_of_newest(blocks, count // block, longest)
                scores[t, n, f, :] = np.nan
                if not np.isnan(away):
                    scores[t, n, f, 0] = away
                    for s in range(1, lengths.shape[0] - 1):
                        scores[t, n, f, s] = _mean_of_newest(newest, count, lengths[s])
                    scores[t, n, f, lengths.shape[0] - 1] = memory.held[signal, f]
            memory.counts[signal] += 1


@_exact
def furthest_within(signal: int, length: int, samples: int, archive: Archive) -> float:
    """How far stretches of a reference are from the nearest other one that shares no value, at most.

    About `samples` stretches are compared with all others. Infinite where there is no other one.
    """
    first, last = begins(signal, archive), archive.ends[signal] - length
    if last - first < length:
        return np.inf
    return float(np.sqrt(furthest_apart(archive.past[signal], first, last, length, length, samples)))

"""The compiled inner loops of affiliation, of the volume under the surface and of counting false incidents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled

Array = NDArray[Any]

_exact = compiled()


@_exact
def affiliation(
    starts: Array, stops: Array, alarm_starts: Array, alarm_stops: Array, length: int
) -> tuple[float, float]:
    """Affiliation precision and recall of runs of alarms, given the events of a signal of this length.

    Each event has a zone, the times that are closer to it than to other events, and alarms are cut at its borders. Both
    means are over events; for the precision, over those with alarms in their zone.
    """
    events, runs = starts.shape[0], alarm_starts.shape[0]
    precisions, zones_with_alarms, recalls = 0.0, 0, 0.0
    first = 0
    for event in range(events):
        start, stop = float(starts[event]), float(stops[event])
        low = (stops[event - 1] + start) / 2 if event > 0 else 0.0
        high = (stop + starts[event + 1]) / 2 if event + 1 < events else float(length)
        while first < runs and alarm_stops[first] <= low:
            first += 1
        alarmed, precise, recalled = 0.0, 0.0, 0.0
        nearer_than_previous = low
        run = first
        while run < runs and alarm_starts[run] < high:
            begin, end = max(alarm_starts[run], low), min(alarm_stops[run], high)
            last = run + 1 == runs or alarm_starts[run + 1] >= high
            nearer_than_next = high if last else (end + alarm_starts[run + 1]) / 2
            alarmed += end - begin
            precise += _precise(begin, end, start, stop, low, high)
            recalled += _recalled(begin, end, max(start, nearer_than_previous), min(stop, nearer_than_next), low, high)
            nearer_than_previous = nearer_than_next
            run += 1
        if run > first:
            precisions += precise / alarmed
            zones_with_alarms += 1
        recalls += recalled / (stop - start)
    return precisions / zones_with_alarms, recalls / events


@_exact
def _precise(begin: float, end: float, start: float, stop: float, low: float, high: float) -> float:
    """The integral over an alarm of the chance that a time drawn from the zone is farther from the event than it is."""
    inside = max(0.0, min(end, stop) - max(begin, start))
    zone, shorter_side = high - low, min(start - low, high - stop)
    before = _outside(max(0.0, start - end), max(0.0, start - begin), shorter_side, stop - start, zone)
    after = _outside(max(0.0, begin - stop), max(0.0, end - stop), shorter_side, stop - start, zone)
    return inside + before + after


@_exact
def _outside(nearest: float, farthest: float, shorter_side: float, event: float, zone: float) -> float:
    """The same over the part of an alarm on one side of the event, between these distances from it."""
    closer = _closer(farthest, shorter_side) - _closer(nearest, shorter_side)
    return (farthest - nearest) * (1 - event / zone) - closer / zone


@_exact
def _closer(distance: float, shorter_side: float) -> float:
    """The integral of how much of the zone outside the event is at most x from it, for x from 0 to the distance."""
    longer_side_holds = distance**2 / 2
    if distance < shorter_side:
        return 2 * longer_side_holds
    return longer_side_holds + shorter_side * distance - shorter_side**2 / 2


@_exact
def _recalled(begin: float, end: float, start: float, stop: float, low: float, high: float) -> float:
    """The integral over this part of an event of the chance that a time drawn from the zone is farther than the alarm.

    The part is the one to which no other alarm is nearer.
    """
    if start >= stop:
        return 0.0
    inside = max(0.0, min(end, stop) - max(begin, start))
    zone = high - low
    before = _towards(max(0.0, begin - stop), max(0.0, begin - start), begin - low, zone)
    after = _towards(max(0.0, start - end), max(0.0, stop - end), high - end, zone)
    return inside + before + after


@_exact
def _towards(nearest: float, farthest: float, to_border: float, zone: float) -> float:
    """The same over what lies on one side of the alarm, between these distances; the zone ends there at `to_border`."""
    return farthest - nearest - (_around(farthest, to_border) - _around(nearest, to_border)) / zone


@_exact
def _around(distance: float, to_border: float) -> float:
    """The integral of how much of the zone is nearer to a time than the alarm is, for times up to this far from it."""
    if distance < to_border / 2:
        return distance**2
    return to_border * distance - to_border**2 / 4


@_exact
def surroundings(starts: Array, stops: Array, length: int, reach: int) -> tuple[Array, Array, Array]:
    """The normal observations within reach of an event, and how far their nearest and second nearest events are."""
    events = starts.shape[0]
    far = length + reach
    positions = np.empty(length, np.int64)
    nearest = np.empty(length, np.int64)
    second = np.empty(length, np.int64)
    count = 0
    for after in range(events + 1):  # the observations between this event and the one before
        begin = stops[after - 1] if after > 0 else 0
        end = starts[after] if after < events else length
        for at in range(begin, end):
            left = at - stops[after - 1] + 1 if after > 0 else far
            right = starts[after] - at if after < events else far
            if min(left, right) > reach:
                continue
            farther_left = at - stops[after - 2] + 1 if after > 1 else far
            farther_right = starts[after + 1] - at if after + 1 < events else far
            positions[count] = at
            nearest[count] = min(left, right)
            second[count] = min(max(left, right), farther_left, farther_right)
            count += 1
    return positions[:count], nearest[:count], second[:count]


@_exact
def volume(
    level: Array, near: Array, nearest: Array, second: Array, starts: Array, stops: Array, alarms: Array, hits: Array,
    window: int,
) -> tuple[float, float]:  # fmt: skip
    """The means over the widths from 0 to `window` of the areas under the range-based curves, PR and ROC.

    Thresholds fall from one level to the next. `level[t]` is the first at which an observation alarms, `alarms` and
    `hits` are how many alarm at each, and how many of these are in events. `near` are the levels of the `surroundings`,
    which get partial labels. In reach of two events the label is 1: both give more than half, and labels end there.
    """
    length, levels, events = level.shape[0], alarms.shape[0], starts.shape[0]
    anomalous = hits[levels - 1]
    found_at = np.full(events, levels)  # the level at which something in reach of each event first alarms
    found = np.empty(levels + 1)
    partial = np.empty(levels)
    label_at = np.empty(window // 2 + 1)
    pieces = 0
    pr, roc = 0.0, 0.0
    for width in range(window + 1):
        reach = width // 2
        if width % 2 == 0:
            _widen(level, starts, stops, reach, found_at)
            pieces = _find(starts, stops, reach, found_at, found)
        for distance in range(1, reach + 1):
            label_at[distance] = np.sqrt(1 - distance / width)
        partial[:] = 0.0
        for i in range(near.shape[0]):
            if nearest[i] <= reach:
                partial[near[i]] += 1.0 if second[i] <= reach else label_at[nearest[i]]
        partly, recall_before, fall_out_before = 0.0, 0.0, 0.0
        for k in range(levels):
            partly += partial[k]
            true = hits[k] + partly
            positive = anomalous + partly / 2
            recall = min(true / positive, 1.0) * found[k] / pieces
            fall_out = (alarms[k] - true) / (length - positive)
            pr += (recall - recall_before) * true / alarms[k]
            roc += (fall_out - fall_out_before) * (recall + recall_before) / 2
            recall_before, fall_out_before = recall, fall_out
        roc += (1 - fall_out_before) * (1 + recall_before) / 2
    return pr / (window + 1), roc / (window + 1)


@_exact
def _widen(level: Array, starts: Array, stops: Array, reach: int, found_at: Array) -> None:
    """Take one more observation on either side of each event into its reach; at 0, those of the event itself."""
    for event in range(starts.shape[0]):
        if reach == 0:
            for at in range(starts[event], stops[event]):
                found_at[event] = min(found_at[event], level[at])
            continue
        if starts[event] - reach >= 0:
            found_at[event] = min(found_at[event], level[starts[event] - reach])
        if stops[event] - 1 + reach < level.shape[0]:
            found_at[event] = min(found_at[event], level[stops[event] - 1 + reach])


@_exact
def _find(starts: Array, stops: Array, reach: int, found_at: Array, found: Array) -> int:
    """How many pieces the widened events form; how many of them are found at each level goes to `found`."""
    events = starts.shape[0]
    found[:] = 0
    pieces = 0
    earliest = found_at[0]
    for event in range(events):
        earliest = min(earliest, found_at[event])
        if event + 1 == events or stops[event] - 1 + reach < starts[event + 1] - reach:
            found[earliest] += 1
            pieces += 1
            if event + 1 < events:
                earliest = found_at[event + 1]
    for k in range(1, found.shape[0]):
        found[k] += found[k - 1]
    return pieces


@_exact
def false_incidents(order: Array, in_event: Array, gap: int) -> Array:
    """How many incidents are false when the first, the first two, the first three ... observations of `order` alarm.

    Alarms with at most `gap` observations between them are one incident, and one that holds no alarm in an event is
    false. Incidents only grow and join as alarms are added: each is a tree whose root knows whether it is false.
    """
    length = in_event.shape[0]
    above = np.full(length, -1)  # the observation above each alarm in its tree; a root is above itself
    false = np.zeros(length, np.bool_)
    counts = np.empty(order.shape[0], np.int64)
    count = 0
    for place in range(order.shape[0]):
        at = order[place]
        above[at] = at
        false[at] = not in_event[at]
        count += false[at]
        for side in (-1, 1):
            for step in range(1, gap + 2):
                near = at + side * step
                if near < 0 or near >= length:
                    break
                if above[near] >= 0:
                    count -= _join(_root(above, at), _root(above, near), above, false)
                    break
        counts[place] = count
    return counts


@_exact
def _root(above: Array, at: int) -> int:
    while above[at] != at:
        above[at] = above[above[at]]  # path halving: later searches are shorter
        at = above[at]
    return at


@_exact
def _join(one: int, other: int, above: Array, false: Array) -> int:
    """Make one incident of two, and say by how many there are fewer false ones."""
    if one == other:
        return 0
    before = int(false[one]) + int(false[other])
    above[other] = one
    false[one] = false[one] and false[other]
    return before - int(false[one])

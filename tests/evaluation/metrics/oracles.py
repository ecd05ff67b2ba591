"""Slow, obvious versions of the metrics, written from their definitions and never from the fast code."""

import math
from itertools import groupby

import numpy as np

# How finely time is cut to measure distances between times.
PIECES = 32


def events(flags):
    """First and last position of each unbroken run."""
    runs = (list(run) for marked, run in groupby(range(len(flags)), lambda t: bool(flags[t])) if marked)
    return [(run[0], run[-1]) for run in runs]


def pointwise(labels, alarms):
    hits = sum(1 for label, alarm in zip(labels, alarms, strict=True) if label and alarm)
    return share(hits, sum(alarms)), share(hits, sum(labels))


def point_adjusted(labels, alarms):
    adjusted = list(alarms)
    for first, last in events(labels):
        if any(alarms[first : last + 1]):
            adjusted[first : last + 1] = [1] * (last + 1 - first)
    return pointwise(labels, adjusted)


def event_based(labels, alarms):
    found = [any(alarms[first : last + 1]) for first, last in events(labels)]
    return pointwise(labels, alarms)[0], share(sum(found), len(found))


def range_based(labels, alarms):
    def overlap(run, others):
        covered = [t for t in range(run[0], run[1] + 1) if any(first <= t <= last for first, last in others)]
        pieces = [other for other in others if other[0] <= run[1] and run[0] <= other[1]]
        return len(covered) / (run[1] - run[0] + 1) / len(pieces) if pieces else 0.0

    truth, raised = events(labels), events(alarms)
    overlaps = [overlap(event, raised) for event in truth]
    recall = sum(0.2 * (reached > 0) + 0.8 * reached for reached in overlaps)
    return share(sum(overlap(run, truth) for run in raised), len(raised)), share(recall, len(truth))


def affiliation(labels, alarms):
    """With time cut into short pieces, each as far from others as its middle is."""
    times = (np.arange(len(labels) * PIECES) + 0.5) / PIECES
    alarmed = np.repeat(np.asarray(alarms, dtype=bool), PIECES)
    truth = [(first, last + 1) for first, last in events(labels)]
    to_events = np.array([np.maximum(0, np.maximum(first - times, times - stop)) for first, stop in truth])
    nearest = to_events.argmin(axis=0)
    precisions, recalls = [], []
    for number, (first, stop) in enumerate(truth):
        zone = times[nearest == number]
        alarms_here = times[(nearest == number) & alarmed]
        if not alarms_here.size:
            recalls.append(0.0)
            continue
        distances = to_events[number]
        precisions.append(
            np.mean([np.mean(distances[nearest == number] >= distances[times == time][0]) for time in alarms_here])
        )
        event = times[(times > first) & (times < stop)]
        recalls.append(np.mean([np.mean(np.abs(zone - time) >= np.abs(alarms_here - time).min()) for time in event]))
    return share(sum(precisions), len(precisions)), share(sum(recalls), len(recalls))


def average_precision(labels, scores):
    """The precision at each anomalous observation's own score, averaged."""
    return np.mean([np.mean(labels[scores >= score]) for score in scores[labels == 1]])


def average_precision_at_quantiles(labels, scores, calibration):
    """Precision times the recall that each of 250 thresholds adds, from the highest quantile of the calibration on."""
    ordered = sorted(calibration)
    area = recall_before = 0.0
    for step in range(249, -1, -1):
        alarms = scores >= ordered[step * (len(ordered) - 1) // 249]
        if alarms.any():
            recall = labels[alarms].sum() / labels.sum()
            area += (recall - recall_before) * labels[alarms].mean()
            recall_before = recall
    return area


def roc_auc(labels, scores):
    return np.mean([(a > n) + (a == n) / 2 for a in scores[labels == 1] for n in scores[labels == 0]])


def volume_under_surface(labels, scores, window):
    areas = np.array([range_areas(labels, scores, width) for width in range(window + 1)])
    return areas.mean(axis=0)


def range_areas(labels, scores, width):
    """Areas under the range-based curves, with labels whose borders are as wide as half the width."""
    length, truth, reach = len(labels), events(labels), width // 2
    soft = np.zeros(length)
    for t in range(length):
        for first, last in truth:
            distance = max(first - t, t - last, 0)
            if distance <= reach:
                soft[t] += math.sqrt(1 - distance / width) if distance else 1.0
    soft = np.minimum(soft, 1.0)
    pieces = []
    for first, last in truth:
        if pieces and first - reach <= pieces[-1][1]:
            pieces[-1][1] = last + reach
        else:
            pieces.append([first - reach, last + reach])
    recalls, precisions, fall_outs = [0.0], [1.0], [0.0]
    falling = np.sort(scores)[::-1]
    for position in np.linspace(0, length - 1, 250).astype(int):
        alarms = scores >= falling[position]
        true = np.sum(soft[alarms])
        positive = (np.sum(labels) + np.sum(np.maximum(labels, soft * alarms))) / 2
        found = np.mean([alarms[max(first, 0) : last + 1].any() for first, last in pieces])
        recalls.append(min(true / positive, 1) * found)
        precisions.append(true / np.sum(alarms))
        fall_outs.append((np.sum(alarms) - true) / (length - positive))
    pr = np.sum(np.diff(recalls) * precisions[1:])
    return pr, np.trapezoid([*recalls, 1], [*fall_outs, 1])


def share(part, whole):
    return part / whole if whole else math.nan


def incidents(alarms, gap):
    """The positions of the alarms of each incident."""
    found = []
    for at in np.flatnonzero(alarms):
        if found and at - found[-1][-1] <= gap + 1:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def loosest_threshold(labels, scores, allowed, gap):
    best = math.inf
    for threshold in sorted({score for score in scores if not math.isnan(score)}, reverse=True):
        false = [run for run in incidents(scores >= threshold, gap) if not any(labels[at] for at in run)]
        if len(false) > allowed:
            break
        best = threshold
    return best


def events_found(labels, p, budget, gap):
    scores = np.array([-value if value < 1 else math.nan for value in p])
    allowed = math.floor(budget * sum(1 for label in labels if not label) / 1000)
    alarms = scores >= loosest_threshold(labels, scores, allowed, gap)
    truth = events(labels)
    return share(sum(any(alarms[first : last + 1]) for first, last in truth), len(truth))


def time_under_incidents(labels, pairs):
    under = [any(first <= at <= last for first, last in pairs) for at in range(len(labels))]
    anomalous = [mark for mark, label in zip(under, labels, strict=True) if label]
    normal = [mark for mark, label in zip(under, labels, strict=True) if not label]
    return share(sum(anomalous), len(anomalous)), share(sum(normal), len(normal))

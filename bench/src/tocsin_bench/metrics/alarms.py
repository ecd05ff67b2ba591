"""Precision and recall of alarms against labels, by observations, by events and by nearness.

An event is an unbroken run of labelled observations.
"""

from typing import Any, NamedTuple

import numpy as np

from tocsin_bench.metrics.marks import Flags, Marks, read_alarms, read_labels

Number = float | np.integer[Any]

# The share of range-based recall for finding an event at all; the rest is for how much of it is covered.
EXISTENCE = 0.2


class PrecisionRecall(NamedTuple):
    """The share of alarms that are right, and the share of anomalies that alarm.

    Without alarms the precision is NaN; without anomalies the recall is.
    """

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of the two: 0 where nothing was found, NaN where there was nothing to find."""
        if self.recall == 0:
            return 0.0  # whatever the precision, which without alarms is undefined
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def ratio(part: Number, whole: Number) -> float:
    """A share; NaN if there is nothing to share."""
    return float(part / whole) if whole else float("nan")


def pointwise(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """Precision and recall of single observations.

    >>> pointwise([0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0])
    PrecisionRecall(precision=0.5, recall=0.25)
    """
    truth, raised = _both(labels, alarms)
    hits = np.count_nonzero(truth.flags & raised.flags)
    return PrecisionRecall(ratio(hits, raised.positions.size), ratio(hits, truth.positions.size))


def point_adjusted(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """The same if one alarm anywhere in an event counts as an alarm on all of its observations.

    >>> point_adjusted([0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0])
    PrecisionRecall(precision=0.8, recall=1.0)
    """
    truth, raised = _both(labels, alarms)
    alarms_in_events = raised.within(truth.starts, truth.stops)
    adjusted = (truth.stops - truth.starts)[alarms_in_events > 0].sum()
    false = raised.positions.size - alarms_in_events.sum()
    return PrecisionRecall(ratio(adjusted, adjusted + false), ratio(adjusted, truth.positions.size))


def event_based(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """Recall of events (one alarm is enough to find one) and precision of single observations.

    >>> event_based([0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0])
    PrecisionRecall(precision=0.5, recall=1.0)
    """
    truth, raised = _both(labels, alarms)
    found = np.count_nonzero(raised.within(truth.starts, truth.stops))
    return PrecisionRecall(pointwise(truth, raised).precision, ratio(found, truth.starts.size))


def range_based(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """Means over events and over runs of alarms of how much the other covers, divided by how many pieces cover it.

    The range-based precision and recall of Tatbul et al. (2018) as TSB-AD sets them: flat bias, reciprocal cardinality,
    and a fifth of the recall for finding an event at all.

    >>> range_based([0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0])
    PrecisionRecall(precision=0.5, recall=0.4)
    """
    truth, raised = _both(labels, alarms)
    found = np.count_nonzero(raised.within(truth.starts, truth.stops))
    recall = EXISTENCE * found + (1 - EXISTENCE) * _overlap(truth, raised)
    return PrecisionRecall(ratio(_overlap(raised, truth), raised.starts.size), ratio(recall, truth.starts.size))


def _overlap(marks: Marks, others: Marks) -> float:
    """The sum over the runs of how much of each the others cover, divided by the number of their runs that do."""
    covered = others.within(marks.starts, marks.stops) / (marks.stops - marks.starts)
    return float(np.sum(covered / np.maximum(others.runs_within(marks.starts, marks.stops), 1)))


def _both(labels: Flags, alarms: Flags) -> tuple[Marks, Marks]:
    truth = read_labels(labels)
    return truth, read_alarms(alarms, truth)


def affiliation(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """How near the alarms are to the events, and the events to the alarms, by Huet et al. (2022).

    The nearness of a time is the chance that one drawn from around the event is farther away: 1 where alarms and events
    meet. Alarms at random have a precision of about 0.5.

    >>> affiliation([0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0])
    PrecisionRecall(precision=0.625, recall=0.75)
    """
    # numba is slow to import: only callers of this function wait for it.
    from tocsin_bench.metrics import kernels

    truth = read_labels(labels)
    raised = read_alarms(alarms, truth)
    if not truth.starts.size:
        return PrecisionRecall(float("nan"), float("nan"))
    found = kernels.affiliation(truth.starts, truth.stops, raised.starts, raised.stops, truth.flags.size)
    return PrecisionRecall(*found)

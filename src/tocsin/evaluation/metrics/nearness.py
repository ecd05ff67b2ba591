"""Affiliation: how near alarms and events are to each other, compared with chance."""

from tocsin.evaluation.metrics.marks import Flags, read_alarms, read_labels
from tocsin.evaluation.metrics.precision_recall import PrecisionRecall


def affiliation(labels: Flags, alarms: Flags) -> PrecisionRecall:
    """How near the alarms are to the events, and the events to the alarms, by Huet et al. (2022).

    The nearness of a time is the chance that one drawn from around the event is farther away: 1 where alarms and events
    meet. Alarms at random have a precision of about 0.5.

    >>> affiliation([0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0])
    PrecisionRecall(precision=0.625, recall=0.75)
    """
    # numba is slow to import: only callers of this function wait for it.
    from tocsin.evaluation.metrics import kernels

    truth = read_labels(labels)
    raised = read_alarms(alarms, truth)
    if not truth.starts.size:
        return PrecisionRecall(float("nan"), float("nan"))
    found = kernels.affiliation(truth.starts, truth.stops, raised.starts, raised.stops, truth.flags.size)
    return PrecisionRecall(*found)

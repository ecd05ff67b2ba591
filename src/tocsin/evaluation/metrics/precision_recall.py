"""Precision, recall and F1."""

from typing import Any, NamedTuple

import numpy as np

Number = float | np.integer[Any]


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

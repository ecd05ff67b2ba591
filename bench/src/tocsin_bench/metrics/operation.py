"""Alarms as operators see them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.data import parse_duration
from tocsin_bench.metrics.alarms import ratio
from tocsin_bench.metrics.marks import Flags, Floats, Integers, Marks, read_alarms, read_labels


@dataclass(frozen=True)
class Operation:
    """What alarms meant for operators.

    An event counts as detected if there is an alarm while it lasts. `median_delay` is that of the detected ones, in
    observations after their first, NaN if there is none. Alarms belong to one incident if at most a gap lies between
    them, and an incident is false if none of its alarms fell into an event. Rates per week are NaN if no interval
    was given.
    """

    events: int
    detected_events: int
    median_delay: float
    alarms: int
    false_alarms: int
    false_alarms_per_1000: float
    incidents: int
    false_incidents: int
    incidents_per_week: float
    false_incidents_per_week: float


def detection_delays(labels: Flags, alarms: Flags) -> Floats:
    """For each event, how many observations after its first the first alarm came; NaN where none came in time.

    >>> detection_delays([0, 1, 1, 1, 0, 1], [1, 0, 0, 1, 1, 0]).tolist()
    [2.0, nan]
    """
    truth = read_labels(labels)
    raised = read_alarms(alarms, truth)
    # Infinity stands for an alarm after the last one.
    first_alarms = np.append(raised.positions, np.inf)[np.searchsorted(raised.positions, truth.starts)]
    return np.where(first_alarms < truth.stops, first_alarms - truth.starts, np.nan)


def in_operation(labels: Flags, alarms: Flags, *, interval: Any = None, gap: int = 10) -> Operation:
    """What the alarms mean for operators.

    Parameters
    ----------
    interval : the time between two observations ("5min", or a timedelta), for rates per week.
    gap : how many observations without alarm may lie between two alarms of one incident, as in a `Detector`.

    >>> labels, alarms = np.zeros(2016), np.zeros(2016)
    >>> labels[500:600] = alarms[[503, 504, 1000, 1007, 1500]] = 1
    >>> seen = in_operation(labels, alarms, interval="5min")
    >>> seen.detected_events, seen.median_delay, seen.false_alarms, seen.incidents_per_week
    (1, 3.0, 3, 3.0)
    """
    truth = read_labels(labels)
    raised = read_alarms(alarms, truth)
    delays = detection_delays(truth, raised)
    delays = delays[~np.isnan(delays)]
    starts, stops = incidents_of(raised, checks.integer("gap", gap, least=0))
    hits = Marks(truth.flags & raised.flags)
    false_alarms = raised.positions.size - hits.positions.size
    false_incidents = starts.size - int(np.count_nonzero(hits.within(starts, stops)))
    weeks = float("nan") if interval is None else truth.flags.size * _weeks(interval)
    return Operation(
        events=truth.starts.size,
        detected_events=delays.size,
        median_delay=float(np.median(delays)) if delays.size else float("nan"),
        alarms=raised.positions.size,
        false_alarms=false_alarms,
        false_alarms_per_1000=1000 * ratio(false_alarms, truth.flags.size),
        incidents=starts.size,
        false_incidents=false_incidents,
        incidents_per_week=starts.size / weeks,
        false_incidents_per_week=false_incidents / weeks,
    )


def incidents_of(raised: Marks, gap: int) -> tuple[Integers, Integers]:
    """Where the incidents start, and the first observation after each."""
    apart = np.flatnonzero(raised.starts[1:] - raised.stops[:-1] > gap)
    runs = raised.starts.size
    # The first run of alarms begins an incident and the last one ends one, if there are any.
    begins, ends = np.append(0, apart + 1)[:runs], np.append(apart, runs - 1)[:runs]
    return raised.starts[begins], raised.stops[ends]


def _weeks(interval: Any) -> float:
    try:
        return float(parse_duration(interval) / np.timedelta64(7, "D"))
    except ValueError as error:
        raise ValueError(f"interval must be a length of time: {error}") from None

"""What each method finds at the same tolerated number of false incidents."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin_bench.metrics import kernels
from tocsin_bench.metrics.alarms import ratio
from tocsin_bench.metrics.marks import Flags, Integers, Marks, observations, read_labels, read_p
from tocsin_bench.metrics.operation import incidents_of

BUDGETS = (0.5, 1.0, 2.0)
"""False incidents that are tolerated in 1,000 normal observations."""

TIME_BUDGET = 1.0
"""The budget at which time under incidents is counted where a method has no incidents of its own."""


@dataclass(frozen=True)
class FoundWithinBudget:
    """What is found at 0.5, 1 and 2 false incidents in 1,000 normal observations, and how much time is marked.

    `events_found` is the mean of the three shares of events. `fault_time` and `normal_time` are the shares of anomalous
    and of normal observations under an incident, and `false_over_budget` is the number of incidents without any
    anomalous observation, over one in 1,000 normal ones. What needs events, or normal observations, is NaN without
    them.
    """

    events_found: float
    events_found_at_half: float
    events_found_at_1: float
    events_found_at_2: float
    fault_time: float
    normal_time: float
    false_over_budget: float


def within_budget(
    labels: Flags, p: ArrayLike, *, incidents: ArrayLike | None = None, gap: int = 10
) -> FoundWithinBudget:
    """Everything that is counted at a tolerated number of false incidents.

    Parameters
    ----------
    p : low when anomalous, from 0 to 1; NaN where missing. It is only ranked, so it need not be a p-value.
    incidents : the numbers of the first and the last observation of each, where the method has incidents of its own;
        else they are those of the alarms at one false incident in 1,000 normal observations.
    gap : how many observations without alarm may lie between two alarms of one incident.

    >>> labels, p = np.zeros(3000), np.ones(3000)
    >>> labels[1000:1100] = labels[2000:2100] = 1
    >>> p[[500, 1500]] = 0.01, 0.02  # two false incidents, and of the two events the second is the fainter
    >>> p[1010:1060], p[2050] = 0.001, 0.03
    >>> within_budget(labels, p)  # doctest: +ELLIPSIS
    FoundWithinBudget(events_found=0.833..., events_found_at_half=0.5, events_found_at_1=1.0, events_found_at_2=1.0,
           fault_time=0.255, normal_time=0.000714..., false_over_budget=0.714...)
    """
    truth = read_labels(labels)
    half, one, two = (events_found(truth, p, budget, gap=gap) for budget in BUDGETS)
    if incidents is None:
        starts, stops = incidents_of(_alarms_at(truth, p, TIME_BUDGET, gap), gap)
        incidents = np.column_stack([starts, stops - 1])
    fault_time, normal_time = time_under_incidents(truth, incidents)
    over = _false_over_budget(truth, incidents)
    return FoundWithinBudget(
        events_found=(half + one + two) / 3,
        events_found_at_half=half,
        events_found_at_1=one,
        events_found_at_2=two,
        fault_time=fault_time,
        normal_time=normal_time,
        false_over_budget=over,
    )


def events_found(labels: Flags, p: ArrayLike, budget: float = 1.0, *, gap: int = 10) -> float:
    """The share of events with an alarm in them, at a budget of false incidents in 1,000 normal observations.

    NaN without events. The threshold is the one that `threshold_at` finds.

    >>> labels, p = np.zeros(1500), np.linspace(0.5, 1, 1500)
    >>> labels[[600, 900]], p[[100, 300, 600, 900]] = 1, (0.1, 0.2, 0.15, 0.3)
    >>> events_found(labels, p, 0.5), events_found(labels, p, 1), events_found(labels, p, 2)
    (0.0, 0.5, 1.0)
    """
    truth = read_labels(labels)
    found = np.count_nonzero(_alarms_at(truth, p, budget, gap).within(truth.starts, truth.stops))
    return ratio(found, truth.starts.size)


def threshold_at(labels: Flags, p: ArrayLike, budget: float, *, gap: int = 10) -> float:
    """The loosest threshold on p that keeps to a budget of false incidents in 1,000 normal observations.

    `p <= threshold` is an alarm; minus infinity if none is allowed. A p of 1 or a missing p never alarms. The allowed
    number is rounded down: at a budget of 1, fewer than 1,000 normal observations allow no false incident at all.
    """
    truth = read_labels(labels)
    tolerated = checks.number("budget", budget, above=0, most=1000)
    normal = truth.flags.size - truth.positions.size
    complete = read_p(p, truth)
    scores = np.where(complete < 1, -complete, np.nan)
    return -loosest_threshold(truth, scores, int(tolerated * normal / 1000), gap=gap)


def loosest_threshold(labels: Flags, scores: ArrayLike, allowed: int, *, gap: int = 10) -> float:
    """The smallest threshold on scores down to which there are never more false incidents than allowed.

    Scores are larger when more anomalous; NaN never alarms, `score >= threshold` does. A threshold is loosened only
    until the allowed number is first exceeded: far beyond it, where nearly everything alarms, incidents join, and the
    last of all thresholds has a single one. Infinity if even the largest score is too many.

    >>> loosest_threshold([0] * 8, [5, 4, 1, 1, 1, 1, 1, 3], 1, gap=3)
    4.0
    """
    truth = read_labels(labels)
    given = observations("scores", scores)
    if given.size != truth.flags.size:
        raise ValueError(f"scores must be as many as the labels, {truth.flags.size}, got {given.size}")
    most = checks.integer("allowed", allowed, least=0)
    order = np.argsort(-given, kind="stable")[: np.count_nonzero(~np.isnan(given))]
    counts = kernels.false_incidents(order, truth.flags, checks.integer("gap", gap, least=0))
    falling = given[order]
    # Equal scores alarm together: only the counts after the last of them are possible.
    last = np.append(falling[1:] < falling[:-1], True)[: falling.size]
    possible, counts = falling[last], counts[last]
    too_many = np.append(np.flatnonzero(counts > most), counts.size)[0]
    return float(possible[too_many - 1]) if too_many else float("inf")


def time_under_incidents(labels: Flags, incidents: ArrayLike) -> tuple[float, float]:
    """The shares of anomalous and of normal observations under an incident, each given by its first and last.

    Anything outside the labels is ignored. NaN if there are no such observations.

    >>> time_under_incidents([0, 0, 1, 1, 0, 0], [[1, 2], [5, 9]])
    (0.5, 0.5)
    """
    truth = read_labels(labels)
    covered = _covered(_read_incidents(incidents), truth.flags.size)
    both = np.count_nonzero(covered & truth.flags)
    normal = truth.flags.size - truth.positions.size
    return ratio(both, truth.positions.size), ratio(np.count_nonzero(covered) - both, normal)


def _false_over_budget(truth: Marks, incidents: ArrayLike) -> float:
    pairs = _read_incidents(incidents)
    pairs = pairs[(pairs[:, 1] >= 0) & (pairs[:, 0] < truth.flags.size)]
    anomalous = np.append(0, np.cumsum(truth.flags))
    ends = np.clip(pairs + np.array([0, 1]), 0, truth.flags.size)
    false = np.count_nonzero(anomalous[ends[:, 1]] == anomalous[ends[:, 0]])
    return ratio(false, TIME_BUDGET * (truth.flags.size - truth.positions.size) / 1000)


def _covered(incidents: Integers, length: int) -> NDArray[np.bool_]:
    """Which observations lie under an incident."""
    edges = np.zeros(length + 1, np.int64)
    np.add.at(edges, np.clip(incidents[:, 0], 0, length), 1)
    np.add.at(edges, np.clip(incidents[:, 1] + 1, 0, length), -1)
    return np.cumsum(edges[:-1]) > 0


def _read_incidents(incidents: ArrayLike) -> Integers:
    given = np.asarray(incidents)
    if given.size == 0:
        return np.zeros((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(f"incidents must be pairs of whole numbers, first and last, got shape {given.shape}")
    wrong = given[:, 1] < given[:, 0]
    if wrong.any():
        first, last = given[np.argmax(wrong)]
        raise ValueError(f"incidents must end after they began, got {first} to {last} at position {np.argmax(wrong)}")
    return given.astype(np.int64)


def _alarms_at(truth: Marks, p: ArrayLike, budget: float, gap: int) -> Marks:
    return Marks(read_p(p, truth) <= threshold_at(truth, p, budget, gap=gap))

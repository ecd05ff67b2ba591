"""Which signal of an event moved first, and whether that can be told.

Each signal began to move at some time between two. One was first if it had begun before any other could have. That is
tested, because signals are sometimes unusual by chance: the signal's largest severity until the others could have
begun is ranked among the largest of all these signals in as long stretches of the time before.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.incidents.incident import Incident
from tocsin.detection.results import Result
from tocsin.detection.views.onset import BLOCK, block_means, likely_onsets, spread_of
from tocsin.detection.views.view import length_text

# The observations that count as the time before an event, of the signal that may have been first, and the largest
# number of stretches that it is cut into: shorter ones would depend too much on each other.
BEFORE = 2000
STRETCHES = 100
# The first observations of an incident also show when the signal began to move.
AFTER = 32
# A signal is called the first if p is at most this. A p-value that small needs at least FEWEST stretches.
LEVEL = 0.05
FEWEST = round(1 / LEVEL) - 1


@dataclass(frozen=True, eq=False)
class EventSignal:
    """A signal of an event, with the time before: `severity` is NaN where it was not judged.

    `start` is when its incident was noticed, and `began` between which times it began, if the incident says so.
    Times are dates or numbers, of the same kind for all signals of an event.
    """

    name: str
    times: NDArray[Any]
    values: NDArray[np.float64]
    severity: NDArray[np.float64]
    start: Any
    end: Any
    began: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, result: Result, incident: Incident) -> "EventSignal":
        """What a result with verdicts has around one of its incidents, of the feature that contributed most to it."""
        first = incident.first - result.before
        here = slice(max(first - 3 * BEFORE, 0), max(first + BEFORE, 0))
        verdicts, feature = result.kept_verdicts, result.features.index(incident.features[0])
        times = np.arange(len(result)) + result.before if result.times is None else result.times
        known = incident.began_earliest is not None
        return cls(
            result.signal,
            times[here].copy(),
            verdicts.value[here, 0, feature].copy(),  # not a view, which would keep everything in memory
            np.where(verdicts.warm[here, 0], verdicts.severity[here, 0], np.nan),
            incident.start,
            incident.end,
            (incident.began_earliest, incident.began_latest) if known else None,
        )


@dataclass(frozen=True)
class Mover:
    """When a signal of an event began to move, at the earliest and at the latest, and how far it went.

    `score` is its largest distance from its median in the time before the event, in units of its interquartile range
    there (the robust score of BARO); NaN if it has no values there.
    """

    signal: str
    earliest: Any
    latest: Any
    score: float
    #: The signals of the event that are known to depend on it.
    needed_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class MovingOrder:
    """The signals of an event in the order in which they began to move, and whether the first one really was.

    Where that cannot be told, what others depend on comes before them.

    `p` is the p-value of the signal at the top, for the hypothesis that it was as usual until the others could have
    begun. It is one if the stretch that is tested is exchangeable with those before (stationary, and independent from
    one stretch to the next), and if no other began before its interval. NaN if the intervals overlap, or there is too
    little time before.
    """

    movers: tuple[Mover, ...]
    p: float = np.nan
    #: How long before any other one could have begun the first had, in seconds, or in units of the times.
    lead: float = np.nan

    @property
    def first(self) -> str | None:
        """The signal that moved first; None if nobody can tell."""
        return self.movers[0].signal if self.p <= LEVEL else None

    @property
    def candidates(self) -> tuple[str, ...]:
        """The signals that may have begun before any other one surely had."""
        surely = min(one.latest for one in self.movers)
        return tuple(one.signal for one in self.movers if one.earliest <= surely)

    def __str__(self) -> str:
        """The answer in a sentence."""
        top = self.movers[0].signal
        if len(self.movers) < 2:
            return f"only {top} moved"
        if np.isnan(self.lead):
            several = self.candidates
            *most, last = several if len(several) < 5 else (*several[:3], f"{len(several) - 3} others")
            needed = [one for one in self.movers[0].needed_by if one in several]
            known = f"; {' and '.join(needed)} {'depend' if needed[1:] else 'depends'} on {top}" if needed else ""
            return f"cannot tell which moved first: {', '.join(most)} or {last}{known}"
        if np.isnan(self.p):
            return f"cannot tell: {top} seems to have moved first, but there is too little before to compare with"
        if self.first is None:
            return f"cannot tell: {top} seems to have moved first (p = {self.p:.2f})"
        ahead = length_text(self.lead, 1.0 if isinstance(self.movers[0].latest, np.datetime64) else None)
        return f"first: {top}, at least {ahead} before the rest (p = {self.p:.2f})"


def moving_order(signals: Sequence[EventSignal], depends: Collection[tuple[str, str]] = ()) -> MovingOrder:
    """In which order the signals of an event began to move, and whether the first one really was the first.

    `depends` are known relations: pairs of names, of which the first signal depends on the second.
    """
    onsets = {id(one): _onset(one) for one in signals}
    ordered = sorted(signals, key=lambda one: (onsets[id(one)][::-1], one.name))
    before = min(earliest for earliest, _ in onsets.values())
    movers = [
        Mover(
            one.name, *onsets[id(one)], _score(one, before),
            tuple(other.name for other in ordered if (other.name, one.name) in depends),
        )
        for one in ordered
    ]  # fmt: skip
    order = MovingOrder(tuple(_with_relations(movers)))
    if len(ordered) < 2:
        return order
    earliest, latest = onsets[id(ordered[0])]
    others = min(onsets[id(one)][0] for one in ordered[1:])
    if not latest < others:
        return order
    return replace(order, p=_p_value(ordered, earliest, others), lead=_seconds(others, latest))


def _with_relations(movers: list[Mover]) -> Iterator[Mover]:
    """The movers in the order of their onsets but, of those that may have begun next, what others depend on first."""
    left = list(movers)
    while left:
        top, passed = left[0], [left[0]]
        surely = top.latest
        while further := [
            one for one in left if one not in passed and top.signal in one.needed_by and one.earliest <= surely
        ]:
            top = further[0]
            passed.append(top)
        yield top
        left.remove(top)


def _onset(signal: EventSignal) -> tuple[Any, Any]:
    """Between which times a signal began to move: more exactly than its incident says, which was not over when it did.

    What is usual is known from the time before, and every observation counts.
    """
    start, stop = (int(np.searchsorted(signal.times, one, side="right")) for one in (signal.start, signal.end))
    begin = int(np.searchsorted(signal.times, signal.began[0])) - AFTER if signal.began else start - BEFORE // 4
    begin = max(min(begin, start - AFTER), start // 2)
    told = signal.began or (*signal.times[begin : begin + 1], signal.start, signal.start)[:2]
    past = signal.values[max(begin - BEFORE, 0) : begin]
    past = past[np.isfinite(past)]
    if past.size < 4 * BLOCK:
        return min(told[0], signal.start), min(told[1], signal.start)
    away = np.nan_to_num(signal.values[begin : min(stop, start + AFTER)] - np.median(past))[::-1]
    # It had begun when it was noticed.
    likely = likely_onsets(away, BLOCK * spread_of(block_means(past)) ** 2, since=away.size - (start - begin))
    if likely.size == start - begin:  # such as of a season: what the incident says is more exact
        return min(told[0], signal.start), min(told[1], signal.start)
    return signal.times[start - 1 - likely[-1]], signal.times[start - 1 - likely[0]]


def _score(signal: EventSignal, before: Any) -> float:
    now = int(np.searchsorted(signal.times, before))
    past, since = (part[np.isfinite(part)] for part in (signal.values[max(now - BEFORE, 0) : now], signal.values[now:]))
    if not past.size or not since.size:
        return float("nan")
    low, middle, high = np.quantile(past, [0.25, 0.5, 0.75])
    furthest = float(np.max(np.abs(since - middle)))
    spread = float(high - low) or float(np.mean(np.abs(past - middle)))
    return furthest / spread if spread else float("inf") if furthest else 0.0


def _p_value(signals: Sequence[EventSignal], earliest: Any, others: Any) -> float:
    """How often any of the signals was as far off, in as long a stretch before, as the first was until the others."""
    first = signals[0]
    times = [_seconds(one.times, earliest) for one in signals]
    now = int(np.searchsorted(times[0], 0.0))
    judged = np.flatnonzero(np.isfinite(first.severity[max(now - BEFORE, 0) : now])) + max(now - BEFORE, 0)
    if not judged.size:
        return float("nan")
    length, until = -float(times[0][judged[0]]), float(_seconds(others, earliest))
    stretch = min(max(until, length / STRETCHES), length / (2 * FEWEST))
    count = int(length / stretch)
    edges = stretch * np.arange(-count, 1)
    furthest = np.full(count, np.nan)
    for clock, one in zip(times, signals, strict=True):
        furthest = np.fmax(furthest, _largest(clock, one.severity, edges))
    furthest = furthest[np.isfinite(furthest)]
    (seen,) = _largest(times[0], first.severity, np.array([until - stretch, until]))
    if furthest.size < FEWEST or np.isnan(seen):
        return float("nan")
    return float((1 + np.count_nonzero(furthest >= seen)) / (1 + furthest.size))


def _largest(times: NDArray[np.float64], severity: NDArray[np.float64], edges: NDArray[Any]) -> NDArray[Any]:
    """The largest severity from each edge up to the next; NaN if there is none."""
    places = np.searchsorted(times, edges)
    found = [severity[first:last] for first, last in pairwise(places)]
    return np.array([np.fmax.reduce(part, initial=np.nan) for part in found])


def _seconds(times: Any, since: Any) -> Any:
    """How long after a time others are: in seconds, or in their own units if they are numbers."""
    passed = times - since
    dated = isinstance(since, np.datetime64)
    return passed / np.timedelta64(1, "s") if dated else np.asarray(passed, dtype=np.float64)[()]

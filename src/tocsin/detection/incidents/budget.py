"""One budget for many signals: selects which of their proposed incidents are reported."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.constants import constants
from tocsin.detection.incidents.verdict import ENDED, NORMAL, Verdicts
from tocsin.detection.settings.alarm_rate import parse_budget
from tocsin.detection.settings.detector_settings import DetectorSettings

# Each signal proposes this many incidents per observation, unless its budget is for more than a tenth or less than a
# hundredth of them: there must be a choice, but no more than a signal can tell apart.
PROPOSED = 1 / 1000
# A budget of more than this per observation leaves no choice.
LARGEST_SHARE = 5 * PROPOSED
# How many proposals are kept for ranking new ones.
POOL = 4096
# An incident recurs if so many like it came before: how often they came is how rare it is, whatever its evidence.
FEW = 3
# An incident is not like others if it has more than so many times their evidence: that is news. Nor is it like much
# severer ones: a fault does not make everything smaller normal.
MUCH_MORE = 2.5
# A job that comes every day or week is known by its time, whatever else it looks like so far: the times between its
# incidents differ by at most this share of them.
ON_TIME = 0.02
# The tail of the pool is measured between its median and this quantile.
TAIL = 0.98


class Proposal(NamedTuple):
    """An incident as a signal proposes it: `rarity` is minus the log rate of such an incident on this signal alone.

    Incidents of a signal and `kind`, a number, are alike if they have about as much `evidence`, or `start` as long
    after one another as others did.
    """

    rarity: float
    signal: int = 0
    kind: int = 0
    evidence: float = 0.0
    start: float = 0.0


def rhythm(starts: NDArray[np.float64], start: float) -> float:
    """The time between incidents that started then, if a new one keeps to it for the fourth time; else 0.

    >>> rhythm(np.array([100.0, 350.0, 1101.0, 2100.0]), 3100.0)
    1000.0
    """
    for period in np.sort(start - starts):
        if period > 0.0:
            late = np.abs(starts[:, np.newaxis] + period * np.arange(1, FEW + 1) - start)
            if (late <= ON_TIME * period * np.arange(1, FEW + 1)).any(axis=0).all():
                return float(period)
    return 0.0


class Selection(Protocol):
    """Selects which of the incidents proposed by many signals are reported.

    `now` is how long all signals have been watched: the sum of their times, in the unit of the rates.
    """

    def tells(self, proposal: Proposal, now: float, *, joins: bool = False) -> bool:
        """Whether to report an incident by now; `joins` says that it belongs to what is reported anyway."""

    def learn(self, proposal: Proposal, now: float, *, joined: bool = False) -> None:
        """Record the end of an incident; `joined` says that it was part of what another one was reported for."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""


class Pool:
    """The newest proposals of all signals, how rare each was, and when it was made.

    `alone` is how much of the time is that of a single signal.
    """

    def __init__(self, since: float = 0.0, alone: float = 1.0) -> None:
        self._since, self._alone = since, alone
        self._kept = {name: np.zeros(POOL) for name in ("rarities", "times", "signals", "kinds", "evidence", "starts")}
        self._count = 0

    def _newest(self, name: str) -> NDArray[np.float64]:
        return self._kept[name][: self._count]  # all of them once it is full

    @property
    def rarities(self) -> NDArray[np.float64]:
        """How rare those were that are ranked."""
        rarities = self._newest("rarities")
        return rarities[~np.isnan(rarities)]

    def span(self, now: float) -> float:
        """How long the signals were watched while they made them."""
        oldest = self._kept["times"][self._count % POOL] if self._count >= POOL else self._since
        return float(now - oldest)

    def rarity(self, proposal: Proposal, now: float) -> float:
        """How rare a proposal is: what its signal says, or how often those like it came if it recurs."""
        places = self._same_kind(proposal)
        places = places[MUCH_MORE * self._newest("evidence")[places] >= proposal.evidence]
        alike = places[self._newest("evidence")[places] <= MUCH_MORE * proposal.evidence]
        between = rhythm(self._newest("starts")[places], proposal.start)
        if not between and alike.size >= FEW:
            between = max(now - float(self._newest("times")[alike].min()), 1e-9) / alike.size
        return min(proposal.rarity, math.log(between * self._alone)) if between else proposal.rarity

    def _same_kind(self, proposal: Proposal) -> NDArray[np.intp]:
        same = (self._newest("signals") == proposal.signal) & (self._newest("kinds") == proposal.kind)
        return np.flatnonzero(same)

    def lower(self, proposal: Proposal, rarity: float) -> None:
        """Let those that are like a proposal which recurs count as no rarer than this."""
        places = self._same_kind(proposal)
        like = places[self._newest("evidence")[places] <= MUCH_MORE * proposal.evidence]
        rarities = self._newest("rarities")
        rarities[like] = np.minimum(rarities[like], rarity)

    def add(self, proposal: Proposal, rarity: float, now: float) -> None:
        """Keep one more, which counts as this rare, replacing the oldest if it is full.

        One of unknown rarity is not ranked: it only shows how often those like it come.
        """
        for kept, value in zip(self._kept.values(), (rarity, now, *proposal[1:]), strict=True):
            kept[self._count % POOL] = value
        self._count += 1

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""
        kept = min(self._count, POOL)
        return {**{name: values[:kept].copy() for name, values in self._kept.items()}, "count": np.array(self._count)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        self._count = int(state["count"])
        for name, values in self._kept.items():
            values[: min(self._count, POOL)] = state[name]


class IncidentBudget:
    """Reports about this many incidents per time, the rarest of all signals, and all that are certain.

    An incident's rarity on its own signal, about which its past says little, is only a score here: it is ranked among
    the proposals of all signals. The threshold then follows the reported incidents.

    A budget rations what may be chance. An incident far beyond what all signals propose is certain: it is told whatever
    was told before, does not use up the budget, and is left out of the ranking, so that faults do not make the next
    ones look ordinary. Each certain incident asks for more of the next one, and time takes that back.

    Time is the sum over all signals, and `alone` the part of one of them. If it is clock time, which they share,
    `since` says when it began, and `signals` how many there are.
    """

    def __init__(self, rate: float, *, since: float = 0.0, signals: int = 1, alone: float = 1.0) -> None:
        self.rate, self.signals = rate, signals
        self._pool, self._constants = Pool(since, alone), constants()
        # The threshold follows the reported incidents, within bounds: many true faults must not silence the next ones.
        # At first only the rarest are told: with few proposals, rates far out in heavy tails are too small.
        self._tightest = -12 * self._constants.tightening
        self._loosened, self._surplus, self._at = self._tightest, 0.0, since

    def tells(self, proposal: Proposal, now: float, *, joins: bool = False) -> bool:
        """Whether to report an incident by now."""
        step = self._constants.tightening
        allowed = self.rate * max(now - self._at, 0.0)
        self._loosened = min(self._loosened + step * allowed, 4 * step)
        self._surplus = max(self._surplus - step * allowed, 0.0)
        self._at = max(now, self._at)
        rarity = self._pool.rarity(proposal, now)
        certain = self._certain(now) * (1.0 + step * self._surplus)
        if rarity > certain:
            self._surplus += 0.0 if joins else 1.0
            return True
        told = self._how_often(rarity, certain, now) < self.rate * math.exp(self._loosened)
        if told and not joins:
            self._loosened = max(self._loosened - step, self._tightest)
        return told

    def learn(self, proposal: Proposal, now: float, *, joined: bool = False) -> None:
        """Record the end of an incident."""
        rarity = self._pool.rarity(proposal, now)
        if rarity < proposal.rarity:
            self._pool.lower(proposal, rarity)
        self._pool.add(proposal, math.nan if joined else rarity, now)

    def _certain(self, now: float) -> float:
        """Beyond which rarity an incident is certain: by the tail, it comes at a small part of the budgeted rate."""
        return self._tail(now).reaches(self.rate * math.exp(-self._constants.certainty))

    def _how_often(self, rarity: float, certain: float, now: float) -> float:
        """The rate of incidents this rare on any signal."""
        rarities = self._pool.rarities
        if rarities.size < self._constants.least:
            return self.signals * math.exp(-rarity)
        reached = int(np.count_nonzero((rarities >= rarity) & (rarities <= certain)))
        often = (1 + reached) / self._pool.span(now)
        return often if reached > 0 else min(self._tail(now).rate(rarity), often)

    def _tail(self, now: float) -> "_Tail":
        """The tail of the pool, by quantiles: they hardly depend on the few that are faults."""
        rarities, given = self._pool.rarities, self._constants
        if rarities.size < given.least:
            return _Tail(0.0, float(self.signals), given.prior_decay)
        middle, high = np.quantile(rarities, (0.5, TAIL))
        beyond = (1.0 - TAIL) * rarities.size
        decay = (high - middle) / math.log(0.5 / (1.0 - TAIL))
        decay = (beyond * decay + given.prior * given.prior_decay) / (beyond + given.prior)
        return _Tail(float(high), (1.0 + beyond) / self._pool.span(now), float(decay))

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""
        return {**self._pool.state(), "loop": self.loop}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        self._pool.restore(state)
        self.loop = state["loop"]

    @property
    def loop(self) -> NDArray[np.float64]:
        """What was told so far: it does not follow from the incidents that are learned."""
        return np.array([self._loosened, self._surplus, self._at])

    @loop.setter
    def loop(self, values: NDArray[np.float64]) -> None:
        self._loosened, self._surplus, self._at = map(float, values)


class _Tail(NamedTuple):
    """The rates of the rarest proposals: exponential in their rarity."""

    begins: float
    often: float
    decay: float

    def rate(self, rarity: float) -> float:
        return self.often * math.exp(-(rarity - self.begins) / self.decay)

    def reaches(self, rate: float) -> float:
        """Which rarity has this rate."""
        return self.begins + self.decay * math.log(self.often / rate)


class FalseShare:
    """Reports as many incidents as keep the share of false ones near a target: the Benjamini-Hochberg rule, online.

    The number of false incidents this rare follows from the signals' own rate estimates, and holds as far as these do.
    Only the newest proposals count, so that a time with many faults is forgotten.
    """

    def __init__(self, share: float, proposed: float) -> None:
        self.share, self.proposed = share, proposed
        self._pool, self._least = Pool(), 2 * constants().least

    def tells(self, proposal: Proposal, now: float, *, joins: bool = False) -> bool:
        """Whether to report an incident by now."""
        # Judged over a time in which signals propose enough without any fault.
        watched = max(self._pool.span(now), self._least / self.proposed)
        return bool(mostly_true(np.append(self._pool.rarities, proposal.rarity), watched, self.share)[-1])

    def learn(self, proposal: Proposal, now: float, *, joined: bool = False) -> None:
        """Record the end of an incident."""
        self._pool.add(proposal, proposal.rarity, now)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""
        return self._pool.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        self._pool.restore(state)


def mostly_true(rarities: NDArray[np.float64], watched: float, share: float) -> NDArray[np.bool_]:
    """The incidents of a whole history of which about this share is false: the Benjamini-Hochberg rule."""
    rates = np.exp(-rarities)
    ordered = np.sort(rates)
    kept = ordered[ordered * watched <= share * np.arange(1, rates.size + 1)]
    return rates <= (kept[-1] if kept.size else -1.0)


def check_budget(name: str, value: Any) -> str | float:
    """A budget in its proper type: incidents per time, or the share of incidents that may be false."""
    if isinstance(value, str):
        parse_budget(name, value, "a number between 0 and 1, the share of incidents that may be false, or ")
        return value
    return checks.number(name, value, above=0, below=1)


def make_selection(budget: str | float, signals: int, interval: float | None) -> tuple[Selection, float, float | None]:
    """The selection for a budget; the rate of proposals per observation; and the rate of reported incidents.

    The last is None for a share of false incidents. Time is counted in observations.
    """
    if not isinstance(budget, str):
        return FalseShare(budget, PROPOSED), PROPOSED, None
    if interval is None:
        raise ValueError(f"budget={budget!r} is over time: set the sampling interval too, such as interval='5min'")
    incidents, seconds = parse_budget("budget", budget)
    rate = incidents * interval / seconds / signals
    if rate > LARGEST_SHARE:
        raise ValueError(
            f"budget must be at most 1 incident per {1 / LARGEST_SHARE:g} observations, got {budget!r}, which is "
            f"{rate:.3g} per observation of {interval:g} seconds with {signals} signals"
        )
    return IncidentBudget(rate, alone=1 / signals), min(max(10 * rate, PROPOSED), 100 * rate), rate


Rows = NDArray[np.intp]


class Sharing:
    """Passes the selected incidents of a fleet's signals, from the observation at which they are selected.

    Observations count in time order, and those of the same time in the order of their rows.
    """

    def __init__(self, selection: Selection, signals: int) -> None:
        self.selection = selection
        self._watched = 0  # observations of all signals that could have alarmed
        self._proposed = np.tile(_NOTHING, (signals, 1))  # the incident of each signal so far
        self._told, self._joined = np.zeros(signals, dtype=bool), np.zeros(signals, dtype=bool)

    def select(self, verdicts: Verdicts, rows: Rows) -> Verdicts:
        """The verdicts with only the selected incidents."""
        able = ~np.isnan(verdicts.rate)
        watched = self._watched + np.cumsum(able.ravel()).reshape(able.shape)
        self._watched += int(np.count_nonzero(able))
        told = np.repeat(self._told[rows][np.newaxis], len(able), axis=0)
        opened = np.zeros_like(told)
        ends = np.isin(verdicts.state, ENDED)
        for step, column in np.argwhere((verdicts.alarm & able) | ends):
            row, now = rows[column], float(watched[step, column])
            so_far = Proposal(*self._proposed[row].tolist())
            if not ends[step, column]:
                proposal = _grown(so_far, int(row), verdicts, step, column, now)
                self._proposed[row] = proposal
                # What begins at once is one event, and is paid for once.
                joins = bool(opened[step].any())
                if not self._told[row] and self.selection.tells(proposal, now, joins=joins):
                    self._told[row] = opened[step, column] = told[step:, column] = True
                    self._joined[row] = joins
            elif so_far.rarity > -np.inf:
                self.selection.learn(so_far, now, joined=bool(self._joined[row]))
                self.forget(row)
                told[step + 1 :, column] = False
        return replace(
            verdicts,
            alarm=verdicts.alarm & told,
            opened=opened,
            state=np.where(told, verdicts.state, NORMAL),
        )

    def forget(self, row: int) -> None:
        """Forget the incident of this signal."""
        self._proposed[row], self._told[row], self._joined[row] = _NOTHING, False, False

    def state(self) -> dict[str, Any]:
        """Everything needed to resume later."""
        own = {"watched": np.array(self._watched), "proposed": self._proposed, "told": self._told}
        return {**own, "joined": self._joined, "selection": self.selection.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state()` returned."""
        self._watched = int(state["watched"])
        self._proposed[:], self._told[:], self._joined[:] = state["proposed"], state["told"], state["joined"]
        self.selection.restore(state["selection"])


_NOTHING = Proposal(-math.inf)


def _grown(so_far: Proposal, signal: int, verdicts: Verdicts, step: int, column: int, now: float) -> Proposal:
    """An incident with one more alarm. Its kind is the feature and the side of its first one."""
    rarity, evidence = -math.log(verdicts.rate[step, column]), float(verdicts.evidence[step, column])
    if so_far.rarity > -math.inf:
        rarity, evidence = max(so_far.rarity, rarity), max(so_far.evidence, evidence)
        return so_far._replace(rarity=rarity, evidence=evidence)
    kind = 2 * int(verdicts.cause[step, column, 2]) + int(verdicts.score[step, column] < 0)
    return Proposal(rarity, signal, kind, evidence, now)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HistoryBudget:
    """A number of incidents per time ("5/week"), or a share of false ones (0.1), for this many signals."""

    budget: str | float
    signals: int

    def proposing(self, settings: DetectorSettings) -> DetectorSettings:
        """The settings of one of the signals, which proposes more incidents than are selected."""
        return replace(settings, alarm_rate=make_selection(self.budget, self.signals, settings.interval_seconds)[1])

    def select(self, rarities: Floats, intervals: Floats, watched: Floats, of_signals: Floats) -> NDArray[np.bool_]:
        """Which of the incidents that are this rare are reported.

        `intervals` are those of their signals, in seconds; `watched` is how many observations each signal was watched
        for, and `of_signals` are the intervals of those.
        """
        if isinstance(self.budget, str):
            incidents, seconds = parse_budget("budget", self.budget)
            times = float(np.sum(watched * of_signals)) / self.signals / seconds
            return rarest(rarities + np.log(intervals), incidents * times)
        return mostly_true(rarities, float(np.sum(watched)), self.budget)


def rarest(rarities: Floats, allowed: float) -> NDArray[np.bool_]:
    """The rarest incidents allowed; a fraction rounds up to one."""
    chosen = np.zeros(rarities.size, dtype=bool)
    chosen[np.argsort(-rarities, kind="stable")[: math.ceil(allowed)]] = True
    return chosen

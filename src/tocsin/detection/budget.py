"""One budget for many signals: of the incidents that they propose, which ones are told."""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.detection.alarm_rate import parse_budget

# Signals propose more incidents than the budget allows, so that there is something to choose from: about ten times as
# many, and one per 1,000 observations where that is not more than they can tell apart.
MORE, USUAL_RATE, MOST_MORE = 10, 1 / 1000, 100
# A budget that comes to more than this for an observation leaves nothing to choose from.
LARGEST_SHARE = 1 / 200
# How many proposals are kept to rank new ones among, and from how many on.
POOL = 4096
LEAST_POOLED = 20
# What is rarer than all proposals is estimated from so many times the root of their number of the rarest. Where the
# signals' own rates are right, rarities decay by one nat, but on heavy tails more slowly: twice as slowly counts as so
# many more proposals.
RAREST = 1.5
PRIOR_WEIGHT, PRIOR_DECAY = 10.0, 2.0
# What is tolerated follows what was told, by so much with each incident, and within these bounds: many true faults must
# not silence the next ones.
TIGHTENING = 0.2
TIGHTEST, LOOSEST = math.log(0.3), math.log(1.5)
# A share of false incidents is judged over a time in which signals propose at least so many without any fault.
LEAST_PROPOSED = 100


class Selection(Protocol):
    """Which of the incidents that many signals propose are told.

    `rarity` is minus the logarithm of how often such an incident comes on its own signal, and `now` how long all
    signals were watched so far: the sum of their times, in the unit that the rates are in.
    """

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to tell of an incident that is as rare as that by now."""

    def learn(self, rarity: float, now: float) -> None:
        """An incident is over that was as rare as that."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on later."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on as the one that `state()` described."""


class Pool:
    """How rare the newest proposals of all signals were, and when they were made."""

    def __init__(self, since: float = 0.0) -> None:
        self._since = since
        self._rarities, self._times = np.zeros(POOL), np.zeros(POOL)
        self._count = 0

    @property
    def rarities(self) -> NDArray[np.float64]:
        """How rare each was."""
        return self._rarities[: self._count]

    def span(self, now: float) -> float:
        """How long the signals were watched while they made them."""
        oldest = self._times[self._count % POOL] if self._count >= POOL else self._since
        return float(now - oldest)

    def add(self, rarity: float, now: float) -> None:
        """Keep one more, instead of the oldest if there are many."""
        self._rarities[self._count % POOL], self._times[self._count % POOL] = rarity, now
        self._count += 1

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on later."""
        kept = min(self._count, POOL)
        return {"rarities": self._rarities[:kept], "times": self._times[:kept], "count": np.array(self._count)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on as the one that `state()` described."""
        self._count = int(state["count"])
        kept = min(self._count, POOL)
        self._rarities[:kept], self._times[:kept] = state["rarities"], state["times"]


class IncidentBudget:
    """Tells at most so many incidents in a time, the rarest of all signals.

    How rare an incident is on its own signal, of which its past tells little, is only a score here: it is ranked among
    the proposals of all signals. What is tolerated then follows what was told.

    Time is the sum of that of all signals. Where it is that of the clock, which they share, `since` says when it began,
    and `signals` how many there are.
    """

    def __init__(self, rate: float, *, since: float = 0.0, signals: int = 1) -> None:
        self.rate, self.signals = rate, signals
        self._pool = Pool(since)
        # At first only the rarest: until there are many proposals, rates far out are too small on heavy tails.
        self._loosened, self._at = TIGHTEST, since

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to tell of an incident that is as rare as that by now."""
        passed = max(now - self._at, 0.0)
        self._loosened = min(self._loosened + TIGHTENING * self.rate * passed, LOOSEST)
        self._at += passed
        told = self._how_often(rarity, now) < self.rate * math.exp(self._loosened)
        if told:
            self._loosened = max(self._loosened - TIGHTENING, TIGHTEST)
        return told

    def learn(self, rarity: float, now: float) -> None:
        """An incident is over that was as rare as that."""
        self._pool.add(rarity, now)

    def _how_often(self, rarity: float, now: float) -> float:
        """How often an incident as rare comes, on some signal."""
        rarities = self._pool.rarities
        if rarities.size < LEAST_POOLED:
            return self.signals * math.exp(-rarity)
        reached = int(np.count_nonzero(rarities >= rarity))
        often = (1 + reached) / self._pool.span(now)
        if reached > 0:
            return often
        count = math.ceil(RAREST * math.sqrt(rarities.size))
        rarest = np.partition(rarities, rarities.size - count)[-count:]
        begins = float(rarest.min())
        decay = (float(np.sum(rarest - begins)) + PRIOR_WEIGHT * PRIOR_DECAY) / (count + PRIOR_WEIGHT)
        return often * math.exp(-(rarity - float(rarest.max())) / decay)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on later."""
        return {**self._pool.state(), "loop": np.array([self._loosened, self._at])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on as the one that `state()` described."""
        self._pool.restore(state)
        self._loosened, self._at = map(float, state["loop"])


class FalseShare:
    """Tells so many incidents that about the given share of them is false: Benjamini and Hochberg's rule, online.

    How many false incidents as rare as some rate there are follows from the rate itself, which is the signals' own
    estimate. It holds as far as that does. The newest proposals count, so that a time with many faults is forgotten.
    """

    def __init__(self, share: float, proposed: float) -> None:
        self.share, self.proposed = share, proposed
        self._pool = Pool()

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to tell of an incident that is as rare as that by now."""
        watched = max(self._pool.span(now), LEAST_PROPOSED / self.proposed)
        return bool(mostly_true(np.append(self._pool.rarities, rarity), watched, self.share)[-1])

    def learn(self, rarity: float, now: float) -> None:
        """An incident is over that was as rare as that."""
        self._pool.add(rarity, now)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on later."""
        return self._pool.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on as the one that `state()` described."""
        self._pool.restore(state)


def mostly_true(rarities: NDArray[np.float64], watched: float, share: float) -> NDArray[np.bool_]:
    """Of a whole history, those of which about a share is false: Benjamini and Hochberg's rule."""
    rates = np.exp(-rarities)
    ordered = np.sort(rates)
    kept = ordered[ordered * watched <= share * np.arange(1, rates.size + 1)]
    return rates <= (kept[-1] if kept.size else -1.0)


def check_budget(name: str, value: Any) -> str | float:
    """A budget in its proper type: incidents in a time, or the share of incidents that may be false."""
    if isinstance(value, str):
        parse_budget(name, value, "a number between 0 and 1, the share of incidents that may be false, or ")
        return value
    return checks.number(name, value, above=0, below=1)


def make_selection(budget: str | float, signals: int, interval: float | None) -> tuple[Selection, float, float | None]:
    """What selects by a budget; how many incidents an observation signals are to propose; and how many may be told.

    The last is None where a share of false incidents is given. Time is counted in observations.
    """
    if not isinstance(budget, str):
        return FalseShare(budget, USUAL_RATE), USUAL_RATE, None
    if interval is None:
        raise ValueError(f"budget={budget!r} is over time: give the sampling interval too, such as interval='5min'")
    incidents, seconds = parse_budget("budget", budget)
    rate = incidents * interval / seconds / signals
    if rate > LARGEST_SHARE:
        raise ValueError(
            f"budget must come to at most 1 incident per {1 / LARGEST_SHARE:g} observations, got {budget!r}, which is "
            f"{rate:.3g} per observation of {interval:g} seconds with {signals} signals"
        )
    return IncidentBudget(rate), min(max(MORE * rate, USUAL_RATE), MOST_MORE * rate), rate

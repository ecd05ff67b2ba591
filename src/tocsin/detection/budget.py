"""One budget for many signals: selects which of their proposed incidents are reported."""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.constants import constants
from tocsin.detection.alarm_rate import parse_budget

# Each signal proposes this many incidents per observation, unless its budget is for more than a tenth or less than a
# hundredth of them: there must be a choice, but no more than a signal can tell apart.
PROPOSED = 1 / 1000
# A budget of more than this per observation leaves no choice.
LARGEST_SHARE = 5 * PROPOSED
# How many proposals are kept for ranking new ones.
POOL = 4096


class Selection(Protocol):
    """Selects which of the incidents proposed by many signals are reported.

    `rarity` is minus the log rate of such an incident on its own signal, and `now` how long all signals have been
    watched: the sum of their times, in the unit of the rates.
    """

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to report an incident that is this rare by now."""

    def learn(self, rarity: float, now: float) -> None:
        """Record the end of an incident that was this rare."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""


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
        """Keep one more, replacing the oldest if it is full."""
        self._rarities[self._count % POOL], self._times[self._count % POOL] = rarity, now
        self._count += 1

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""
        kept = min(self._count, POOL)
        return {
            "rarities": self._rarities[:kept].copy(),
            "times": self._times[:kept].copy(),
            "count": np.array(self._count),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        self._count = int(state["count"])
        kept = min(self._count, POOL)
        self._rarities[:kept], self._times[:kept] = state["rarities"], state["times"]


class IncidentBudget:
    """Reports about this many incidents per time, the rarest of all signals.

    An incident's rarity on its own signal, about which its past says little, is only a score here: it is ranked among
    the proposals of all signals. The threshold then follows the reported incidents.

    Time is the sum over all signals. If it is clock time, which they share, `since` says when it began, and `signals`
    how many there are.
    """

    def __init__(self, rate: float, *, since: float = 0.0, signals: int = 1) -> None:
        self.rate, self.signals = rate, signals
        self._pool, self._constants = Pool(since), constants()
        # The threshold follows the reported incidents, within bounds: many true faults must not silence the next ones.
        # At first only the rarest are told: with few proposals, rates far out in heavy tails are too small.
        self._tightest = -12 * self._constants.tightening
        self._loosened, self._at = self._tightest, since

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to report an incident that is this rare by now."""
        step = self._constants.tightening
        passed = max(now - self._at, 0.0)
        self._loosened = min(self._loosened + step * self.rate * passed, 4 * step)
        self._at += passed
        told = self._how_often(rarity, now) < self.rate * math.exp(self._loosened)
        if told:
            self._loosened = max(self._loosened - step, self._tightest)
        return told

    def learn(self, rarity: float, now: float) -> None:
        """Record the end of an incident that was this rare."""
        self._pool.add(rarity, now)

    def _how_often(self, rarity: float, now: float) -> float:
        """The rate of incidents this rare on any signal."""
        rarities = self._pool.rarities
        if rarities.size < self._constants.least:
            return self.signals * math.exp(-rarity)
        reached = int(np.count_nonzero(rarities >= rarity))
        often = (1 + reached) / self._pool.span(now)
        if reached > 0:
            return often
        from tocsin.detection.deciding import evidence_tail  # numba is slow to import

        begins, count, decay = evidence_tail(rarities, self._constants)
        return min((1 + count) / self._pool.span(now) * math.exp(-(rarity - begins) / decay), often)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later."""
        return {**self._pool.state(), "loop": np.array([self._loosened, self._at])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        self._pool.restore(state)
        self._loosened, self._at = map(float, state["loop"])


class FalseShare:
    """Reports as many incidents as keep the share of false ones near a target: the Benjamini-Hochberg rule, online.

    The number of false incidents this rare follows from the signals' own rate estimates, and holds as far as these do.
    Only the newest proposals count, so that a time with many faults is forgotten.
    """

    def __init__(self, share: float, proposed: float) -> None:
        self.share, self.proposed = share, proposed
        self._pool, self._least = Pool(), 2 * constants().least

    def tells(self, rarity: float, now: float) -> bool:
        """Whether to report an incident that is this rare by now."""
        # Judged over a time in which signals propose enough without any fault.
        watched = max(self._pool.span(now), self._least / self.proposed)
        return bool(mostly_true(np.append(self._pool.rarities, rarity), watched, self.share)[-1])

    def learn(self, rarity: float, now: float) -> None:
        """Record the end of an incident that was this rare."""
        self._pool.add(rarity, now)

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
    return IncidentBudget(rate), min(max(10 * rate, PROPOSED), 100 * rate), rate

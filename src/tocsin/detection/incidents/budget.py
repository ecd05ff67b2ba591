"""One budget for many signals: selects which of their proposed incidents are reported."""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.constants import constants
from tocsin.detection.incidents.verdict import ENDED, NORMAL, Verdicts
from tocsin.detection.settings.alarm_rate import parse_budget
from tocsin.detection.settings.detector_settings import DetectorSettings, proposing

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
        from tocsin.detection.incidents.rules import evidence_tail  # numba is slow to import

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


Rows = NDArray[np.intp]


class Sharing:
    """Passes the selected incidents of a fleet's signals, from the observation at which they are selected.

    Observations count in time order, and those of the same time in the order of their rows.
    """

    def __init__(self, selection: Selection, signals: int, rarest_rate: float) -> None:
        self.selection, self._rarest_rate = selection, rarest_rate
        self._watched = 0  # observations of all signals that could have alarmed
        self._rarity = np.full(signals, -np.inf)  # how rare the incident of each signal is so far
        self._told = np.zeros(signals, dtype=bool)

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
            if not ends[step, column]:
                self._rarity[row] = max(self._rarity[row], -math.log(verdicts.rate[step, column]))
                if not self._told[row] and self.selection.tells(float(self._rarity[row]), now):
                    self._told[row] = opened[step, column] = told[step:, column] = True
            elif self._rarity[row] > -np.inf:
                self.selection.learn(float(self._rarity[row]), now)
                self.forget(row)
                told[step + 1 :, column] = False
        return replace(
            verdicts,
            alarm=verdicts.alarm & told,
            opened=opened,
            state=np.where(told, verdicts.state, NORMAL),
            rate=np.maximum(verdicts.rate, self._rarest_rate),
        )

    def forget(self, row: int) -> None:
        """Forget the incident of this signal."""
        self._rarity[row], self._told[row] = -np.inf, False

    def state(self) -> dict[str, Any]:
        """Everything needed to resume later."""
        own = {"watched": np.array(self._watched), "rarity": self._rarity, "told": self._told}
        return {**own, "selection": self.selection.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state()` returned."""
        self._watched = int(state["watched"])
        self._rarity[:], self._told[:] = state["rarity"], state["told"]
        self.selection.restore(state["selection"])


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HistoryBudget:
    """A number of incidents per time ("5/week"), or a share of false ones (0.1), for this many signals."""

    budget: str | float
    signals: int

    def proposing(self, settings: DetectorSettings) -> DetectorSettings:
        """The settings of one of the signals, which proposes more incidents than are selected."""
        return proposing(settings, make_selection(self.budget, self.signals, settings.interval_seconds)[1])

    def select(self, periods: Floats, intervals: Floats, watched: Floats, of_signals: Floats) -> NDArray[np.bool_]:
        """Which of the incidents with these return periods are reported.

        `intervals` are those of their signals, in seconds; `watched` is how many observations each signal was watched
        for, and `of_signals` are the intervals of those.
        """
        if isinstance(self.budget, str):
            incidents, seconds = parse_budget("budget", self.budget)
            times = float(np.sum(watched * of_signals)) / self.signals / seconds
            return rarest(np.log(periods * intervals), incidents * times)
        return mostly_true(np.log(periods), float(np.sum(watched)), self.budget)


def rarest(rarities: Floats, allowed: float) -> NDArray[np.bool_]:
    """The rarest incidents allowed; a fraction rounds up to one."""
    chosen = np.zeros(rarities.size, dtype=bool)
    chosen[np.argsort(-rarities, kind="stable")[: math.ceil(allowed)]] = True
    return chosen

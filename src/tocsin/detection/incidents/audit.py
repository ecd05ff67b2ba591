"""Whether a detector keeps its promise: the observed alarm rate, with a confidence band valid at all times."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Mask

# The finding is "as promised" once the true rate is within this factor of the promise. A tighter bound would take years
# at one incident a week.
CLOSE = 1.5
# Alarms close together count as one surprise, not as many: the band is widened by how much more the counts over blocks
# of this many observations vary than those of independent alarms.
BLOCK = 100
LEAST_BLOCKS = 10
# Alarms by p come in clusters of about this size even without faults. External scores are independent then, but
# neighbouring errors share the values they were forecast from, and views of stretches see one surprise in many
# consecutive observations. On independent signals the counts of alarms vary 1.25 and 5 times as much as those of
# independent alarms, and twice that on some: `benchmarks/audit.py`.
OF_SCORES, OF_ERRORS, OF_STRETCHES = 1.0, 1.5, 8.0
# The rates that the band bets on: the promise times and divided by e to these powers, with normal weights.
LOG_RATIOS = np.linspace(-4, 4, 161)
_SHARES = np.exp(-0.5 * LOG_RATIOS**2) / np.exp(-0.5 * LOG_RATIOS**2).sum()
_BELOW_ONE = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class Audit:
    """Promised and observed counts since warm-up: of incidents, or of alarms with promise="observations".

    `low` and `high` bound the true long-run rate, and `bursts` is the winnings of bets on stretches with more alarms
    than promised. With probability `level` both hold at all times at once, so you may look as often as you like. This
    is exact if each observation alarms with the promised probability, whatever came before. For clustered alarms,
    counts are divided by `dispersion`, which is an approximation.
    """

    promised: float
    observations: int
    alarms: int
    dispersion: float
    level: float
    low: float
    high: float
    #: The alarms labelled as faults: they do not count against the promise.
    faults: int = 0
    #: The number of the first counted observation.
    first: int | None = None
    #: What is promised and counted here: "incidents", or "alarms" with promise="observations".
    unit: str = "incidents"
    #: The wealth in multiples of the first stake, the observation since which it grew, and the ratio of alarms since
    #: then to the promise.
    bursts: float = 1.0
    bursts_since: int | None = None
    bursts_ratio: float = 0.0

    @property
    def rate(self) -> float:
        """Alarms per observation, before guards and without known faults; NaN before the first observation."""
        return (self.alarms - self.faults) / self.observations if self.observations else float("nan")

    @property
    def _in_bursts(self) -> bool:
        return self.bursts >= 2 / (1 - self.level) and self.bursts_ratio > 1

    @property
    def finding(self) -> str:
        """The finding: "too many" or "too few" for the promise, "as promised", or "cannot tell yet".

        "As promised": the band lies between the promise over 1.5 and 1.5 times the promise, and there are no bursts.
        """
        if self._in_bursts:
            return "too many"
        if self.promised / CLOSE <= self.low and self.high <= CLOSE * self.promised:
            return "as promised"
        if self.low > self.promised:
            return "too many"
        return "too few" if self.high < self.promised else "cannot tell yet"

    @property
    def since(self) -> int | None:
        """The number of the observation from which the finding holds."""
        return self.bursts_since if self._in_bursts else self.first

    @property
    def ratio(self) -> float:
        """The ratio of observed to promised counts since then; NaN before the first observation."""
        return self.bursts_ratio if self._in_bursts else self.rate / self.promised

    def in_words(self) -> str:
        """The finding with its ratio, and since when.

        >>> Audit(0.01, 4000, 120, 1.0, 0.99, 0.021, 0.042, first=551).in_words()
        'too many: 3.0 times the promised incidents since observation 551'
        """
        if not self.observations:
            return f"{self.finding}: no observations since warm-up"
        ratio = f"{self.ratio:.2g}" if self.ratio < 0.995 else f"{self.ratio:.1f}"
        since = "warm-up" if self.since is None else f"observation {self.since:,}"
        return f"{self.finding}: {ratio} times the promised {self.unit} since {since}"


class AuditTrail:
    """Counts observations and alarms of `signals` signals, of which the share `promised` may alarm.

    `unit` is what is promised. Alarms come in clusters of about `clustering` even if all is well.
    """

    def __init__(
        self, signals: int, promised: float, *, unit: str = "incidents", clustering: float = OF_SCORES
    ) -> None:
        from tocsin.detection.incidents import audit_kernels  # it loads numba, which imports must not

        self._kernels = audit_kernels
        self.promised, self.unit = promised, unit
        self.counts = np.zeros((signals, audit_kernels.SQUARES + 1), dtype=np.int64)
        self.faults = np.zeros(signals, dtype=np.int64)
        self.money, self.notes = audit_kernels.new_money(signals), audit_kernels.new_notes(signals)
        self.clustering = clustering
        self._wins, self._losses = audit_kernels.odds(promised, clustering)

    def add(self, exceeds: Mask, counted: Mask, numbers: NDArray[np.int64], rows: NDArray[np.intp]) -> None:
        """Add `exceeds[T, N]`, whether it alarmed, where `counted[T, N]`; `numbers[T, N]` counts observations."""
        seen = self.counts[rows, self._kernels.OBSERVATIONS]
        self._kernels.bet(
            exceeds, counted, numbers, rows, seen, self.promised, self._wins, self._losses, self.money, self.notes
        )
        self._kernels.count_alarms(exceeds, counted, rows, BLOCK, self.counts)

    def label_fault(self, signal: int, alarms: int = 1) -> None:
        """Count this many of a signal's alarms as a fault; a negative number undoes it.

        They no longer count against the promise. Bets won so far are cancelled.
        """
        most = int(self.counts[signal, self._kernels.ALARMS])
        self.faults[signal] = min(max(int(self.faults[signal]) + alarms, 0), most)
        if alarms > 0:
            self._kernels.close_bets(self.money[signal], self.notes[signal])

    def audit(self, signal: int, level: float = 0.99, known_faults: int | None = None) -> Audit:
        """The audit of one signal. `known_faults` of its alarms count as labelled, and no others."""
        observations, alarms, _, _, blocks, total, squares = (int(count) for count in self.counts[signal])
        dispersion = self.clustering
        if blocks >= LEAST_BLOCKS and total > 0:
            mean = total / blocks
            dispersion = max(dispersion, (squares / blocks - mean**2) / (mean * (1 - mean / BLOCK) or 1.0))
        faults = int(self.faults[signal]) if known_faults is None else min(known_faults, alarms)
        kernels, money, note = self._kernels, self.money[signal], self.notes[signal]
        since, expected = int(note[kernels.SINCE]), self.promised * float(note[kernels.SINCE_OBSERVATIONS])
        low, high = _band(alarms - faults, observations, dispersion, self.promised, level)
        return Audit(
            promised=self.promised,
            observations=observations,
            alarms=alarms,
            dispersion=dispersion,
            level=level,
            low=low,
            high=high,
            faults=faults,
            unit=self.unit,
            first=None if note[kernels.FIRST] == kernels.NONE else int(note[kernels.FIRST]),
            # What bets won on faults counted elsewhere is unknown.
            bursts=1.0 if known_faults else float(money[kernels.RESERVE] + money[kernels.STAKES :].sum()),
            bursts_since=None if since == kernels.NONE else since,
            bursts_ratio=float(note[kernels.SINCE_ALARMS]) / expected if expected else 0.0,
        )

    def copy_from(self, signal: int, other: "AuditTrail", theirs: int) -> None:
        """Replace a signal's counts with those of the signal `theirs` of another trail."""
        for own, given in zip(self.state().values(), other.state().values(), strict=True):
            own[signal] = given[theirs]

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything, one row per signal: the arrays themselves."""
        return {"counts": self.counts, "faults": self.faults, "money": self.money, "notes": self.notes}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state()` returned."""
        for name, own in self.state().items():
            given, least = state[name], self._kernels.NONE if name == "notes" else 0
            if (
                given.shape != own.shape
                or given.dtype != own.dtype
                or not np.all((given >= least) & (given < math.inf))
            ):
                raise ValueError("audit must hold counts for each signal")
        alarms = state["counts"][:, self._kernels.ALARMS]
        if np.any(state["faults"] > alarms) or np.any(alarms > state["counts"][:, self._kernels.OBSERVATIONS]):
            raise ValueError("audit must hold no more faults than alarms, and no more alarms than observations")
        for name, own in self.state().items():
            own[...] = state[name]


def audit_of_share(audit: Audit, alarms: int, signals: int) -> Audit:
    """The audit of one of several signals that share its promise, if this many of its alarms were told."""
    promised = audit.promised / signals
    low, high = _band(alarms, audit.observations, audit.dispersion, promised, audit.level)
    # What bets would have won on these alarms is unknown.
    return replace(audit, promised=promised, alarms=alarms, low=low, high=high, bursts=1.0, bursts_since=None)


def audit_together(audits: Sequence[Audit]) -> Audit:
    """The joint audit of signals: the sum of their counts, and the average winnings of their bets.

    Counts that differ between signals by more than independent alarms would also widen the band. Signals that alarm
    together do not, although they carry less information.
    """
    watched = [audit for audit in audits if audit.observations]
    if len(audits) == 1 or not watched:
        return audits[0]
    level, observations = audits[0].level, sum(audit.observations for audit in watched)
    alarms, faults = sum(audit.alarms for audit in watched), sum(audit.faults for audit in watched)
    promised = sum(audit.promised * audit.observations for audit in watched) / observations
    dispersion = 1.0
    if alarms:
        dispersion = sum(audit.dispersion * audit.alarms for audit in watched) / alarms
    if len(watched) >= LEAST_BLOCKS and alarms:
        expected = [alarms / observations * audit.observations for audit in watched]
        differences = sum((audit.alarms - own) ** 2 / own for audit, own in zip(watched, expected, strict=True))
        dispersion = max(dispersion, differences / (len(watched) - 1))
    low, high = _band(alarms - faults, observations, dispersion, promised, level)
    return Audit(
        promised=promised,
        observations=observations,
        alarms=alarms,
        dispersion=dispersion,
        level=level,
        low=low,
        high=high,
        faults=faults,
        unit=audits[0].unit,
        bursts=sum(audit.bursts for audit in watched) / len(watched),
        bursts_ratio=(alarms - faults) / (promised * observations),
    )


def _band(alarms: int, observations: int, dispersion: float, promised: float, level: float) -> tuple[float, float]:
    # Half of the error probability is for the band, half for bets on bursts.
    return rate_bounds(alarms / dispersion, observations / dispersion, promised, (1 + level) / 2)


def rate_bounds(alarms: float, observations: float, promised: float, level: float) -> tuple[float, float]:
    """Bounds on the rate behind `alarms` in `observations`, valid at all times at once.

    They contain the rates at which bets on rates around the promise would have won less than 1/(1 - level) times their
    stake (Robbins 1970). They are narrowest if the promise is kept, or broken by a small factor.

    >>> [round(bound, 4) for bound in rate_bounds(10, 1000, 0.01, 0.99)]
    [0.0027, 0.0248]
    """
    if observations == 0:
        return 0.0, 1.0
    quiet = observations - alarms
    bet_on = np.minimum(promised * np.exp(LOG_RATIOS), (1 + promised) / 2)
    likelihoods = np.log(_SHARES) + alarms * np.log(bet_on) + quiet * np.log1p(-bet_on)
    highest = float(likelihoods.max())
    won = highest + math.log(float(np.exp(likelihoods - highest).sum())) + math.log(1 - level)

    def refuted(rate: float) -> bool:
        """Whether bets against this rate have won."""
        seen_so = (alarms * math.log(rate) if alarms else 0.0) + (quiet * math.log1p(-rate) if quiet > 0 else 0.0)
        return won >= seen_so

    # Far from all rates bet on, even the observed rate may be rejected: then the bounds meet at it.
    seen = alarms / observations
    if alarms and quiet > 0 and refuted(seen):
        return seen, seen
    low = 0.0 if alarms == 0 else _edge(refuted, 1e-300, seen)
    return low, 1.0 if quiet <= 0 or not refuted(_BELOW_ONE) else _edge(refuted, _BELOW_ONE, seen)


def _edge(refuted: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where rates begin to be rejected, going from `inside`: bisected on a log scale until no double is between."""
    inside = inside or 1e-300
    for _ in range(200):
        middle = math.sqrt(outside) * math.sqrt(inside)
        if not min(outside, inside) < middle < max(outside, inside):
            break
        outside, inside = (middle, inside) if refuted(middle) else (outside, middle)
    return inside

"""Whether a detector keeps its promise: the alarm rate seen so far, with a band that holds at all times at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Mask

# Alarms that come close together count as one surprise, not as many: the band is widened by how much more the counts
# over blocks of this many observations vary than independent alarms would.
BLOCK = 100
LEAST_BLOCKS = 10


@dataclass(frozen=True)
class Audit:
    """The alarm rate that was promised and the one that was seen, since warm-up.

    `low` and `high` bound the true rate at all times at once with probability `level`, so one may look as often as one
    likes: beta-binomial mixture bounds (Robbins 1970), exact where each observation alarms with one probability,
    whatever came before. For alarms in clusters, counts are divided by `dispersion`, which is an approximation.
    """

    promised: float
    observations: int
    alarms: int
    dispersion: float
    level: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Alarms per observation, before guards; NaN before the first observation."""
        return self.alarms / self.observations if self.observations else float("nan")

    @property
    def finding(self) -> str:
        """Whether the promise lies within the band: "as promised", "too many" or "too few" alarms."""
        if self.low > self.promised:
            return "too many"
        return "too few" if self.high < self.promised else "as promised"


class AuditTrail:
    """Counts observations and alarms of `signals` signals."""

    def __init__(self, signals: int) -> None:
        from tocsin.detection import kernels

        self._kernels = kernels
        self.counts = np.zeros((signals, kernels.SQUARES + 1), dtype=np.int64)

    def add(self, exceeds: Mask, counted: Mask, rows: NDArray[np.intp]) -> None:
        """Add `exceeds[T, N]`, whether p is under the alarm rate, where `counted[T, N]`."""
        self._kernels.count_alarms(exceeds, counted, rows, BLOCK, self.counts)

    def audit(self, signal: int, promised: float, level: float = 0.99) -> Audit:
        """The audit of one signal."""
        observations, alarms, _, _, blocks, total, squares = (int(count) for count in self.counts[signal])
        dispersion = 1.0
        if blocks >= LEAST_BLOCKS and total > 0:
            mean = total / blocks
            dispersion = max(1.0, (squares / blocks - mean**2) / (mean * (1 - mean / BLOCK) or 1.0))
        low, high = rate_bounds(alarms / dispersion, observations / dispersion, level)
        return Audit(promised, observations, alarms, dispersion, level, low, high)


def rate_bounds(alarms: float, observations: float, level: float) -> tuple[float, float]:
    """Bounds on the rate behind `alarms` in `observations` that hold at all times at once.

    The rates at which a mixture of all rates, uniform over (0, 1), would have won less than 1/(1 - level) times its
    stake by betting against them.

    >>> [round(bound, 4) for bound in rate_bounds(10, 1000, 0.99)]
    [0.0017, 0.0303]
    """
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    if observations == 0:
        return 0.0, 1.0
    quiet = observations - alarms
    mixture = betaln(1 + alarms, 1 + quiet)

    def wealth(rate: float) -> float:
        return float(mixture - xlogy(alarms, rate) - xlog1py(quiet, -rate) + np.log(1 - level))

    seen = alarms / observations
    low = 0.0 if alarms == 0 else brentq(wealth, 1e-300, seen)
    high = 1.0 if quiet == 0 else brentq(wealth, seen, 1 - 1e-16) if wealth(1 - 1e-16) > 0 else 1.0
    return low, high

"""One budget for the histories of many signals, all of which are available when incidents are selected."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.alarm_rate import parse_budget
from tocsin.detection.budget import make_selection, mostly_true
from tocsin.detection.settings import DetectorSettings, proposing

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

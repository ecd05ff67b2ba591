"""Whether the newest observations look like a fault to a network trained on many."""

import math

import numpy as np

from tocsin.detection.views.view import GEOMETRIC, Floats, Rows, Seen, Stream, View, ViewSession


class FaultView(View):
    """The odds that the newest observation belongs to a fault, and that one was under way within the newest 32.

    The forecaster's network gives them along with its forecast; it was trained on many kinds of faults. Odds are ranked
    in their own past, like any other score: a signal that always looks faulty is not anomalous for it.
    """

    name = "fault"
    merge = GEOMETRIC
    alone = 0.05
    together = 0.5
    forecasts = True
    judgements = True
    LENGTH = 32

    def __init__(self) -> None:
        self.streams = (Stream("fault-1"), Stream(f"fault-{self.LENGTH}", self.LENGTH))

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _FaultSession()

    def words(self, stream: int, score: float, unit: str) -> str:
        percent = 100 / (1 + math.exp(-min(max(score, -50.0), 50.0)))
        likely = "less than 1%" if percent < 1 else f"{min(percent, 99):.0f}%"
        where = (
            "looks like a fault" if stream == 0 else f"looks like a fault within the last {self.LENGTH} observations"
        )
        return f"{where} ({likely} likely)"


class _FaultSession(ViewSession):
    """It keeps no state: the forecaster provides the odds."""

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        scores[...] = seen.faults
        scores[np.isnan(seen.values) | ~seen.ready] = np.nan

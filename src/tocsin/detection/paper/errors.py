"""The paper's nonconformity scores: the error of every horizon."""

import numpy as np

from tocsin.detection.paper.options import CONTEXT
from tocsin.detection.views.view import Floats, Rows, Seen, State, Stream, View, ViewSession, amount, side


class HorizonErrors(View):
    """How far an observation is from each of its forecasts: those made 1, 2, ... `horizons` observations before.

    Errors are judged from the first observation that has a whole context before it, whatever happened since.
    """

    name = "error"
    forecasts = True
    sided = True

    def __init__(self, horizons: int) -> None:
        self.streams = tuple(Stream(f"error-{horizon}") for horizon in range(1, horizons + 1))

    @property
    def horizons(self) -> int:
        return len(self.streams)

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _HorizonErrorsSession(signals)

    def words(self, stream: int, score: float, unit: str) -> str:
        ahead = f"the forecasts of the last {self.horizons} observations" if self.horizons > 1 else "the forecast"
        return f"{amount(abs(score), unit)} {side(score)} {ahead}"


class _HorizonErrorsSession(ViewSession):
    def __init__(self, signals: int) -> None:
        self._seen = np.zeros(signals, dtype=np.int64)

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        steps = seen.values.shape[0]
        np.subtract(seen.values[..., np.newaxis], seen.forecasts[0].ahead, out=scores)
        scores[self._seen[rows] + np.arange(steps)[:, np.newaxis] < CONTEXT] = np.nan
        self._seen[rows] += steps

    def state(self, rows: Rows) -> State:
        return {"seen": self._seen[rows]}

    def _restore(self, state: State, rows: Rows) -> None:
        if np.any(state["seen"] < 0):
            raise ValueError("seen must hold counts")
        self._seen[rows] = state["seen"]

"""How far the newest values lie from their earlier forecasts."""

import numpy as np

from tocsin.detection.views.view import Floats, Rows, Seen, State, Stream, View, ViewSession, amount, side


class LevelView(View):
    """The mean of the newest 60 values minus the mean of their forecasts, all made before the first of them.

    A fault cannot influence such a forecast: shifts and drifts add up, noise cancels out.
    """

    name = "level"
    alone = 0.05
    forecasts = True
    sided = True
    LENGTH = 60

    def __init__(self) -> None:
        self.streams = (Stream(f"level-{self.LENGTH}", self.LENGTH),)

    @property
    def steps(self) -> int:
        return self.LENGTH

    @property
    def begins(self) -> int:
        return self.LENGTH

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _LevelSession(signals, features, self.LENGTH, side)

    def words(self, stream: int, score: float, unit: str) -> str:
        return f"level {amount(abs(score), unit)} {side(score)} what was forecast {self.LENGTH} observations before"


class _LevelSession(ViewSession):
    def __init__(self, signals: int, features: int, length: int, side: int) -> None:
        from tocsin.detection.views import kernels

        self._kernels, self._side = kernels, side
        shape = (signals, features, length)
        self._memory = kernels.LevelMemory(
            counts=np.zeros(signals, dtype=np.int64),
            filled=np.full(shape, np.nan),
            known=np.zeros(shape, dtype=np.bool_),
            paths=np.full((2, *shape), np.nan),
        )

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        self._kernels.levels(
            seen.values, seen.predicted, seen.issued, seen.issued_spread, seen.ready, rows, self._side, self._memory,
            scores[..., 0],
        )  # fmt: skip

    def state(self, rows: Rows) -> State:
        return {
            "count": self._memory.counts[rows],
            "filled": self._memory.filled[rows],
            "known": self._memory.known[rows],
            "paths": np.moveaxis(self._memory.paths[:, rows], 0, 1),
        }

    def _restore(self, state: State, rows: Rows) -> None:
        if np.any(state["count"] < 0):
            raise ValueError("state['count'] is damaged: it must hold counts")
        self._memory.counts[rows] = state["count"]
        self._memory.filled[rows] = state["filled"]
        self._memory.known[rows] = state["known"]
        self._memory.paths[:, rows] = np.moveaxis(state["paths"], 1, 0)

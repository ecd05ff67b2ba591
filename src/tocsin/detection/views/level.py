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

        self._kernels, self._length, self._side = kernels, length, side
        shape = (signals, features, length)
        self._count = np.zeros(signals, dtype=np.int64)
        self._filled = np.full(shape, np.nan)
        self._known = np.zeros(shape, dtype=np.bool_)
        self._paths = np.full((2, *shape), np.nan)  # means of forecasts, and of their spreads

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        self._kernels.levels(
            seen.values, seen.predicted, seen.issued, seen.issued_spread, seen.ready, rows, self._length, self._side,
            self._count, self._filled, self._known, self._paths, scores[..., 0],
        )  # fmt: skip

    def state(self, rows: Rows) -> State:
        return {
            "count": self._count[rows],
            "filled": self._filled[rows],
            "known": self._known[rows],
            "paths": np.moveaxis(self._paths[:, rows], 0, 1),
        }

    def _restore(self, state: State, rows: Rows) -> None:
        if np.any(state["count"] < 0):
            raise ValueError("state['count'] is damaged: it must hold counts")
        self._count[rows] = state["count"]
        self._filled[rows] = state["filled"]
        self._known[rows] = state["known"]
        self._paths[:, rows] = np.moveaxis(state["paths"], 1, 0)

"""Whether a signal moves less or more than ever before: stuck sensors, lost noise, growing vibration, jumps."""

import numpy as np

from tocsin.constants import constants
from tocsin.detection.views.view import Floats, Rows, Seen, State, Stream, View, ViewSession, amount, length_text


class MovementView(View):
    """Too little movement for too long, or too much: the mean step from one value to the next over 48 observations.

    For too much, a step counts up to three times the median one, because a spike is no movement. The newest step alone
    is the third score: where forecasts are poor, as of a random walk, it is the second witness of a spike.
    Equal scores rank equally, so a signal that often rests, or never moves, is not anomalous when it does.
    """

    name = "movement"

    def __init__(self) -> None:
        self._length = 3 * constants().short
        self.streams = (
            Stream(f"quiet-{self._length}", self._length),
            Stream(f"restless-{self._length}", self._length, holds=True),
            Stream("step"),
        )

    @property
    def begins(self) -> int:
        return self._length

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _MovementSession(signals, features, self._length)

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        from tocsin.detection.views import kernels

        if stream == 2:
            return f"moves by {amount(score, unit)} in one step"
        if stream == 0 and score >= kernels.STILL:
            return f"has not moved for {length_text(self._length, interval)}"
        step = amount(float(np.exp(min(score if stream else -score, 700.0))), unit)
        return f"moves by {'' if stream else 'only '}{step} a step, for {length_text(self._length, interval)}"


class _MovementSession(ViewSession):
    def __init__(self, signals: int, features: int, length: int) -> None:
        from tocsin.detection.views import kernels

        self._kernels, self._length = kernels, length
        self._count = np.zeros(signals, dtype=np.int64)
        self._steps = np.full((signals, features, length), np.nan)
        self._last = np.full((signals, features), np.nan)

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        self._kernels.movements(seen.values, rows, self._count, self._steps, self._last, scores)

    def state(self, rows: Rows) -> State:
        return {"count": self._count[rows], "steps": self._steps[rows], "last": self._last[rows]}

    def _restore(self, state: State, rows: Rows) -> None:
        if np.any(state["count"] < 0) or np.any(state["steps"] < 0):
            raise ValueError("state['count'] and state['steps'] are damaged: they must hold counts and sizes")
        self._count[rows], self._steps[rows], self._last[rows] = state["count"], state["steps"], state["last"]

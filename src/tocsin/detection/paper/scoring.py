"""From forecasts to one p-value: the paper's options, its scores and how their p-values are merged.

The detector and the benchmark share all of it.
"""

from typing import Any

import numpy as np

from tocsin.conformal import W1ACAS, merge_p_values
from tocsin.conformal.scorer import Streams
from tocsin.detection.views.view import Floats, Rows, Seen, State, Stream, View, ViewSession, amount, length_text, side

PAPER = "paper"
"""The preset that is the paper's detector."""

CONTEXT = 52
"""How many observations the paper's forecasters read; nothing earlier is judged."""

PAPER_OPTIONS: dict[str, Any] = {
    "horizons": 15,
    "alpha_c": 0.01,
    "batch": 10,
    "learning_rate": 0.001,
    "optimizer": "adam",
    # Algorithm 1 is printed with "recent"; the paper's numbers come from "extend".
    "prior": "extend",
    "window": 5000,
    "merge_horizons": "median",
    "merge_features": "fisher",
}
"""The settings of the preset that are not given."""


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

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        last = length_text(self.horizons, interval)
        ahead = f"the forecasts of the last {last}" if self.horizons > 1 else "the forecast"
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


class HorizonScoring:
    """One stream of W1-ACAS for each horizon of each feature; merged over the horizons, then over the features.

    It always learns, in double precision. `options` are those of `PAPER_OPTIONS`, and others of `W1ACAS`.
    """

    def __init__(
        self, signals: int, features: int, *, horizons: int, merge_horizons: str, merge_features: str, **options: Any
    ) -> None:
        self.features, self.horizons = features, horizons
        self._merge_horizons, self._merge_features = merge_horizons, merge_features
        self.scorer = W1ACAS(signals * features * horizons, dtype="float64", **options)

    def run(self, errors: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """The p-values of `errors[T, N, F, H]` of the signals `rows`, and those of each feature, `[T, N, F]`."""
        steps, streams = errors.shape[0], self.streams(rows)
        scores = np.full((steps, self.scorer.streams), np.nan)
        scores[:, streams] = np.abs(errors).reshape(steps, streams.size)
        p = self.scorer.run(scores)[:, streams].reshape(errors.shape)
        by_feature = merge_p_values(p, self._merge_horizons)
        return merge_p_values(by_feature, self._merge_features), by_feature

    def streams(self, rows: Rows) -> Streams:
        """The streams of these signals: features in turn, each with its horizons."""
        width = self.features * self.horizons
        return np.asarray(rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)

"""How far an observation lies from its forecasts; or given scores, which are errors already."""

import numpy as np

from tocsin.constants import constants
from tocsin.detection.views.view import Floats, Rows, Seen, Stream, View, ViewSession, amount, length_text, side


class ErrorView(View):
    """The forecast error: on average over the nearest 15 horizons, and one step ahead.

    If there are two forecasters, the first one is judged by the former and the second one by the latter.
    """

    name = "error"
    forecasts = True
    sided = True
    expects_usual_days = True

    def __init__(self) -> None:
        self._near = constants().horizons
        self.streams = (Stream(f"error-{self._near}"), Stream("error-1"))

    @property
    def horizons(self) -> int:
        return self._near

    @property
    def begins(self) -> int:
        return 1

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _ErrorSession(side)

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        ahead = f"the forecasts of the last {length_text(self._near, interval)}" if stream == 0 else "the forecast"
        return f"{amount(abs(score), unit)} {side(score)} {ahead}"


class _ErrorSession(ViewSession):
    """It keeps no state: forecasts arrive aligned."""

    def __init__(self, side: int) -> None:
        from tocsin.detection.views import kernels

        self._kernels, self._side = kernels, side

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        first, second = seen.forecasts[0], seen.forecasts[-1]
        next_spread = second.spread[..., :1] if second.spread.size else second.spread
        for stream, (ahead, spread, ready) in enumerate(
            ((first.ahead, first.spread, first.ready), (second.ahead[..., :1], next_spread, second.ready))
        ):
            self._kernels.mean_errors(
                seen.values, np.ascontiguousarray(ahead), np.ascontiguousarray(spread), ready, self._side,
                scores[..., stream],
            )  # fmt: skip


class GivenScore(View):
    """The values are already nonconformity scores, from any detector: larger is more anomalous."""

    name = "score"

    def __init__(self) -> None:
        self.streams = (Stream("score"),)

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _GivenScoreSession()

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        return f"a score of {amount(score, unit)}"


class _GivenScoreSession(ViewSession):
    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        scores[..., 0] = seen.values

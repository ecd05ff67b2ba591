"""Nonconformity scores from another detector."""

from tocsin.detection.views.view import Floats, Rows, Seen, Stream, View, ViewSession, amount


class GivenScore(View):
    """The values are already nonconformity scores, from any detector: larger is more anomalous."""

    name = "score"

    def __init__(self) -> None:
        self.streams = (Stream("score"),)

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _GivenScoreSession()

    def words(self, stream: int, score: float, unit: str) -> str:
        return f"a score of {amount(score, unit)}"


class _GivenScoreSession(ViewSession):
    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        scores[..., 0] = seen.values

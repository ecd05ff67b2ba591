"""How far an observation lies from its forecast."""

from tocsin.detection.views.view import HARMONIC, MEDIAN, Floats, Rows, Seen, Stream, View, ViewSession, amount, side


class ErrorView(View):
    """The forecast error: one step ahead, and the mean over the nearest horizons."""

    name = "error"
    alone = 0.85
    merge = HARMONIC
    forecasts = True
    sided = True
    NEAR = 15

    def __init__(self) -> None:
        self.streams = (Stream("error-1"), Stream(f"error-{self.NEAR}"))

    @property
    def horizons(self) -> int:
        return self.NEAR

    @property
    def begins(self) -> int:
        return 1

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _ErrorSession(((0, 1), (0, self.NEAR)), side)

    def words(self, stream: int, score: float, unit: str) -> str:
        ahead = "the forecast" if stream == 0 else f"the forecasts of the last {self.NEAR} observations"
        return f"{amount(abs(score), unit)} {side(score)} {ahead}"


class HorizonsView(View):
    """The error at each of 15 horizons, merged by the median: the detector of the paper."""

    name = "horizons"
    alone = 1.0
    merge = MEDIAN
    forecasts = True
    sided = True
    COUNT = 15

    def __init__(self) -> None:
        self.streams = tuple(Stream(f"horizon-{ahead}") for ahead in range(1, self.COUNT + 1))

    @property
    def horizons(self) -> int:
        return self.COUNT

    @property
    def begins(self) -> int:
        return 1

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return _ErrorSession(tuple((ahead, ahead + 1) for ahead in range(self.COUNT)), side)

    def words(self, stream: int, score: float, unit: str) -> str:
        return f"{amount(abs(score), unit)} {side(score)} what was forecast {stream + 1} observations before"


class _ErrorSession(ViewSession):
    """The mean error over ranges of horizons. It keeps no state: forecasts arrive aligned."""

    def __init__(self, ranges: tuple[tuple[int, int], ...], side: int) -> None:
        from tocsin.detection.views import kernels

        self._kernels, self._ranges, self._side = kernels, ranges, side

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        for stream, (first, last) in enumerate(self._ranges):
            self._kernels.mean_errors(
                seen.values, seen.predicted, seen.spread, seen.ready, first, last, self._side, scores[..., stream]
            )

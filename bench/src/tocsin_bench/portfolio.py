"""Many charts watched as one: what a careful engineer would set up if the kind of signal were known."""

from collections.abc import Iterator

import numpy as np

from tocsin import checks
from tocsin_bench import charts
from tocsin_bench.faults import FaultySignals, Floats
from tocsin_bench.metrics import loosest_threshold

GAP = 10
"""So many observations without alarm may lie between two alarms of one incident."""

WINDOWS = (2, 4, 8, 16, 32, 64, 128)
# Alarms are rarer by far, so only this share of the scores of clean signals is kept.
_KEPT = 0.02


def chart_scores(values: Floats, period: int | None, history: int) -> Iterator[tuple[str, Floats]]:
    """Each chart's name and scores `[T, S]`, larger where stranger.

    The charts see the values, what an autoregression of order one leaves of them and what Holt-Winters smoothing does;
    with a period, also the distance from a profile of the cycles before. All is learned from the signal itself: what
    has to be fitted, from the first `history` observations.
    """
    seen = {
        "values": values,
        "AR(1) residuals": charts.ar_residuals(values, history),
        "Holt-Winters residuals": charts.holt_winters_residuals(values, period),
    }
    if period is not None:
        seen["profile residuals"] = charts.profile_residuals(values, period)
    for what, numbers in seen.items():
        begins = int(np.isfinite(numbers).all(axis=1).argmax())
        past = numbers[begins:history]
        standard = (numbers[begins:] - past.mean(axis=0)) / past.std(axis=0)
        for name, scores in _of_standard(standard):
            yield f"{name} of {what}", np.concatenate([np.full((begins, values.shape[1]), np.nan), scores])


def _of_standard(values: Floats) -> Iterator[tuple[str, Floats]]:
    yield "Shewhart", np.abs(values)
    for weight in (0.03, 0.1, 0.2):
        yield f"EWMA {weight}", charts.ewma(values, weight)
    for slack in (0.25, 0.5):
        yield f"CUSUM {slack}", charts.cusum(values, slack)
    yield "GLR", charts.glr(values, WINDOWS)
    for name, spread in (("variance", charts.mean_square(values, 50)), ("movement", charts.movement(values, 20))):
        yield f"{name}, high", spread
        yield f"{name}, low", -spread


class Portfolio:
    """The union of all charts: an alarm where any of them is beyond its threshold.

    Every threshold has the same share of the observations of clean signals beyond it, its level: so no chart is
    preferred, in hindsight or otherwise. `history` observations come before those that count.
    """

    def __init__(self, clean: FaultySignals, history: int) -> None:
        self.period, self.history = clean.period, checks.integer("history", history, least=2)
        self._highest = {}
        for name, scores in chart_scores(clean.values, self.period, history):
            counted = scores[history:].ravel()
            kept = max(round(_KEPT * counted.size), 1)
            self._highest[name] = np.sort(-np.partition(counted, -kept)[-kept:])
            self._observations = counted.size

    def levels(self, values: Floats) -> Floats:
        """The smallest share, over the charts, of clean observations that are at least as strange.

        For the observations after the history, `[T - history, S]`.
        """
        found = np.ones((values.shape[0] - self.history, values.shape[1]))
        for name, scores in chart_scores(values, self.period, self.history):
            # One more than were seen: nothing is impossible.
            beyond = np.searchsorted(self._highest[name], -scores[self.history :], side="right") + 1
            np.minimum(found, beyond / (self._observations + 1), out=found)
        return found

    def level_for(self, rate: float, levels: Floats) -> float:
        """The common level at which there are this many incidents an observation in levels of other clean signals."""
        steps, signals = levels.shape
        # One signal after the other, with a gap between that no incident spans.
        apart = np.full((signals, steps + GAP + 1), np.nan)
        apart[:, :steps] = -levels.T
        allowed = round(checks.number("rate", rate, above=0, below=1) * levels.size)
        return -loosest_threshold(np.zeros(apart.size), apart.ravel(), allowed, gap=GAP)

"""From the errors of every horizon to one p-value: what the detector and the benchmark share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import W1ACAS, merge_p_values
from tocsin.conformal.scorer import Floats, Streams


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

    def run(self, errors: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The p-values of `errors[T, N, F, H]` of the signals `rows`, and those of each feature, `[T, N, F]`."""
        steps, streams = errors.shape[0], self.streams(rows)
        scores = np.full((steps, self.scorer.streams), np.nan)
        scores[:, streams] = np.abs(errors).reshape(steps, streams.size)
        p = self.scorer.run(scores)[:, streams].reshape(errors.shape)
        by_feature = merge_p_values(p, self._merge_horizons)
        return merge_p_values(by_feature, self._merge_features), by_feature

    def streams(self, rows: NDArray[np.intp]) -> Streams:
        """The streams of these signals: features in turn, each with its horizons."""
        width = self.features * self.horizons
        return np.asarray(rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)

"""Conformal p-values against the newest scores, all with equal weight."""

from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal.fixed import FixedWeightScorer
from tocsin.conformal.history import MOST_LAGS


class SlidingWindow(FixedWeightScorer):
    """Compares a score with the newest `window` scores of its stream, each with weight 1.

    With `smoothing` and exchangeable scores its p-values are exactly uniform.

    Examples
    --------
    >>> SlidingWindow(window=3).run([[2.0], [1.0], [3.0], [2.0]])[:, 0].tolist()
    [1.0, 1.0, 0.3333333333333333, 0.75]
    """

    guarantee = "P(p <= alpha) <= alpha if the newest window + 1 scores are exchangeable."

    def __init__(
        self,
        streams: int = 1,
        *,
        window: int = 2000,
        smoothing: int | None = None,
        dtype: str = "float32",
        threads: int = 1,
    ) -> None:
        window = checks.integer("window", window, least=1, most=MOST_LAGS)
        super().__init__(
            streams, lag_weights=np.ones(window), capacity=None, smoothing=smoothing, dtype=dtype, threads=threads
        )

    def _parameters(self) -> dict[str, Any]:
        return {"streams": self.streams, "window": self.window, "smoothing": self.smoothing, "dtype": self.dtype}

"""Conformal p-values whose weights decay with age."""

from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal.fixed import FixedWeightScorer
from tocsin.conformal.history import MOST_LAGS


class ExponentialDecay(FixedWeightScorer):
    """Weights the score at lag k (0 is the newest) by `decay**k` (Barber et al. 2023, as in the W1-ACAS paper).

    The weights sum to `1 / (1 - decay)`, 100 for the default, so p-values reach down to about `1 - decay`. Scores older
    than `window` are ignored.

    Examples
    --------
    >>> ExponentialDecay(decay=0.5).run([[2.0], [1.0], [3.0]])[:, 0].tolist()
    [1.0, 1.0, 0.4]
    """

    guarantee = (
        "P(p <= alpha) <= alpha for exchangeable scores; otherwise alpha plus the weighted total-variation distance "
        "from exchangeability (Barber et al. 2023, Theorem 2)."
    )

    def __init__(
        self,
        streams: int = 1,
        *,
        decay: float = 0.99,
        window: int = 2000,
        smoothing: int | None = None,
        dtype: str = "float32",
        threads: int = 1,
    ) -> None:
        self.decay = checks.number("decay", decay, above=0, below=1)
        window = checks.integer("window", window, least=1, most=MOST_LAGS)
        super().__init__(
            streams,
            lag_weights=np.cumprod(np.concatenate([[1.0], np.full(window - 1, self.decay)])),
            capacity=None,
            smoothing=smoothing,
            dtype=dtype,
            threads=threads,
        )

    def _parameters(self) -> dict[str, Any]:
        return {
            "streams": self.streams,
            "decay": self.decay,
            "window": self.window,
            "smoothing": self.smoothing,
            "dtype": self.dtype,
        }

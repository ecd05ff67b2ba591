"""Conformal p-values against a fixed calibration set."""

from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal.fixed import FixedWeightScorer
from tocsin.conformal.history import MOST_LAGS


class SplitConformal(FixedWeightScorer):
    """Compares every score with the first `calibration` scores of its stream.

    While the calibration set fills, a score is compared with it and then added; afterwards nothing is learned.

    Examples
    --------
    >>> SplitConformal(calibration=2).run([[2.0], [1.0], [3.0], [2.0]])[:, 0].round(3).tolist()
    [1.0, 1.0, 0.333, 0.667]
    """

    guarantee = "P(p <= alpha) <= alpha if the new score is exchangeable with the calibration scores."

    def __init__(
        self,
        streams: int = 1,
        *,
        calibration: int = 100,
        smoothing: int | None = None,
        dtype: str = "float32",
        threads: int = 1,
    ) -> None:
        self.calibration = checks.integer("calibration", calibration, least=1, most=MOST_LAGS)
        super().__init__(
            streams,
            lag_weights=np.ones(self.calibration),
            capacity=self.calibration,
            smoothing=smoothing,
            dtype=dtype,
            threads=threads,
        )

    def _parameters(self) -> dict[str, Any]:
        return {
            "streams": self.streams,
            "calibration": self.calibration,
            "smoothing": self.smoothing,
            "dtype": self.dtype,
        }

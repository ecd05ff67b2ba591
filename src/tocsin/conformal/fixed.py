"""Scorers with fixed weights over the past: a sliding window, exponential decay, split conformal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.conformal.scorer import MOST_LAGS, Floats, HistoryScorer, Mask, State, Streams


class FixedWeightScorer(HistoryScorer):
    """A conformal scorer with the same fixed weights for every stream (`lag_weights`, the newest lag first).

    `capacity` is how many scores a stream learns before it stops; None for never.
    """

    def __init__(
        self,
        streams: int,
        *,
        lag_weights: Floats,
        capacity: int | None,
        smoothing: int | None,
        dtype: str,
        threads: int,
    ) -> None:
        window = lag_weights.size
        super().__init__(streams, window=window, kept=window, smoothing=smoothing, dtype=dtype, threads=threads)
        grid = self._kernels.GRID
        self._weights = (np.round(lag_weights / grid) * grid).astype(self.dtype)
        self._cumulative = np.concatenate([[0.0], np.cumsum(self._weights, dtype=np.float64)])
        self._capacity = np.iinfo(np.int64).max if capacity is None else capacity
        self.kernel_streams = self._kernels.FixedStreams(
            history=self._history,
            counters=self._counters,
            weights=self._weights,
            cumulative=self._cumulative,
            capacity=self._capacity,
            **self._smoothed(),
        )

    @property
    def weights(self) -> NDArray[Any]:
        """The weights, `[streams, window]`, the newest lag first; 0 for lags without a score yet."""
        held = np.arange(self.window) < self.learned[:, np.newaxis]
        return np.asarray(np.where(held, self._weights, self._weights.dtype.type(0)))

    @property
    def effective_size(self) -> Floats:
        return np.asarray(self._cumulative[np.minimum(self.learned, self.window)])

    def _weights_of(self, stream: int, lags: int) -> tuple[NDArray[Any], float]:
        return self._weights[:lags], float(self._cumulative[lags])

    def _advance_streams(
        self, scores: Floats, learn: Mask, p: Floats, rank: Floats, thread: int, first: int, last: int
    ) -> None:
        self._kernels.advance_fixed(scores, learn, p, rank, first, last, *self.kernel_streams)

    def _restore(self, snapshot: State, streams: Streams) -> None:
        super()._restore(snapshot, streams)
        require_state(np.all(snapshot["learned"] <= self._capacity), "learned", f"counts of at most {self._capacity}")


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

"""The base of scorers with fixed lag weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.history import HistoryScorer
from tocsin.conformal.scorer import Floats, Mask, State, Streams, require_state


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

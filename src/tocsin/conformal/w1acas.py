"""W1-ACAS: conformal p-values whose weights over the past are learned online."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.conformal.scorer import MOST_LAGS, Floats, HistoryScorer, Mask, State, Streams


class W1ACAS(HistoryScorer):
    """Online, adaptive, weighted conformal p-values (Martinez Gil et al., ICLR 2026, Algorithm 1).

    A new score `s` is compared with the stream's past scores `S_k` (lag k), each with a weight `w_k` in [0, 1]::

        p = (1 + sum(w_k * (S_k >= s))) / (1 + sum(w_k))

    After every batch of p-values the weights move one gradient step that brings the batch closer to uniform, measured
    by the 1-Wasserstein distance, and are projected back onto `{0 <= w <= 1, sum(w) >= n_c}` with
    `n_c = ceil(1/alpha_c - 1)`. Weights belong to lags, not to samples, so they can learn a period. They start to move
    once a stream has learned `n_c` scores.

    Parameters
    ----------
    streams : number of independent streams.
    alpha_c : the smallest p-value that must stay possible; sets `n_c`, the least sum of weights.
    window : n, how many past scores a new one is compared with; more than `n_c`.
    batch : n_b, how many p-values one gradient step uses.
    stride : new p-values between two steps; None for `batch`, so that batches do not overlap.
    learning_rate : gamma.
    optimizer : "adam" or "sgd".
    prior : how a lag is weighted when it first holds a score. "recent" (Algorithm 1 as printed): 1 for the newest
        `n_c` lags, 0 beyond; adapts fast, but p-values stay above about `alpha_c`. "extend": the weight of the oldest
        lag so far, so that a fresh stream starts with all ones and p-values resolve down to `1/(window + 1)`.
    smoothing : None, or a seed: reported p-values are then smoothed; what is learned stays the same.
    dtype : precision of stored scores, weights and moments, "float32" or "float64".
    threads : how many threads share the streams.

    Errata of the paper that this class does not follow: the rank index in Eq. 7 and Algorithm 1 (the closed form above
    is the supremum of Eq. 6); the appendix's alarm rule `p > 1 - alpha` (it is `p < alpha`).

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.abs(np.random.default_rng(0).normal(size=(500, 1)))
    >>> scorer = W1ACAS(streams=1)
    >>> scorer.run(errors)[-3:, 0].round(3).tolist()
    [0.559, 0.2, 0.7]
    >>> scorer.update([9.0]).round(3).tolist()
    [0.01]
    """

    guarantee = (
        "P(p <= alpha) <= alpha for exchangeable scores and weights that do not depend on them; otherwise alpha plus "
        "the weighted total-variation distance from exchangeability (Barber et al. 2023, Theorem 2). The weights are "
        "learned from past p-values, so on real data this is a design aim that is measured, not a theorem."
    )

    def __init__(
        self,
        streams: int = 1,
        *,
        alpha_c: float = 0.01,
        window: int = 2000,
        batch: int = 10,
        stride: int | None = None,
        learning_rate: float = 0.001,
        optimizer: str = "adam",
        prior: str = "recent",
        smoothing: int | None = None,
        dtype: str = "float32",
        threads: int = 1,
    ) -> None:
        self.alpha_c = checks.number("alpha_c", alpha_c, above=1 / MOST_LAGS, below=1)
        self.critical_size = critical_size(self.alpha_c)
        window = checks.integer("window", window, least=2, most=MOST_LAGS)
        if window <= self.critical_size:
            raise ValueError(
                f"window must be more than n_c = ceil(1/alpha_c - 1) = {self.critical_size} scores "
                f"for alpha_c={alpha_c!r}, got {window!r}"
            )
        self.batch = checks.integer("batch", batch, least=1, most=MOST_LAGS)
        self.stride = self.batch if stride is None else checks.integer("stride", stride, least=1, most=self.batch)
        # Beyond this, a step from [0, 1] could lead to numbers too coarse for the kernels' grid.
        self.learning_rate = checks.number("learning_rate", learning_rate, above=0, most=1e4)
        self.optimizer = checks.choice("optimizer", optimizer, ("adam", "sgd"))
        self.prior = checks.choice("prior", prior, ("recent", "extend"))
        super().__init__(
            streams, window=window, kept=window + self.batch, smoothing=smoothing, dtype=dtype, threads=threads
        )
        self._weights = np.zeros((self.streams, window), dtype=self.dtype)
        self._totals = np.zeros(self.streams)
        self._moments = np.zeros((self.streams, 2, window if self.optimizer == "adam" else 0), dtype=self.dtype)
        self._batches = np.zeros((self.streams, 2, self.batch))
        self._scratch = [self.new_scratch() for _ in range(self.threads)]
        # Collected once: looking them up for every observation would take a tenth of the scoring time.
        self.kernel_streams = self._kernels.LearnedStreams(
            history=self._history,
            counters=self._counters,
            weights=self._weights,
            totals=self._totals,
            moments=self._moments,
            batches=self._batches,
            critical=self.critical_size,
            stride=self.stride,
            learning_rate=self.learning_rate,
            adam=self.optimizer == "adam",
            extend=self.prior == "extend",
            **self._smoothed(),
        )

    @property
    def weights(self) -> NDArray[Any]:
        """The learned weights, `[streams, window]`, the newest lag first; 0 for lags without a score yet."""
        return self._weights.copy()

    @property
    def effective_size(self) -> Floats:
        return self._totals.copy()

    def _weights_of(self, stream: int, lags: int) -> tuple[NDArray[Any], float]:
        return self._weights[stream, :lags], float(self._totals[stream])

    def new_scratch(self) -> tuple[NDArray[Any], Floats]:
        """Memory for intermediate results of one thread; see `learn_score` of the kernels."""
        return np.zeros(self.window, dtype=self.dtype), np.zeros(2 * self.batch)

    def _advance_streams(
        self, scores: Floats, learn: Mask, p: Floats, rank: Floats, thread: int, first: int, last: int
    ) -> None:
        self._kernels.advance_learned(scores, learn, p, rank, first, last, *self._scratch[thread], *self.kernel_streams)

    def _snapshot(self, streams: Streams) -> State:
        own = {name: getattr(self, f"_{name}")[streams] for name in _LEARNED_ARRAYS}
        return {**super()._snapshot(streams), **own}

    def _restore(self, snapshot: State, streams: Streams) -> None:
        super()._restore(snapshot, streams)
        weights, totals = snapshot["weights"], snapshot["totals"]
        empty = np.arange(self.window) >= snapshot["learned"][:, np.newaxis]
        fits = (weights >= 0) & (weights <= np.where(empty, 0, 1))
        require_state(np.all(fits), "weights", "numbers from 0 to 1, and 0 for lags that hold no score")
        sums = weights.sum(axis=1, dtype=np.float64)
        rounding = 3e-7 * self.window
        least = np.minimum(snapshot["learned"], self.critical_size)
        require_state(
            np.all(sums >= least - rounding), "weights", f"sums of {self.critical_size} or more, once learned"
        )
        require_state(np.allclose(totals, sums, rtol=0, atol=rounding), "totals", "the sums of 'weights'")
        moments, batches = snapshot["moments"], snapshot["batches"]
        require_state(
            np.all((np.abs(moments) <= 1) & (moments[:, 1:] >= 0)),
            "moments",
            "means of gradients, from -1 to 1, and of their squares, from 0 to 1",
        )
        p, sums = batches[:, self._kernels.P], batches[:, self._kernels.TOTAL]
        require_state(
            np.all((p >= 0) & (p <= 1) & (sums >= 0) & (sums <= self.window)),
            "batches",
            f"p-values and sums of weights, from 0 to 1 and from 0 to {self.window}",
        )
        for name in _LEARNED_ARRAYS:
            getattr(self, f"_{name}")[streams] = snapshot[name]


_LEARNED_ARRAYS = ("weights", "totals", "moments", "batches")


def critical_size(alpha_c: float) -> int:
    """n_c, the least number of past scores (or sum of weights) that lets p-values reach down to `alpha_c`.

    >>> critical_size(0.01), critical_size(0.03)
    (99, 33)
    """
    # 1/alpha_c - 1 may come out a rounding error above the integer it should be.
    needed = 1.0 / alpha_c - 1.0
    return max(1, math.ceil(needed - 1e-9 * (1.0 + needed)))

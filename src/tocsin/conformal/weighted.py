"""Scorers that weigh a stream's past scores by lag: with fixed weights, or with weights learned online, as W1-ACAS."""

import math
from abc import abstractmethod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.conformal.scorer import MOST_LAGS, NO_RANKS, Floats, Mask, Scorer, State, Streams, thread_pool

_LEARNED_ARRAYS = ("weights", "totals", "moments", "batches")


class HistoryScorer(Scorer):
    """A scorer that keeps each stream's newest scores and weights them by lag (lag 0 is the newest).

    Parameters
    ----------
    streams : number of independent streams.
    window : the size of the calibration set: how many past scores of a stream a new one is compared with, at most.
    kept : how many past scores a subclass needs to see, `window` or more.
    smoothing : None, or a seed: p-values are then smoothed by a random draw that breaks ties (see `docs/scorers.md`).
    dtype : precision of the stored scores and weights, "float32" or "float64". p-values are always doubles.
    threads : how many threads share the streams. Results do not depend on it.
    """

    def __init__(
        self, streams: int, *, window: int, kept: int, smoothing: int | None, dtype: str, threads: int
    ) -> None:
        super().__init__(streams, threads)
        self.smoothing = (
            smoothing if smoothing is None else checks.integer("smoothing", smoothing, least=0, most=2**63 - 1)
        )
        self.dtype = checks.choice("dtype", dtype, ("float32", "float64"))
        self.window = window
        self._kept = kept
        self._kernels = _load_kernels()
        width = kept + max(64, kept // 32)  # the slack is the number of pushes per move of the row
        self._history = np.zeros((self.streams, width), dtype=self.dtype)
        self._counters = np.zeros((self.streams, self._kernels.COUNTERS), dtype=np.int64)
        self._counters[:, self._kernels.HEAD] = width

    def _smoothed(self) -> dict[str, Any]:
        """The fields of the kernels' streams that say how p-values are smoothed."""
        return {"smooth": self.smoothing is not None, "seed": np.uint64(self.smoothing or 0)}

    @property
    def learned(self) -> NDArray[np.int64]:
        return np.array(self._counters[:, self._kernels.LEARNED])

    def quantile(self, alpha: ArrayLike, streams: ArrayLike | None = None) -> Floats:
        levels, chosen = self._levels(alpha, streams)
        score = np.empty(1, dtype=self.dtype)
        bits = score.view(f"int{8 * score.itemsize}")
        mask = 2 ** (8 * score.itemsize - 1) - 1
        bounds = np.empty(chosen.size)
        for index, stream in enumerate(chosen):
            past, weights, total = self.calibration_set(stream)
            bounds[index] = self._kernels.quantile(past, weights, total, levels[index], score, bits, mask)
        return bounds

    def calibration_set(self, stream: int) -> tuple[NDArray[Any], NDArray[Any], float]:
        """One stream's past scores, their weights and the weights' sum."""
        head = self._counters[stream, self._kernels.HEAD]
        lags = min(int(self._counters[stream, self._kernels.LEARNED]), self.window)
        weights, total = self._weights_of(stream, lags)
        return self._history[stream, head : head + lags], weights, total

    @abstractmethod
    def _weights_of(self, stream: int, lags: int) -> tuple[NDArray[Any], float]:
        """The weights of a stream's newest `lags` scores, and their sum."""

    def _advance(self, scores: Floats, learn: Mask, p: Floats, rank: Floats = NO_RANKS) -> None:
        threads = min(self.threads, self.streams)
        if threads == 1:
            self._advance_streams(scores, learn, p, rank, 0, 0, self.streams)
            return
        edges = [self.streams * thread // threads for thread in range(threads + 1)]
        others = [
            thread_pool(threads - 1).submit(
                self._advance_streams, scores, learn, p, rank, thread, *edges[thread : thread + 2]
            )
            for thread in range(1, threads)
        ]
        self._advance_streams(scores, learn, p, rank, 0, 0, edges[1])
        for other in others:
            other.result()

    @abstractmethod
    def _advance_streams(
        self, scores: Floats, learn: Mask, p: Floats, rank: Floats, thread: int, first: int, last: int
    ) -> None:
        """Process the streams from `first` up to `last` with a kernel, which releases the GIL."""

    def _snapshot(self, streams: Streams) -> State:
        kernels = self._kernels
        counters = self._counters[streams]
        scores = np.zeros((streams.size, self._kept), dtype=self.dtype)
        for row, stream, head in zip(scores, streams, counters[:, kernels.HEAD], strict=True):
            newest = self._history[stream, head : head + self._kept]
            row[: newest.size] = newest
        return {
            "seen": counters[:, kernels.SEEN].copy(),
            "learned": counters[:, kernels.LEARNED].copy(),
            "scores": scores,
        }

    def _restore(self, snapshot: State, streams: Streams) -> None:
        seen, learned, scores = snapshot["seen"], snapshot["learned"], snapshot["scores"]
        require_state(np.all(learned >= 0), "learned", "counts of zero or more")
        # Far more than any stream will see, and far from where a counter would overflow.
        require_state(np.all((seen >= learned) & (seen < 2**62)), "seen", "counts from those in 'learned' to 2**62")
        require_state(not np.isnan(scores).any(), "scores", "no NaN")
        head = self._history.shape[1] - self._kept
        self._history[streams, head:] = scores
        self._counters[streams, self._kernels.SEEN] = seen
        self._counters[streams, self._kernels.LEARNED] = learned
        self._counters[streams, self._kernels.HEAD] = head


def _load_kernels() -> ModuleType:
    # numba is slow to import: only scoring waits for it.
    from tocsin.conformal import kernels

    return kernels


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


def critical_size(alpha_c: float) -> int:
    """n_c, the least number of past scores (or sum of weights) that lets p-values reach down to `alpha_c`.

    >>> critical_size(0.01), critical_size(0.03)
    (99, 33)
    """
    # 1/alpha_c - 1 may come out a rounding error above the integer it should be.
    needed = 1.0 / alpha_c - 1.0
    return max(1, math.ceil(needed - 1e-9 * (1.0 + needed)))


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

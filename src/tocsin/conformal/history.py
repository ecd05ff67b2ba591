"""The base of scorers that compare a score with earlier ones."""

import os
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.conformal.scorer import NO_RANKS, Floats, Mask, Scorer, State, Streams, require_state

# Over more lags than this, sums of weights would no longer be exact (see kernels/weights.py).
MOST_LAGS = 2**16


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


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that share the streams or signals, started once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tocsin")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: a child that used its parent's pool would wait forever.
    os.register_at_fork(after_in_child=thread_pool.cache_clear)

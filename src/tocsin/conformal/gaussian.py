"""Tail probabilities of a normal distribution fitted to the first scores."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.conformal.merge import normal_cdf, normal_quantile
from tocsin.conformal.scorer import NO_RANKS, SMALLEST_P, Floats, Mask, Scorer, State, Streams

MOST_SCORES = 2**16  # the largest calibration set


class GaussianTail(Scorer):
    """The probability of a score at least this large under a normal distribution fitted to the first scores.

    The paper's Gaussian baseline, for comparison. Each stream's first `calibration` scores are its calibration set.
    While that fills, a score is compared with the scores so far (p = 1 before there are two) and then added. Infinite
    scores are judged but never added, as they have no place in a mean. `threads` is accepted as in every scorer,
    although there is too little work to share.

    Examples
    --------
    >>> scorer = GaussianTail(calibration=4)
    >>> _ = scorer.run([[1.0], [2.0], [3.0], [4.0]])
    >>> scorer.update([5.0]).round(4).tolist()
    [0.0264]
    """

    guarantee = (
        "None, unless the scores are normal and the sample is large: the tail of a fitted normal is not a valid "
        "p-value for other scores."
    )

    def __init__(self, streams: int = 1, *, calibration: int = 100, threads: int = 1) -> None:
        super().__init__(streams, threads)
        self.calibration = checks.integer("calibration", calibration, least=2, most=MOST_SCORES)
        self._learned = np.zeros(self.streams, dtype=np.int64)
        self._sample = np.zeros((self.streams, self.calibration))
        self._mean = np.zeros(self.streams)
        self._deviation = np.zeros(self.streams)

    @property
    def learned(self) -> NDArray[np.int64]:
        return self._learned.copy()

    @property
    def effective_size(self) -> Floats:
        return self._learned.astype(np.float64)

    def quantile(self, alpha: ArrayLike, streams: ArrayLike | None = None) -> Floats:
        levels, chosen = self._levels(alpha, streams)
        mean, deviation = self._mean[chosen], self._deviation[chosen]
        with np.errstate(invalid="ignore", over="ignore"):
            bounds: Floats = mean - deviation * normal_quantile(levels)
        bounds[deviation == 0] = mean[deviation == 0]
        bounds[(self._learned[chosen] < 2) | (levels <= SMALLEST_P)] = np.inf
        return bounds

    def _advance(self, scores: Floats, learn: Mask, p: Floats, rank: Floats = NO_RANKS) -> None:
        for row, mask, out in zip(scores, learn, p, strict=True):
            out[:] = self._tail(row)
            joins = mask & np.isfinite(row) & (self._learned < self.calibration)
            if joins.any():
                streams = np.flatnonzero(joins)
                self._sample[streams, self._learned[streams]] = row[streams]
                self._learned[streams] += 1
                self._fit(streams)
        if rank.size:
            rank[...] = p  # its p-values have no smallest value and need no refinement

    def _tail(self, scores: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            p: Floats = np.maximum(normal_cdf((self._mean - scores) / self._deviation), SMALLEST_P)
        certain = self._deviation == 0
        p[certain] = np.where(scores[certain] > self._mean[certain], SMALLEST_P, 1.0)
        p[self._learned < 2] = 1.0
        p[np.isnan(scores)] = np.nan
        return p

    def _fit(self, streams: NDArray[np.int64]) -> None:
        """Mean and deviation (with n - 1) of each stream's calibration set, scaled so that squares cannot overflow."""
        for k in streams:
            sample = self._sample[k, : self._learned[k]]
            if sample.min() == sample.max():
                self._mean[k], self._deviation[k] = sample[0], 0.0
                continue
            scale = np.abs(sample).max()
            self._mean[k] = (sample / scale).mean() * scale
            with np.errstate(over="ignore"):
                self._deviation[k] = min((sample / scale).std(ddof=1) * scale, np.finfo(np.float64).max)

    def _snapshot(self, streams: Streams) -> State:
        return {"learned": self._learned[streams], "sample": self._sample[streams]}

    def _restore(self, snapshot: State, streams: Streams) -> None:
        learned, sample = snapshot["learned"], snapshot["sample"]
        counts = (learned >= 0) & (learned <= self.calibration)
        require_state(np.all(counts), "learned", f"counts from 0 to {self.calibration}")
        require_state(np.isfinite(sample).all(), "sample", "finite numbers")
        self._learned[streams] = learned
        self._sample[streams] = sample
        self._fit(streams[learned > 0])

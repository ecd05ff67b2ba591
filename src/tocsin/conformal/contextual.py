"""Weights by lag and by context: a past score counts the more, the more alike its situation was."""

from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.conformal.scorer import Floats, State
from tocsin.conformal.storage import SCORERS
from tocsin.conformal.weighted import HistoryScorer, SlidingWindow, critical_size


class ContextualScorer:
    """Weighs the past scores of another scorer also by how alike their contexts were.

    A context is what was known before the score: the hour of the week, the level, how much values moved lately. With
    the scorer's weight `w_k` at lag k, and `d_k` how far the context then is from the one now, in bandwidths::

        p = (1 + sum(w_k * c_k * (S_k >= s))) / (1 + sum(w_k * c_k)),   c_k = exp(-d_k**2 / 2)

    If less than `n_c = ceil(1/alpha_c - 1)` is left of the weights, all `c_k` move towards 1 until it is `n_c`, or all
    there is. The scorer goes on to learn its weights by lag as it does alone.

    Parameters
    ----------
    scorer : a new `W1ACAS`, or another one with weights over its past, which only this one uses from now on.
    bandwidth : for each number of a context, how far apart two are alike; infinite if it does not matter.
    alpha_c : the smallest p-value that must stay possible.
    contexts : the past contexts of a scorer that is restored.

    Examples
    --------
    >>> scorer = ContextualScorer(SlidingWindow(window=100), bandwidth=[0.1], alpha_c=0.5)
    >>> scorer.run([[1.0], [9.0], [2.0], [8.0]], [[0.0], [1.0], [0.0], [1.0]])[:, 0].round(2).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """

    guarantee = (
        "P(p <= alpha) <= alpha for exchangeable scores, if neither contexts nor weights depend on them, as with the "
        "time of day; with contexts that follow the values, such as their level, an aim and no promise."
    )

    def __init__(
        self,
        scorer: HistoryScorer,
        bandwidth: ArrayLike,
        *,
        alpha_c: float = 0.01,
        contexts: SlidingWindow | None = None,
    ) -> None:
        if not isinstance(scorer, HistoryScorer):
            raise TypeError(f"scorer must be one with weights over its past, such as W1ACAS, got {scorer!r}")
        self.bandwidth = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64))
        if self.bandwidth.ndim != 1 or not self.bandwidth.size or not np.all(self.bandwidth > 0):
            raise ValueError(f"bandwidth must be numbers above 0, one for each of a context, got {bandwidth!r}")
        self.alpha_c = checks.number("alpha_c", alpha_c, above=0, below=1)
        self.scorer = scorer
        # Past contexts are kept as a scorer keeps scores: a stream for each number of a context of each stream.
        self._contexts = contexts or SlidingWindow(
            scorer.streams * self.bandwidth.size, window=scorer.window, dtype="float64"
        )
        if not np.array_equal(self._contexts.learned, np.repeat(scorer.learned, self.bandwidth.size)):
            raise ValueError(f"scorer must be new, as the contexts of its past are unknown, got {scorer!r}")

    def update(self, scores: ArrayLike, context: ArrayLike, learn: bool | ArrayLike = True) -> Floats:
        """Score one observation of every stream, `scores[K]`, in a context that all of them share."""
        row, now = checks.numbers("scores", scores).reshape(-1), checks.numbers("context", context).reshape(-1)
        if row.size != self.scorer.streams:
            raise ValueError(f"scores must be {self.scorer.streams}, one for each stream, got {row.size}")
        if now.size != self.bandwidth.size or not np.isfinite(now).all():
            raise ValueError(f"context must be {self.bandwidth.size} finite numbers, as bandwidth, got {context!r}")
        p = np.array([self._p(stream, score, now) for stream, score in enumerate(row)])
        columns = np.where(np.isnan(row)[:, np.newaxis], np.nan, now)
        learned = np.broadcast_to(learn, row.shape)
        self._contexts.update(columns.reshape(-1), np.repeat(learned, now.size))
        self.scorer.update(row, learned)
        return p

    def run(self, scores: ArrayLike, contexts: ArrayLike, learn: bool = True) -> Floats:
        """Score a history, `scores[T, K]` in `contexts[T, C]`, as if by T calls of `update`."""
        table, given = checks.numbers("scores", scores), checks.numbers("contexts", contexts)
        if len(table) != len(given):
            raise ValueError(f"contexts must be one for each of {len(table)} observations, got {len(given)}")
        rows = [self.update(row, context, learn) for row, context in zip(table, given, strict=True)]
        return np.array(rows).reshape(len(table), self.scorer.streams)

    def _p(self, stream: int, score: float, now: Floats) -> float:
        if np.isnan(score):
            return float("nan")
        past, weights, _ = self.scorer.calibration_set(stream)
        by_lag = weights.astype(np.float64)
        weighed = self._weighed(by_lag, self._alike(stream, now))
        # Sums may be rounded differently: p of the lowest score must not come out above 1.
        return min(1.0, float((1 + weighed[past >= past.dtype.type(score)].sum()) / (1 + weighed.sum())))

    def _alike(self, stream: int, now: Floats) -> Floats:
        """How alike the contexts of the past were, the newest first: 1 for the same."""
        first = stream * now.size
        columns = [self._contexts.calibration_set(first + number)[0] for number in range(now.size)]
        distances = (np.stack(columns) - now[:, np.newaxis]) / self.bandwidth[:, np.newaxis]
        return np.asarray(np.exp(-np.square(distances).sum(axis=0) / 2))

    def _weighed(self, by_lag: Floats, alike: Floats) -> Floats:
        whole, left = by_lag.sum(), (by_lag * alike).sum()
        missing = min(critical_size(self.alpha_c), whole) - left
        towards = missing / (whole - left) if missing > 0 else 0.0
        return np.asarray(by_lag * (alike + towards * (1 - alike)))

    def state(self) -> State:
        """Everything needed to continue later, as plain arrays, for `from_state`."""
        return {
            "bandwidth": self.bandwidth.copy(),
            "alpha_c": np.array(self.alpha_c),
            **{f"scorer.{name}": array for name, array in self.scorer.state().items()},
            **{f"contexts.{name}": array for name, array in self._contexts.state().items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], *, threads: int = 1) -> Self:
        """The scorer that `state()` described."""
        parts: dict[str, State] = {"scorer": {}, "contexts": {}, "": {}}
        for name, array in state.items():
            part, _, of_part = name.rpartition(".")
            parts.get(part, {})[of_part] = array
        try:
            kind, own = SCORERS[str(parts["scorer"]["scorer"])], parts[""]
            bandwidth, alpha_c = own["bandwidth"], float(own["alpha_c"])
        except KeyError as error:
            raise ValueError(f"state must be that of a ContextualScorer, got none of {error}") from error
        scorer = kind.from_state(parts["scorer"], threads=threads)
        contexts = SlidingWindow.from_state(parts["contexts"])
        return cls(cast("HistoryScorer", scorer), bandwidth, alpha_c=alpha_c, contexts=contexts)

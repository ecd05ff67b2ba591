"""The contract of every scorer, and the threads that share their streams."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import checked_state, nbytes_of, require_arrays

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Streams = NDArray[np.intp]
State = dict[str, NDArray[Any]]

# Replaces every smaller positive p-value: zero would claim that the observation is impossible.
SMALLEST_P = float(np.finfo(np.float64).tiny)

# For callers that do not need ranks.
NO_RANKS: Floats = np.empty((0, 0))

STATE_FORMAT = 1
MOST_THREADS = 1024
# Over more lags than this, sums of weights would no longer be exact (see kernels.py).
MOST_LAGS = 2**16


class Scorer(ABC):
    """Turns nonconformity scores into p-values, for `streams` independent streams at once.

    A p-value answers: how often was a score at least this large seen before? It is low when the new score is unusual.
    Each stream has its own calibration set; streams do not affect each other.

    - NaN marks a stream without a score this time: its p-value is NaN and its state does not change. So
      streams may start at different times and pause at will.
    - Infinite scores are scores like any other: larger (or smaller) than all finite ones.
    - `update` and `run` give the same numbers for the same scores, and a scorer restored from its state continues
      with exactly the numbers of one that was never interrupted.
    - Memory does not grow with the number of observations.
    - A scorer serves one caller at a time: it does not lock.
    """

    #: What is guaranteed about the p-values, and under which assumption.
    guarantee: ClassVar[str]

    def __init__(self, streams: int, threads: int) -> None:
        self.threads = checks.integer("threads", threads, least=1, most=MOST_THREADS)
        self.streams = checks.integer("streams", streams, least=1, most=2**31 - 1)
        self._learn_all = np.ones((1, self.streams), dtype=np.bool_)

    def update(self, scores: ArrayLike, learn: bool | ArrayLike = True) -> Floats:
        """Score one observation of every stream; returns one p-value for each.

        Where `learn` (one boolean, or one for each stream) is false, the score gets its p-value but does not join the
        calibration set.
        """
        row = checks.numbers("scores", scores)
        if row.shape != (self.streams,) and not (row.ndim == 0 and self.streams == 1):
            raise ValueError(f"scores must have shape ({self.streams},), one for each stream, got shape {row.shape}")
        p = np.empty((1, self.streams))
        mask = self._learn_all if learn is True else self._mask(learn, p.shape)
        self._advance(row.reshape(p.shape), mask, p)
        return p.reshape(self.streams)

    def run(self, scores: ArrayLike, learn: bool | ArrayLike = True) -> Floats:
        """Score a history, `scores[T, K]`, as if by T calls of `update`; returns p-values of the same shape.

        `learn` is one boolean, one for each stream, or one for each score. The history of a single stream may be
        one-dimensional, and so may its `learn`.
        """
        if np.ndim(scores) == 1 and self.streams == 1:
            column = np.reshape(learn, (-1, 1)) if np.ndim(learn) == 1 else learn
            return self.run(np.reshape(scores, (-1, 1)), column).reshape(-1)
        table = self._table(scores)
        p = np.empty(table.shape)
        self._advance(table, self._mask(learn, table.shape), p)
        return p

    def run_ranked(self, scores: ArrayLike, learn: bool | ArrayLike = True) -> tuple[Floats, Floats]:
        """`run`, and for each score also a rank: its p-value, slightly lowered where that tells scores apart.

        All scores larger than those before them have the same p-value, the smallest possible, however large they are;
        and that value changes with the weights. Ranks order them, and are about uniform also where p-values cannot go.
        A rank is not a p-value: merge ranks, and let another scorer turn the result into a p-value.
        """
        table = self._table(scores)
        p, rank = np.empty(table.shape), np.empty(table.shape)
        self._advance(table, self._mask(learn, table.shape), p, rank)
        return p, rank

    def _table(self, scores: ArrayLike) -> Floats:
        table = checks.numbers("scores", scores)
        if table.ndim != 2 or table.shape[1] != self.streams:
            raise ValueError(
                f"scores must have shape (T, {self.streams}), a column for each stream, got shape {table.shape}"
            )
        return table

    @staticmethod
    def _mask(learn: bool | ArrayLike, shape: tuple[int, ...]) -> Mask:
        if isinstance(learn, bool):  # the usual case, and the fast one
            return np.full(shape, learn)
        given = np.asarray(learn)
        if given.dtype != np.bool_:
            raise TypeError(f"learn must be true or false, or an array of such, got {given.dtype} values")
        try:
            return np.array(np.broadcast_to(given, shape), order="C")
        except ValueError:
            raise ValueError(f"learn must fit scores of shape {shape}, got shape {given.shape}") from None

    @abstractmethod
    def quantile(self, alpha: ArrayLike, streams: ArrayLike | None = None) -> Floats:
        """For each stream, the largest score whose p-value is still at least `alpha`: `p < alpha` for all above it.

        `streams` are the indices of the streams, all of them if None; `alpha` is one number, or one for each. Infinite
        if the calibration set is too small for `alpha`, so that no score can have such a small p-value. It is the
        inverse of the unsmoothed p-value.
        """

    def _levels(self, alpha: ArrayLike, streams: ArrayLike | None) -> tuple[Floats, Streams]:
        """The arguments of `quantile`, one level for each of the streams."""
        chosen = self._chosen(streams)
        if np.ndim(alpha) == 0:
            return np.full(chosen.shape, checks.number("alpha", alpha, above=0, most=1)), chosen
        levels = checks.numbers("alpha", alpha)
        if levels.shape != chosen.shape or not np.all((levels > 0) & (levels <= 1)):
            raise ValueError(f"alpha must be a number > 0 and <= 1, or one for each of the streams, got {alpha!r}")
        return levels, chosen

    def _chosen(self, streams: ArrayLike | None) -> Streams:
        """The argument `streams`: indices, those of all streams for None."""
        everything = np.arange(self.streams) if streams is None else streams
        return checks.indices("streams", everything, self.streams, of="streams", distinct=False)

    @property
    @abstractmethod
    def learned(self) -> NDArray[np.int64]:
        """For each stream, how many scores it has learned from so far."""

    @property
    @abstractmethod
    def effective_size(self) -> Floats:
        """For each stream, the effective sample size behind its p-values: the sum of weights."""

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays of all streams together; constant over the life of the scorer."""
        return nbytes_of(*vars(self).values())

    @abstractmethod
    def _advance(self, scores: Floats, learn: Mask, p: Floats, rank: Floats = NO_RANKS) -> None:
        """Score `scores[T, K]` into `p[T, K]` and learn where the mask says so.

        Unless `rank` is empty, the scores' ranks are written to it.
        """

    def _parameters(self) -> dict[str, Any]:
        """The arguments that create an equal scorer."""
        return {name: value for name, value in checks.arguments_of(self).items() if name != "threads"}

    @abstractmethod
    def _snapshot(self, streams: Streams) -> State:
        """Copies of all arrays that later p-values of these streams depend on, each with the streams first."""

    @abstractmethod
    def _restore(self, snapshot: State, streams: Streams) -> None:
        """Restore a snapshot, after checking everything that a damaged file could get wrong."""

    def state(self, streams: ArrayLike | None = None) -> State:
        """Everything needed to continue later, as plain arrays (no pickle): for `from_state`, or to save.

        With `streams`, the indices of some, it is the state of a scorer with only these.
        """
        chosen = self._chosen(streams)
        if not chosen.size:
            raise ValueError(f"streams must be one index or more, got {streams!r}")
        return {
            "format": np.array(STATE_FORMAT),
            "scorer": np.array(type(self).__name__),
            "parameters": np.array(json.dumps({**self._parameters(), "streams": chosen.size})),
            **self._snapshot(chosen),
        }

    def copy_from(self, streams: ArrayLike, other: "Scorer") -> None:
        """Replace the state of these streams with that of another scorer, which may differ only in its stream count.

        The other scorer and all other streams do not change. p-values continue exactly unless they are smoothed: a
        stream's random draws depend on its index.
        """
        chosen = self._chosen(streams)
        if np.unique(chosen).size != chosen.size or chosen.size != other.streams:
            raise ValueError(
                f"streams must be {other.streams} distinct indices, one for each of other's, got {streams!r}"
            )
        theirs, own = ({"scorer": type(one).__name__, **one._parameters(), "streams": None} for one in (other, self))
        if theirs != own:
            raise ValueError(f"other must be made like this scorer, got {differences(theirs, own)}")
        self._restore(other._snapshot(np.arange(other.streams)), chosen)

    @classmethod
    def from_state(cls, state: Mapping[str, ArrayLike], *, threads: int = 1) -> Self:
        """The scorer that `state()` described; `threads` is not part of a state."""
        require_arrays(state, {"format", "scorer", "parameters", "learned"})
        threads = checks.integer("threads", threads, least=1, most=MOST_THREADS)
        arrays = {name: np.asarray(value) for name, value in state.items()}
        found = arrays["format"].tolist()
        if type(found) is not int or found != STATE_FORMAT:
            raise ValueError(f"state['format'] must be {STATE_FORMAT}, the version this release reads, got {found!r}")
        kind = str(arrays["scorer"])
        if kind != cls.__name__:
            raise ValueError(f"state['scorer'] must be {cls.__name__!r}, got {kind!r}")
        try:
            parameters = json.loads(str(arrays["parameters"]))
            # Checked before allocating as many streams as a damaged file may claim.
            if arrays["learned"].shape != (parameters["streams"],):
                raise ValueError(f"streams={parameters['streams']} does not fit state['learned']")
            scorer = cls(**parameters, threads=threads)
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"state['parameters'] is damaged: {error}") from error
        everything = np.arange(scorer.streams)
        scorer._restore(checked_state(arrays, scorer._snapshot(everything)), everything)
        return scorer

    def __reduce__(self) -> tuple[Any, ...]:
        """Copying and pickling use the state."""
        return _rebuilt, (type(self), self.state(), self.threads)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({given})"


def _rebuilt(scorer: type[Scorer], state: State, threads: int) -> Scorer:
    return scorer.from_state(state, threads=threads)


def differences(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Which entries of two mappings differ, as text.

    >>> differences({"window": 20, "decay": 0.9}, {"window": 30, "decay": 0.9})
    'window=20 instead of 30'
    """
    return ", ".join(
        f"{name}={theirs.get(name)!r} instead of {own.get(name)!r}"
        for name in dict.fromkeys([*own, *theirs])
        if theirs.get(name) != own.get(name)
    )


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that share the streams or signals, started once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tocsin")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: a child that used its parent's pool would wait forever.
    os.register_at_fork(after_in_child=thread_pool.cache_clear)

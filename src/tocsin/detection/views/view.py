"""The contract that every view keeps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
State = dict[str, NDArray[Any]]

NO_SPREAD: Floats = np.empty((0, 0, 0, 0))
NO_FAULTS: Floats = np.empty((0, 0, 0, 0))

# So many observations of a signal come to a session at once, at most.
MOST_AT_ONCE = 100

# How the scores of one view are merged: of errors the strangest horizon counts, of shapes all lengths together.
HARMONIC, MEDIAN, GEOMETRIC = 0, 1, 2


@dataclass(frozen=True)
class Stream:
    """One score of a view for each observation.

    `length` is how many of the newest observations it looks at. `weight` is its share where a view merges its scores
    by their geometric mean.
    """

    name: str
    length: int = 1
    weight: float = 1.0


@dataclass(frozen=True)
class Seen:
    """What views look at: T observations of N signals with F features.

    `predicted[..., h - 1]` had been forecast for an observation h observations before it; `issued[..., h - 1]` was
    forecast after it for h observations later. The spreads belong to them, and are empty where nobody asked for them.
    `ready` tells where the forecaster can be judged: not before it has settled, nor right after a long gap. `faults`
    are the logarithms of the odds of a fault, as `tocsin.forecasting.Forecast` has them; empty where no view looks at
    them.
    """

    values: Floats  # (T, N, F), NaN where missing
    predicted: Floats  # (T, N, F, horizons)
    spread: Floats
    issued: Floats  # (T, N, F, steps)
    issued_spread: Floats
    ready: Mask  # (T, N, F)
    faults: Floats = field(default_factory=lambda: NO_FAULTS)  # (T, N, F, 2)


class Past(NamedTuple):
    """The newest values of signals that a session keeps, for others to look at."""

    values: NDArray[np.float64]  # (S, F, width), the newest first
    heads: NDArray[np.int64]  # where the newest of each signal is
    counts: NDArray[np.int64]  # how many it has taken in all
    reach: int  # how many are there before any of those that may come at once


class ViewSession(ABC):
    """A view that follows signals, some observations of some of them at a time.

    Whether observations come one by one or together makes no difference to the scores, to the last bit. Memory does not
    grow. A session restored from its state goes on with exactly the scores of one that was never interrupted.
    """

    @abstractmethod
    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        """Write the scores of the signals `rows` to `scores[T, N, F, streams]`; NaN where there is none.

        A joint view writes to the first feature only.
        """

    def freeze(self, rows: Rows) -> Floats | None:
        """Take what these signals have shown so far for the reference that they are compared with from now on.

        Returns, for each of them, how large the first of its scores is within the reference at most; None for a session
        that compares with forecasts only and has nothing to do.
        """
        return None

    @property
    def past(self) -> Past | None:
        """The values it keeps of each signal, if it does."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes held for all signals together."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def state(self, rows: Rows) -> State:
        """Copies of all arrays that later scores of these signals depend on, each with the signals first."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows) -> None:
        """Take over, for these signals, what `state` gave of as many."""
        self._check(state, self.state(rows))
        self._restore({name: np.asarray(value) for name, value in state.items()}, rows)

    @staticmethod
    def _check(state: Mapping[str, NDArray[Any]], expected: State) -> None:
        """Refuse arrays of other names, shapes or types."""
        for name, own in expected.items():
            got = np.asarray(state[name])
            if got.shape != own.shape or got.dtype != own.dtype:
                raise ValueError(f"state[{name!r}] must be {own.dtype} of shape {own.shape}, got shape {got.shape}")

    def _restore(self, state: State, rows: Rows) -> None:  # noqa: B027
        """Take over arrays of the right names, shapes and types; refuse values that cannot have been written.

        A session that keeps nothing has nothing to do.
        """


class View(ABC):
    """One question about the newest observations of a signal, answered by one number or a few: larger is stranger.

    A subclass names itself and its streams and opens sessions. What a detector makes of the scores is the same for all
    views: each stream is ranked in its own past, the streams of a view are merged, and so are the views.
    """

    #: The name it goes by in settings, states and explanations.
    name: ClassVar[str]
    #: Whether all features of a signal share one score.
    joint: ClassVar[bool] = False
    #: How the streams of the view are merged.
    merge: ClassVar[int] = HARMONIC
    #: What the view counts in the geometric mean of all views, which ranks observations.
    together: ClassVar[float] = 1.0
    #: What it counts by itself where alarms are decided.
    alone: ClassVar[float] = 0.0
    #: Whether it judges forecasts.
    forecasts: ClassVar[bool] = False
    #: Whether it looks at the odds of faults, which not every forecaster gives.
    judgements: ClassVar[bool] = False
    #: Whether the sign of its scores tells high values from low ones. The size is what is ranked, or, for one-sided
    #: alarms, the score itself.
    sided: ClassVar[bool] = False

    streams: tuple[Stream, ...]

    @property
    def horizons(self) -> int:
        """How many steps ahead of the forecasts made before an observation it looks at."""
        return 0

    @property
    def steps(self) -> int:
        """How many steps of the forecasts made after an observation it looks at."""
        return self.horizons

    @property
    def begins(self) -> int:
        """After how many observations the first score comes, counted from where a forecaster that it judges settled."""
        return min(stream.length for stream in self.streams) - 1

    @abstractmethod
    def open(self, signals: int, features: int, side: int) -> ViewSession:
        """Start to follow signals. `side` is that of `tocsin.detection.nonconformity`: both, high or low."""

    @abstractmethod
    def words(self, stream: int, score: float, unit: str) -> str:
        """What a person should read of such a score of the stream with this number: a short clause."""


def side(score: float) -> str:
    """On which side of its forecast a value lies, by the sign of its error."""
    return "above" if score > 0 else "below" if score < 0 else "at"


def amount(number: float, unit: str = "") -> str:
    """A number with three digits and its unit.

    >>> amount(2.3456, "mm/s")
    '2.35 mm/s'
    """
    return f"{number:.3g} {unit}".rstrip()

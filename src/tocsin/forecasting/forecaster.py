"""The contract that every forecaster keeps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
State = dict[str, NDArray[Any]]

MOST_SERIES = 2**31 - 1
MOST_STEPS = 4096
# Beyond this a value counts as infinite: differences and sums of such values would be.
LARGEST = 1e300
# How many odds of faults a forecast comes with, if any.
ODDS = 2
# So many observations of a history are followed at once: the forecasts after all of a long one could fill the memory.
_TOGETHER = 4096


class Forecast(NamedTuple):
    """What is expected of the steps that follow, nearest first.

    `median` has the shape (..., horizon). `quantiles` has one axis more, ascending along it, one entry for each of the
    forecaster's `levels`; None from a forecaster that gives medians only. `faults (..., 2)` are the logarithms of the
    odds that the newest observation belongs to a fault, and that one was under way within the newest few; None from
    a forecaster that does not judge. NaN where nothing can be said yet.
    """

    median: Floats
    quantiles: Floats | None = None
    faults: Floats | None = None


class Session(ABC):
    """A forecaster following `series` series, one observation of each at a time.

    NaN is an observation that is missing: time goes on, nothing is learned from it. An infinite one is taken as
    missing. Memory does not grow, and a session restored from its state goes on with exactly the numbers of one that
    was never interrupted.
    """

    def __init__(self, series: int, horizon: int) -> None:
        self.series = checks.integer("series", series, least=1, most=MOST_SERIES)
        self.horizon = checks.integer("horizon", horizon, least=1, most=MOST_STEPS)
        self._all_rows = np.arange(self.series)

    def push(self, values: ArrayLike, rows: Rows | None = None) -> Forecast:
        """Take one observation of each series; returns their forecasts, `(series, horizon)`."""
        row = checks.numbers("values", values)
        count = self.series if rows is None else np.size(rows)
        if row.shape != (count,):
            raise ValueError(f"values must have shape ({count},), one for each series, got shape {row.shape}")
        forecast = self.run(row[np.newaxis], rows)
        return Forecast(*(None if part is None else part[0] for part in forecast))  # type: ignore[arg-type]

    def run(self, values: ArrayLike, rows: Rows | None = None, wanted: NDArray[np.bool_] | None = None) -> Forecast:
        """Take a history `values[T, N]`, as if by T calls of `push`; returns the forecasts, `(T, N, horizon)`.

        Entry `[t, n]` is the forecast made after `values[t, n]`. `rows` names the series that the columns belong to,
        each at most once; all others stay as they are. Where `wanted[t, n]` is false nobody will look at the forecast,
        which may then be NaN.
        """
        table = checks.numbers("values", values)
        rows = self._all_rows if rows is None else self._checked_rows(rows)
        if table.ndim != 2 or table.shape[1] != rows.size:
            raise ValueError(
                f"values must have shape (T, {rows.size}), a column for each series, got shape {table.shape}"
            )
        wanted = np.ones(table.shape, dtype=np.bool_) if wanted is None else np.asarray(wanted)
        if wanted.dtype != np.bool_ or wanted.shape != table.shape:
            raise ValueError(
                f"wanted must be true or false for each of values, shape {table.shape}, "
                f"got {wanted.dtype} of shape {wanted.shape}"
            )
        return self._run(without_infinities(table), rows, np.ascontiguousarray(wanted))

    def _checked_rows(self, rows: ArrayLike) -> Rows:
        """The argument `rows`; a wrong one would have the compiled loops write into memory that is not theirs."""
        array = np.asarray(rows)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(f"rows must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
        if array.size and not (array.min() >= 0 and array.max() < self.series and np.unique(array).size == array.size):
            raise ValueError(f"rows must be different numbers from 0 to {self.series - 1}, got {array!r}")
        return np.ascontiguousarray(array, dtype=np.intp)

    @abstractmethod
    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        """`run`, with everything checked."""

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together, at most over the life of the session."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def state(self, rows: Rows | None = None) -> State:
        """Copies of all arrays that later forecasts of these series (all of them if None) depend on.

        Along the first axis of each array are the series.
        """
        return self._snapshot(self._all_rows if rows is None else self._checked_rows(rows))

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows | None = None) -> None:
        """Take over, for these series, what `state()` gave of as many in a session opened in the same way.

        All other series stay as they are.
        """
        rows = self._all_rows if rows is None else self._checked_rows(rows)
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a mapping of names to arrays, got {type(state).__name__}")
        expected = self._snapshot(rows)
        missing = sorted(expected.keys() - state.keys())
        if missing:
            raise ValueError(f"state must hold the arrays {sorted(expected)}, missing {missing}")
        for name, wanted in expected.items():
            got = np.asarray(state[name])
            if got.shape != wanted.shape or got.dtype != wanted.dtype:
                raise ValueError(
                    f"state[{name!r}] must be {wanted.dtype} of shape {wanted.shape}, "
                    f"got {got.dtype} of shape {got.shape}"
                )
        self._restore({name: np.asarray(state[name]) for name in expected}, rows)

    @abstractmethod
    def _snapshot(self, rows: Rows) -> State:
        """`state`, with everything checked."""

    @abstractmethod
    def _restore(self, state: State, rows: Rows) -> None:
        """Take over arrays of the right names, shapes and types; refuse values that cannot have been written."""


class Forecaster(ABC):
    """Says what comes next.

    There are two kinds. A `ContextForecaster` (pretrained models) reads the newest observations anew for every
    forecast and keeps nothing. A `StreamForecaster` learns as it goes along. Both can be used in both ways: `forecast`
    for contexts given whole, `open` to follow series observation by observation.
    """

    #: The name it goes by in commands and files.
    name: ClassVar[str]
    #: The extra that brings the libraries it needs, or None.
    extra: ClassVar[str | None] = None
    #: The levels of the quantiles that it gives, ascending; empty where it gives medians only.
    levels: tuple[float, ...] = ()
    #: How many observations it takes, roughly, until it forecasts as well as it is going to. Errors made before would
    #: only spoil what later ones are compared with.
    settles: int = 0
    #: How many observations it needs after a gap longer than its horizon, roughly, until what it fills in for the gap
    #: no longer shows in its forecasts.
    recovers: int = 0
    #: Whether a forecast takes so long that who needs it twice had better keep it.
    slow: ClassVar[bool] = True

    @property
    def judges(self) -> bool:
        """Whether its forecasts come with the odds of faults."""
        return False

    @property
    def longest_horizon(self) -> int:
        """How many steps ahead it can look."""
        return MOST_STEPS

    @abstractmethod
    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        """Forecast the next `horizon` steps of each context, `(contexts, horizon)`.

        Contexts may differ in length and may hold NaN for what is missing, but each holds at least one number.
        """

    @abstractmethod
    def open(self, series: int, horizon: int) -> Session:
        """Start to follow `series` series."""

    def forecast_origins(self, history: ArrayLike, origins: ArrayLike, horizon: int) -> Forecast:
        """Forecast the next `horizon` steps from many origins of one history, `(origins, horizon)`, in one pass.

        `origins` are rising numbers: how many observations of the history have been seen. The forecasts are those of a
        session that follows the history, which takes a fraction of the time of reading a whole context for each.
        """
        values = checks.numbers("history", history)
        if values.ndim != 1:
            raise ValueError(f"history must have one dimension, got shape {values.shape}")
        ends = np.asarray(origins)
        whole = ends.ndim == 1 and ends.size > 0 and ends.dtype.kind in "iu"
        if not whole or ends[0] < 1 or ends[-1] > values.size or (np.diff(ends) <= 0).any():
            raise ValueError(f"origins must be rising whole numbers from 1 to {values.size}, got {origins!r}")
        session = self.open(1, horizon)
        wanted = np.zeros((values.size, 1), dtype=np.bool_)
        wanted[ends - 1] = True
        parts = []
        for first in range(0, int(ends[-1]), _TOGETHER):
            piece = slice(first, min(first + _TOGETHER, int(ends[-1])))
            forecast, asked = session.run(values[piece, np.newaxis], wanted=wanted[piece]), wanted[piece, 0]
            parts.append(Forecast(*(None if part is None else part[asked, 0] for part in forecast)))  # type: ignore[arg-type]
        return joined(parts)

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The arguments, as JSON can hold them, that make this forecaster again."""

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({given})"


def joined(forecasts: Sequence[Forecast], axis: int = 0) -> Forecast:
    """Forecasts of one forecaster as one, one behind the other."""
    first = forecasts[0]
    parts = [
        None if first[part] is None else np.concatenate([forecast[part] for forecast in forecasts], axis=axis)
        for part in range(len(first))
    ]
    return Forecast(*parts)  # type: ignore[arg-type]


def without_infinities(values: Floats) -> Floats:
    """The same array, NaN in the place of what is infinite or close to it: nothing can be forecast from that."""
    values[np.abs(values) > LARGEST] = np.nan
    return values


def check_saved(name: str, good: bool | np.bool_, accepted: str) -> None:
    """Refuse an array of a state that no session can have written."""
    if not good:
        raise ValueError(f"state[{name!r}] is damaged: it must hold {accepted}")


def as_contexts(contexts: Sequence[ArrayLike] | ArrayLike) -> list[Floats]:
    """The contexts, each a fresh one-dimensional array of numbers and NaN; a single one is a list of one."""
    if isinstance(contexts, np.ndarray) and contexts.ndim == 1 and contexts.dtype.kind in "biuf":
        contexts = [contexts]
    if not isinstance(contexts, Sequence | np.ndarray) or (isinstance(contexts, np.ndarray) and contexts.ndim == 0):
        raise TypeError(f"contexts must be a sequence of sequences of numbers, got {contexts!r}")
    arrays = []
    for index, context in enumerate(contexts):
        array = checks.numbers(f"contexts[{index}]", context)
        if array.ndim != 1:
            raise ValueError(f"contexts[{index}] must have one dimension, got shape {array.shape}")
        too_large = np.flatnonzero(np.abs(array) > LARGEST)
        if too_large.size:
            raise ValueError(
                f"contexts[{index}] must hold numbers up to {LARGEST:g} in size, or NaN where one is missing, "
                f"got {array[too_large[0]]} at {too_large[0]}"
            )
        if np.isnan(array).all():
            raise ValueError(f"contexts[{index}] must hold at least one number, got {array.size or 'no'} missing ones")
        arrays.append(array)
    if not arrays:
        raise ValueError("contexts must hold at least one context, got none")
    return arrays

"""The pretrained network that comes with the package: forecasts of whole contexts, and of series that are followed."""

import os
from collections.abc import Sequence
from os import PathLike
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import require_state
from tocsin.forecasting.embedded.weights import (
    HORIZON,
    LEVELS,
    PatchMemory,
    Weights,
    capacity,
    load_weights,
    make_memory,
)
from tocsin.forecasting.forecaster import (
    LARGEST,
    Floats,
    Forecast,
    Forecaster,
    Rows,
    Session,
    State,
    as_contexts,
    joined,
)


def load_kernels() -> ModuleType:
    """The compiled loops. Importing numba takes a good part of a second, so it is imported only to forecast."""
    from tocsin.forecasting.embedded import kernels

    return kernels


def forecast_contexts(
    weights: Weights, contexts: Sequence[Floats], normalised: Sequence[int], horizon: int
) -> Forecast:
    """The forecasts of contexts that begin with a number, or are empty.

    Of each the first `normalised` observations give the units in which the network sees them all.
    """
    kernels = load_kernels()
    memory = make_memory(len(contexts), max(1, *(context.size for context in contexts)), weights)
    for series, context in enumerate(contexts):
        memory.values[series, : context.size] = context
        memory.length[series], memory.normalised[series] = context.size, normalised[series]
    kernels.renormalise(memory, np.arange(len(contexts)))
    quantiles = make_answers((1, len(contexts)), horizon)
    patches, asked = kernels.review(memory, quantiles)
    kernels.answer(weights, memory, patches, asked, quantiles)
    return as_forecast(quantiles[0])


def make_answers(shape: tuple[int, ...], horizon: int) -> Floats:
    """Room for quantiles; NaN where nothing is written."""
    return np.full((*shape, horizon, len(LEVELS)), np.nan)


def as_forecast(quantiles: Floats) -> Forecast:
    """The quantiles and, in memory of its own, their median."""
    return Forecast(quantiles[..., len(LEVELS) // 2].copy(), quantiles)


class EmbeddedSession(Session):
    """Keeps the newest observations of every series, and the network's keys and values of their complete patches.

    The keys and values of patches stay valid as long as the units in which the network sees the values stay the same.
    So the units change only when the context has grown by a sixteenth to an eighth, or when a value would be off the
    scale. In between, a new observation costs one token, and every sixteenth observation a second one.

    When a context is an eighth longer than `context_length`, its oldest part is dropped. With the network in the
    package, a series then takes 71 kB. A state holds only the observations, 9 kB, and the rest is computed from them.
    A series of fewer than 16 observations, or a constant one, takes next to nothing.
    """

    def __init__(self, weights: Weights, series: int, horizon: int, context_length: int, batch_size: int) -> None:
        super().__init__(series, horizon)
        self._weights, self._context_length, self._batch_size = weights, context_length, batch_size
        self._kernels = load_kernels()
        # Series are kept in batches. Each is created with its first observation.
        self._batches: list[PatchMemory | None] = [None] * -(-self.series // batch_size)

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        quantiles = make_answers(values.shape, self.horizon)
        for number, columns, some in self._by_batch(rows):
            memory, at = self._memory(number), np.zeros(columns.size, dtype=np.int64)
            # In rounds: in each, every series advances until its units change.
            while at.size and at.min() < values.shape[0]:
                patches, asked = self._kernels.follow(
                    values, columns, some, wanted, self._context_length, memory, at, quantiles
                )
                if asked.size:
                    self._kernels.answer(self._weights, memory, patches, asked, quantiles)
        return as_forecast(quantiles)

    def _by_batch(self, rows: Rows) -> list[tuple[int, Rows, Rows]]:
        """The number of each batch that holds some of these series, their places in `rows`, and in the batch."""
        if len(self._batches) == 1:
            return [(0, self._all_rows[: rows.size], rows)]
        batch = rows // self._batch_size
        places = [(int(number), np.flatnonzero(batch == number)) for number in np.unique(batch)]
        return [(number, place, rows[place] % self._batch_size) for number, place in places]

    def _memory(self, number: int) -> PatchMemory:
        memory = self._batches[number]
        if memory is None:
            count = min(self._batch_size, self.series - number * self._batch_size)
            memory = self._batches[number] = make_memory(count, capacity(self._context_length), self._weights)
        return memory

    @property
    def nbytes(self) -> int:
        # Memory that nobody writes to costs nothing: this is only read.
        one = make_memory(1, capacity(self._context_length), self._weights)
        return self.series * sum(array.nbytes for array in one)

    def _snapshot(self, rows: Rows) -> State:
        state = {
            "values": np.zeros((rows.size, capacity(self._context_length))),
            "length": np.zeros(rows.size, dtype=np.int64),
            "normalised": np.zeros(rows.size, dtype=np.int64),
        }
        for number, places, some in self._by_batch(rows):
            memory = self._batches[number]
            if memory is not None:
                for name, array in state.items():
                    array[places] = getattr(memory, name)[some]
        return state

    def _restore(self, state: State, rows: Rows) -> None:
        self._check(state)
        for number, places, some in self._by_batch(rows):
            if self._batches[number] is None and not state["length"][places].any():
                continue
            memory = self._memory(number)
            for name, array in state.items():
                getattr(memory, name)[some] = array[places]
            self._kernels.renormalise(memory, some)

    def _check(self, state: State) -> None:
        values, length, normalised = state["values"], state["length"], state["normalised"]
        most = self._context_length
        require_state(not (np.abs(values) > LARGEST).any(), "values", f"NaN, or numbers up to {LARGEST:g}")
        require_state(((normalised >= 0) & (normalised <= most)).all(), "normalised", f"numbers from 0 to {most}")
        grown = np.maximum(1, normalised // 8)
        possible = (length >= normalised) & (length < normalised + grown) & ((length > 0) == (normalised > 0))
        require_state(possible.all(), "length", "numbers from those of normalised to an eighth more")
        behind = np.arange(values.shape[1]) >= length[:, np.newaxis]
        require_state((values[behind] == 0).all(), "values", "0 behind the length of each series")
        require_state(not np.isnan(values[:, 0]).any(), "values", "a number at the beginning of each series")


_LONGEST_CONTEXT = 1024


class EmbeddedForecaster(Forecaster):
    """A small transformer, pretrained on synthetic signals, that runs on one core without any library for networks.

    It needs no training: a few dozen observations are enough. Forecasts follow the shift and scale of the values, and
    the forecast of a constant is that constant. They are the same, bit for bit, whichever signals are forecast
    together, from a history or from a stream.

    In a session, an observation costs one pass of a single token, however long the context. A series of more than a
    thousand observations takes 71 kB of memory. A session computes the units of the values again each time the context
    has grown by a sixteenth to an eighth. At that point its forecasts are those of `forecast` from the same
    observations; in between they are close to them.

    Parameters
    ----------
    weights : a file of weights; None for those that come with the package.
    context_length : how many of the newest observations it reads, at most; a session up to an eighth more.
    batch_size : how many contexts or series go through the network together, at most; makes no difference to the
        numbers.

    >>> import numpy as np
    >>> EmbeddedForecaster().forecast([np.full(100, 2.5)], horizon=3).median
    array([[2.5, 2.5, 2.5]])
    """

    name = "embedded"
    paths = ("weights",)
    levels = LEVELS
    warm_up = 32
    recovers = 32

    def __init__(
        self, *, weights: str | PathLike[str] | None = None, context_length: int = 1024, batch_size: int = 256
    ) -> None:
        if weights is not None and not isinstance(weights, (str, PathLike)):
            raise TypeError(f"weights must be the path of a file, or None, got {weights!r}")
        self.weights = None if weights is None else os.fspath(weights)
        self.context_length = checks.integer("context_length", context_length, least=1, most=_LONGEST_CONTEXT)
        self.batch_size = checks.integer("batch_size", batch_size, least=1, most=2**20)

    @property
    def longest_horizon(self) -> int:
        """How many steps ahead it can look."""
        return HORIZON

    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        horizon = checks.integer("horizon", horizon, least=1, most=HORIZON)
        begun = [_from_first_number(array[-self.context_length :]) for array in as_contexts(contexts)]
        return self._forecast(begun, [context.size for context in begun], horizon)

    def _forecast(self, contexts: list[Floats], normalised: list[int], horizon: int) -> Forecast:
        """Forecast from contexts that begin with a number, in the units of their first `normalised` observations."""
        weights = load_weights(self.weights)
        parts = [slice(first, first + self.batch_size) for first in range(0, len(contexts), self.batch_size)]
        return joined([forecast_contexts(weights, contexts[part], normalised[part], horizon) for part in parts])

    def open(self, series: int, horizon: int) -> Session:
        horizon = checks.integer("horizon", horizon, least=1, most=HORIZON)
        return EmbeddedSession(
            weights=load_weights(self.weights),
            series=series,
            horizon=horizon,
            context_length=self.context_length,
            batch_size=self.batch_size,
        )


def _from_first_number(context: Floats) -> Floats:
    known = np.flatnonzero(~np.isnan(context))
    return context[known[0] :] if known.size else context[:0]

"""Following series with the network: one token of work for an observation."""

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.embedded.memory import PatchMemory, capacity, make_memory
from tocsin.forecasting.embedded.network import as_forecast, load_kernels, make_answers
from tocsin.forecasting.embedded.weights import Weights
from tocsin.forecasting.forecaster import LARGEST, Floats, Forecast, Rows, Session, State, check_saved


class EmbeddedSession(Session):
    """Keeps the newest observations of every series, and what the network has made of their complete patches.

    The keys and values of patches stay valid for as long as the units stay the same, in which the network sees the
    values. So these are taken anew only when the context has grown by a sixteenth to an eighth, or when a value comes
    that would be off the scale. In between a new observation costs one token, and every sixteenth of them a second one.

    When a context has grown to `context_length` and an eighth more, its oldest part is dropped. With the network that
    is shipped a series then takes 71 kB, of which the state holds 9 kB, the observations: the rest is made anew from
    them. A series of fewer than 16 observations, or a constant one, takes next to nothing.
    """

    def __init__(self, weights: Weights, series: int, horizon: int, context_length: int, batch_size: int) -> None:
        super().__init__(series, horizon)
        self._weights, self._context_length, self._batch_size = weights, context_length, batch_size
        self._kernels = load_kernels()
        # Series are kept in batches, each made when its first observation comes.
        self._batches: list[PatchMemory | None] = [None] * -(-self.series // batch_size)

    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        quantiles = make_answers(values.shape, self.horizon)
        for number, columns, some in self._by_batch(rows):
            memory, at = self._memory(number), np.zeros(columns.size, dtype=np.int64)
            # In rounds: in each of them every series goes on until its units change.
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
        # Room that nobody writes to is not taken from the machine: this one is only looked at.
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
        self._check(**state)
        for number, places, some in self._by_batch(rows):
            if self._batches[number] is None and not state["length"][places].any():
                continue
            memory = self._memory(number)
            for name, array in state.items():
                getattr(memory, name)[some] = array[places]
            self._kernels.renormalise(memory, some)

    def _check(self, values: Floats, length: NDArray[np.int64], normalised: NDArray[np.int64]) -> None:
        most = self._context_length
        check_saved("values", not (np.abs(values) > LARGEST).any(), f"NaN, or numbers up to {LARGEST:g}")
        check_saved("normalised", ((normalised >= 0) & (normalised <= most)).all(), f"numbers from 0 to {most}")
        grown = np.maximum(1, normalised // 8)
        possible = (length >= normalised) & (length < normalised + grown) & ((length > 0) == (normalised > 0))
        check_saved("length", possible.all(), "numbers from those of normalised to an eighth more")
        behind = np.arange(values.shape[1]) >= length[:, np.newaxis]
        check_saved("values", (values[behind] == 0).all(), "0 behind the length of each series")
        check_saved("values", not np.isnan(values[:, 0]).any(), "a number at the beginning of each series")

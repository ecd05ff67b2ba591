"""Earlier forecasts, aligned with the observations they were made for."""

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats

Rows = NDArray[np.intp]


class Continuation:
    """Continues the last forecast until the next is issued.

    With a `refresh` interval above 1, forecasts are issued only that often. In between, the last one continues, so that
    after every observation there is a forecast for each of the next `steps` observations.
    """

    def __init__(self, series: int, steps: int, refresh: int) -> None:
        self.steps, self.refresh = steps, refresh
        self._newest = np.full((series, steps + refresh - 1 if refresh > 1 else 0), np.nan)
        self._everything = np.arange(series)

    def push(self, issued: Floats, age: NDArray[np.int64], rows: Rows) -> Floats:
        """The forecasts `(T, N, steps)` after each of T observations, from those issued, `(T, N, steps + refresh - 1)`.

        `age[t, n]` is how many observations ago a forecast was last issued; what `issued` holds where that is not 0
        does not matter.
        """
        full = np.empty((*issued.shape[:2], self.steps))
        for t in range(issued.shape[0]):
            fresh = age[t] == 0
            self._newest[rows[fresh]] = issued[t, fresh]
            ahead = age[t][:, np.newaxis] + np.arange(self.steps)
            full[t] = np.take_along_axis(self._newest[rows], ahead, axis=1)
        return full

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together."""
        return self._newest.nbytes

    def state(self, rows: Rows | None = None) -> dict[str, Floats]:
        """Copies of all arrays that later forecasts of these series (all of them if None) depend on."""
        return {"newest": self._newest[self._everything if rows is None else rows]}

    def restore(self, state: dict[str, Floats], rows: Rows | None = None) -> None:
        """Restore these series from what `state()` returned for as many."""
        _check(state, self.state(rows))
        self._newest[self._everything if rows is None else rows] = state["newest"]


class Alignment:
    """Keeps the forecasts of each of `series` series after each of the last `horizons` observations."""

    def __init__(self, series: int, horizons: int) -> None:
        self.horizons = horizons
        from tocsin.detection import kernels

        self._kernels = kernels
        self._carried = np.full((series, horizons, horizons), np.nan)
        self._everything = np.arange(series)

    def push(self, issued: Floats, rows: Rows) -> Floats:
        """Add the forecasts made after each of T observations, `(T, N, horizons or more)`.

        Returns the earlier forecasts for each of those observations, `(T, N, horizons)`; entry d - 1 was issued d
        observations before.
        """
        predicted = np.empty((*issued.shape[:2], self.horizons))
        self._kernels.align(self._carried, rows, issued, predicted)
        return predicted

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together."""
        return self._carried.nbytes

    def state(self, rows: Rows | None = None) -> dict[str, Floats]:
        """Copies of all arrays that later alignments of these series (all of them if None) depend on."""
        return {"carried": self._carried[self._everything if rows is None else rows]}

    def restore(self, state: dict[str, Floats], rows: Rows | None = None) -> None:
        """Restore these series from what `state()` returned for as many."""
        _check(state, self.state(rows))
        self._carried[self._everything if rows is None else rows] = state["carried"]


def _check(state: dict[str, Floats], own: dict[str, Floats]) -> None:
    for name, wanted in own.items():
        if state[name].shape != wanted.shape or state[name].dtype != wanted.dtype:
            raise ValueError(
                f"state[{name!r}] must be {wanted.dtype} of shape {wanted.shape}, got shape {state[name].shape}"
            )

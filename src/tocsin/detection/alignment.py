"""Forecasts issued earlier, lined up with the observation that they were for."""

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats

Rows = NDArray[np.intp]


class Alignment:
    """Remembers what was issued for each of `series` series over the last `horizons` observations.

    With a `refresh` interval above 1 a forecast is issued that often only; in between, the last one goes on, so that
    every observation still has a forecast for each horizon, some of them issued a few observations earlier.
    """

    def __init__(self, series: int, horizons: int, refresh: int) -> None:
        self.horizons = horizons
        self.refresh = refresh
        from tocsin.detection import kernels

        self._kernels = kernels
        self._carried = np.full((horizons, series, horizons), np.nan)
        self._newest = np.full((series, horizons + refresh - 1), np.nan)
        self._everything = np.arange(series)

    def next(self, rows: Rows) -> Floats:
        """What has been forecast for the next observation, `(N, horizons)`; entry d - 1 was issued d before it."""
        ahead = np.arange(self.horizons)
        return self._carried[self.horizons - 1 - ahead, rows[:, np.newaxis], ahead]

    def push(self, issued: Floats, age: NDArray[np.int64], rows: Rows) -> Floats:
        """Take what was issued after each of T observations, `(T, N, horizons + refresh - 1)`.

        Returns for each of those observations what had been forecast for it, `(T, N, horizons)`, entry d - 1 issued d
        observations before. `age[t, n]` is how many observations ago a forecast was last issued; what `issued` holds
        where that is not 0 does not matter.
        """
        if self.refresh > 1:
            issued = self._continued(issued, age, rows)
        predicted = np.empty((*issued.shape[:2], self.horizons))
        self._kernels.align(self._carried, rows, issued, predicted)
        return predicted

    def _continued(self, issued: Floats, age: NDArray[np.int64], rows: Rows) -> Floats:
        """The forecasts, each with those of its age that were issued last."""
        full = np.empty((*issued.shape[:2], self.horizons))
        for t in range(issued.shape[0]):
            fresh = age[t] == 0
            self._newest[rows[fresh]] = issued[t, fresh]
            ahead = age[t][:, np.newaxis] + np.arange(self.horizons)
            full[t] = np.take_along_axis(self._newest[rows], ahead, axis=1)
        return full

    def state(self, rows: Rows | None = None) -> dict[str, Floats]:
        """Copies of all arrays that later alignments of these series (all of them if None) depend on."""
        rows = self._everything if rows is None else rows
        return {"carried": self._carried[:, rows], "newest": self._newest[rows]}

    def restore(self, state: dict[str, Floats], rows: Rows | None = None) -> None:
        """Take over, for these series, what `state()` gave of as many."""
        rows = self._everything if rows is None else rows
        for name, own in self.state(rows).items():
            if state[name].shape != own.shape or state[name].dtype != own.dtype:
                raise ValueError(f"state[{name!r}] must be {own.dtype} of shape {own.shape}, got {state[name].shape}")
        self._carried[:, rows] = state["carried"]
        self._newest[rows] = state["newest"]

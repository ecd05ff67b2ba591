"""A fleet under one budget: selects which incidents of its signals become the fleet's."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.budget import Selection
from tocsin.detection.verdict import ACCEPTED, NORMAL, RETURNED, SILENT, Verdicts

Rows = NDArray[np.intp]


class Sharing:
    """Passes the selected incidents of a fleet's signals, from the observation at which they are selected.

    Observations count in time order, and those of the same time in the order of their rows.
    """

    def __init__(self, selection: Selection, signals: int, rarest_rate: float) -> None:
        self.selection, self._rarest_rate = selection, rarest_rate
        self._watched = 0  # observations of all signals that could have alarmed
        self._rarity = np.full(signals, -np.inf)  # how rare the incident of each signal is so far
        self._told = np.zeros(signals, dtype=bool)

    def select(self, verdicts: Verdicts, rows: Rows) -> Verdicts:
        """The verdicts with only the selected incidents."""
        able = ~np.isnan(verdicts.rate)
        watched = self._watched + np.cumsum(able.ravel()).reshape(able.shape)
        self._watched += int(np.count_nonzero(able))
        told = np.repeat(self._told[rows][np.newaxis], len(able), axis=0)
        opened = np.zeros_like(told)
        ends = np.isin(verdicts.state, (RETURNED, ACCEPTED, SILENT))
        for step, column in np.argwhere((verdicts.alarm & able) | ends):
            row, now = rows[column], float(watched[step, column])
            if not ends[step, column]:
                self._rarity[row] = max(self._rarity[row], -math.log(verdicts.rate[step, column]))
                if not self._told[row] and self.selection.tells(float(self._rarity[row]), now):
                    self._told[row] = opened[step, column] = told[step:, column] = True
            elif self._rarity[row] > -np.inf:
                self.selection.learn(float(self._rarity[row]), now)
                self.forget(row)
                told[step + 1 :, column] = False
        return replace(
            verdicts,
            alarm=verdicts.alarm & told,
            opened=opened,
            state=np.where(told, verdicts.state, NORMAL),
            rate=np.maximum(verdicts.rate, self._rarest_rate),
        )

    def forget(self, row: int) -> None:
        """Forget the incident of this signal."""
        self._rarity[row], self._told[row] = -np.inf, False

    def state(self) -> dict[str, Any]:
        """Everything needed to resume later."""
        own = {"watched": np.array(self._watched), "rarity": self._rarity, "told": self._told}
        return {**own, "selection": self.selection.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state()` returned."""
        self._watched = int(state["watched"])
        self._rarity[:], self._told[:] = state["rarity"], state["told"]
        self.selection.restore(state["selection"])

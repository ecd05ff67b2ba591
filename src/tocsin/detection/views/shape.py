"""How far the newest values lie from the most similar stretch of the signal's past."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.views.view import (
    GEOMETRIC,
    MOST_AT_ONCE,
    Floats,
    Past,
    Rows,
    Seen,
    State,
    Stream,
    View,
    ViewSession,
    amount,
)


class ShapeView(View):
    """The distance of the newest 16 and 64 values to the nearest stretch among the last 2,000 lags.

    The level and amplitude of a stretch matter. Several features count jointly, each in units of its own spread.
    Missing values are ignored.
    """

    name = "shape"
    joint = True
    merge = GEOMETRIC
    together = 2.5
    LENGTHS: ClassVar[tuple[int, ...]] = (16, 64)
    LAGS: ClassVar[int] = 2000

    def __init__(self) -> None:
        self.streams = tuple(Stream(f"shape-{length}", length, weight=length / 32) for length in self.LENGTHS)

    @property
    def begins(self) -> int:
        from tocsin.detection.views import kernels

        return 2 * min(self.LENGTHS) + kernels.LEAST_LAGS - 1

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return ShapeSession(signals, features, self.LENGTHS, self.LAGS)

    def words(self, stream: int, score: float, unit: str) -> str:
        length = self.LENGTHS[stream]
        return f"the last {length} observations resemble no earlier stretch (nearest: {amount(score)} spreads away)"


class LightShapeView(ShapeView):
    """The same with one length and half the lags, for small machines and large fleets."""

    name = "shape-light"
    LENGTHS = (32,)
    LAGS = 1000


class ShapeSession(ViewSession):
    """Keeps the newest values of each signal, and their distances to the stretches before them lag by lag.

    Values are rounded to a small fraction of their spread, so that sums of squared differences are exact in double
    precision. They can be updated with each observation forever, in any order, and recomputed from the values. So a
    state stores only the values.
    """

    def __init__(self, signals: int, features: int, lengths: tuple[int, ...], lags: int) -> None:
        from tocsin.detection.views import kernels

        self._kernels = kernels
        self._lengths = np.array(lengths, dtype=np.int64)
        self._kept = lags + max(lengths) + 1
        width = self._kept + max(64, self._kept // 8)
        self._memory = kernels.ShapeMemory(
            past=np.full((signals, features, width), np.nan),
            steps=np.full((signals, features, width), np.nan, dtype=np.float32),
            heads=np.full(signals, width, dtype=np.int64),
            counts=np.zeros(signals, dtype=np.int64),
            units=np.zeros((signals, 2, features)),
            distances=np.zeros((signals, len(lengths), lags + 1)),
            lost=np.zeros((signals, len(lengths), lags + 1), dtype=np.int32),
            missing=np.zeros(signals, dtype=np.int64),
        )
        self._references: dict[int, tuple[Floats, Floats]] = {}  # values (F, n) of a signal, and their units

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        self._kernels.shapes(seen.values, rows, self._lengths, self._kept, self._memory, scores[:, :, 0])
        for column, signal in enumerate(rows) if self._references else ():
            if signal in self._references:
                self._kernels.shapes_beside(
                    self._memory.past[signal], self._memory.heads[signal], self._memory.counts[signal], self._lengths,
                    *self._references[signal], scores[:, column, 0],
                )  # fmt: skip

    @property
    def past(self) -> Past:
        return Past(self._memory.past, self._memory.heads, self._memory.counts, self._kept - MOST_AT_ONCE)

    def freeze(self, rows: Rows) -> Floats:
        furthest = np.empty(rows.size)
        for row, signal in enumerate(rows):
            there = min(self._memory.counts[signal], self._kept)
            head = self._memory.heads[signal]
            values = self._memory.past[signal, :, head : head + there]
            units = np.zeros((2, values.shape[0]))
            self._kernels.units_of(values, units)
            unit = np.where(units[1] > 0, units[1] * self._kernels.STEPS, 1.0)
            self._references[int(signal)] = (values.copy(), unit)
            furthest[row] = self._kernels.furthest_within(*self._references[int(signal)], self._lengths[0])
        return furthest

    def state(self, rows: Rows) -> State:
        past = np.full((rows.size, self._memory.past.shape[1], self._kept), np.nan)
        for row, signal in enumerate(rows):
            newest = self._memory.past[signal, :, self._memory.heads[signal] : self._memory.heads[signal] + self._kept]
            past[row, :, : newest.shape[1]] = newest
        kept = [self._references.get(int(signal)) for signal in rows]
        length = max((one[0].shape[1] + 1 for one in kept if one is not None), default=0)
        references = np.full((rows.size, self._memory.past.shape[1], length), np.nan)
        for row, one in enumerate(kept):
            if one is not None:
                references[row, :, 0] = one[1]
                references[row, :, 1 : 1 + one[0].shape[1]] = one[0]
        return {
            "count": self._memory.counts[rows],
            "units": self._memory.units[rows],
            "past": past,
            "references": references,
        }

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows) -> None:
        # References take memory only if there are any.
        references = np.asarray(state["references"])
        empty = np.empty((rows.size, self._memory.past.shape[1], 0))
        if references.dtype != empty.dtype or references.shape[:2] != empty.shape[:2] or references.ndim != 3:
            raise ValueError(f"state['references'] must be float64 of shape {empty.shape[:2]} and a length")
        for row, signal in enumerate(rows):
            self._references.pop(int(signal), None)
            if references.shape[2] and not np.isnan(references[row, :, 0]).any():
                values = np.ascontiguousarray(references[row, :, 1:])
                self._references[int(signal)] = (values, references[row, :, 0].copy())
        own = {name: array for name, array in self.state(rows).items() if name != "references"}
        self._check(state, own)
        self._restore({name: np.asarray(state[name]) for name in own}, rows)

    def _restore(self, state: Mapping[str, NDArray[Any]], rows: Rows) -> None:
        if np.any(state["count"] < 0) or not np.isfinite(state["units"]).all() or np.isinf(state["past"]).any():
            raise ValueError("state['count'], state['units'] and state['past'] must hold counts, numbers and values")
        width = self._memory.past.shape[2]
        self._memory.past[rows] = np.nan
        self._memory.past[rows, :, width - self._kept :] = state["past"]
        self._memory.heads[rows] = width - self._kept
        self._memory.counts[rows] = state["count"]
        self._memory.units[rows] = state["units"]
        self._kernels.remake_shapes(rows, self._lengths, self._kept, self._memory)

"""How far the newest values lie from the most similar stretch of the signal's past."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.constants import constants
from tocsin.detection.views.view import (
    MOST_AT_ONCE,
    Floats,
    Mask,
    Past,
    Rows,
    Seen,
    State,
    Stream,
    View,
    ViewSession,
    length_text,
)


class Scale(NamedTuple):
    """Stretches of one length: of how many blocks of how many observations, and how many blocks of the past to keep.

    Where the `newest` blocks of a stretch are nearer to an earlier one than the whole, their distance counts.
    """

    blocks: int
    block: int
    kept: int
    newest: int

    @property
    def length(self) -> int:
        """How many observations a stretch has."""
        return self.blocks * self.block


class ShapeView(View):
    """The distance of the newest 16 and 64 values to the nearest stretch before them.

    The 16 are compared with the last 2,000 values, and the 64, as means of two, with the last 20,000. Where the newest
    half of the 64 is nearer than the whole, its distance counts: a fault that is over leaves no long echo.

    The level and amplitude of a stretch matter. Several features count jointly, each in units of its own spread. A
    short gap repeats the last value; stretches with longer ones are no comparison.
    """

    name = "shape"
    joint = True
    expects_usual_days = True

    def __init__(self) -> None:
        given = constants()
        self._scales = (
            Scale(given.short, 1, given.calibration, newest=given.short),
            Scale(given.long // 2, 2, given.memory // 2, newest=given.long // 4),
        )
        self._least = given.least
        self.streams = tuple(Stream(f"shape-{scale.length}", scale.length) for scale in self._scales)

    @property
    def begins(self) -> int:
        needed = min((scale.blocks + self._least) * scale.block for scale in self._scales)
        return (-(-needed // MOST_AT_ONCE) + 1) * MOST_AT_ONCE

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return ShapeSession(signals, features, self._scales, self._least)

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        return f"the last {length_text(self.streams[stream].length, interval)} resemble no earlier stretch"


class ShapeSession(ViewSession):
    """Keeps the newest values of each signal at each scale, and compares the newest stretch with all of them."""

    def __init__(self, signals: int, features: int, scales: tuple[Scale, ...], least: int) -> None:
        from tocsin.detection.views import archive, kernels

        self._kernels, self._scales, self._least = kernels, scales, least
        self._archives = [
            archive.Archive(
                past=np.zeros((signals, features, scale.kept + max(scale.kept // 32, MOST_AT_ONCE)), dtype=np.float32),
                ends=np.zeros(signals, dtype=np.int64),
                sizes=np.zeros(signals, dtype=np.int64),
                usable=np.zeros(signals, dtype=np.int64),
                offsets=np.full((signals, features), np.nan),
                units=np.zeros((signals, features)),
                kept=scale.kept,
            )
            for scale in scales
        ]
        self._memories = [
            kernels.ShapeMemory(
                counts=np.zeros(signals, dtype=np.int64),
                sums=np.zeros((signals, features)),
                known=np.zeros((signals, features), dtype=np.int64),
                gaps=np.zeros((signals, features), dtype=np.int64),
                newest=np.full((signals, features, scale.blocks), archive.UNKNOWN, dtype=np.float32),
                held=np.full(signals, np.nan),
                frozen=np.zeros(signals, dtype=np.bool_),
                faulty=np.zeros((signals, 2 * MOST_AT_ONCE), dtype=np.bool_),
            )
            for scale in scales
        ]

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        for stream, scale in enumerate(self._scales):
            self._kernels.shapes(
                seen.values, rows, scale.block, scale.newest, self._least, self._memories[stream],
                self._archives[stream], scores[:, :, 0, stream],
            )  # fmt: skip

    def forget(self, faulty: Mask, rows: Rows) -> None:
        for memory in self._memories:
            self._kernels.note_faults(faulty, rows, memory.counts, memory.faulty)

    @property
    def past(self) -> Past:
        return Past(self._archives[-1], self._memories[-1].counts, self._scales[-1].block)

    def freeze(self, rows: Rows) -> tuple[Floats, Floats]:
        for memory, archive in zip(self._memories, self._archives, strict=True):
            memory.frozen[rows] = True
            archive.usable[rows] = archive.sizes[rows]
        length, archive = self._scales[0].blocks, self._archives[0]
        samples = 4 * self._least
        reach = np.full((rows.size, 1, len(self._scales)), np.inf)
        for place, signal in enumerate(rows):
            furthest = self._kernels.furthest_within(signal, length, samples, archive)
            reach[place, 0, 0] = constants().reference * furthest
        return np.zeros_like(reach), reach

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the archives' values, by name."""
        return {
            f"{name} {number}": getattr(part, name)
            for number, parts in enumerate(zip(self._memories, self._archives, strict=True))
            for part, names in zip(parts, (parts[0]._fields, ("sizes", "usable", "offsets", "units")), strict=True)
            for name in names
        }

    def state(self, rows: Rows) -> State:
        state = {name: array[rows] for name, array in self._arrays().items()}
        for number, archive in enumerate(self._archives):
            past = np.zeros((rows.size, archive.past.shape[1], archive.kept), dtype=np.float32)
            for row, signal in enumerate(rows):
                end, there = archive.ends[signal], min(archive.sizes[signal], archive.kept)
                newest = archive.past[signal, :, end - there : end]
                past[row, :, archive.kept - newest.shape[1] :] = newest
            state[f"past {number}"] = past
        return state

    def _restore(self, state: Mapping[str, NDArray[Any]], rows: Rows) -> None:
        for name, array in self._arrays().items():
            given = state[name]
            if given.dtype == np.int64 and np.any(given < 0):
                raise ValueError(f"state[{name!r}] must hold counts")
            array[rows] = given
        for number, archive in enumerate(self._archives):
            past, units = state[f"past {number}"], state[f"units {number}"]
            if not np.isfinite(past).all() or not (np.isfinite(units) & (units >= 0)).all():
                raise ValueError(f"state['past {number}'] and state['units {number}'] must hold numbers")
            there = np.minimum(state[f"sizes {number}"], archive.kept)
            # Only what is there: memory that nobody has written takes none.
            for row, signal, size in zip(past, rows, there, strict=True):
                archive.past[signal, :, :size] = row[:, archive.kept - size :]
            archive.ends[rows] = there

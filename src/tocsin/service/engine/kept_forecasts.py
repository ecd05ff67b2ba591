"""Forecasts that were made once, kept until a state is stored, so that a start need not make them again.

To forecast takes most of the time of a detector. Some of what was forecast may be missing: it is then forecast anew,
with the same numbers.
"""

import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import pack_arrays, unpack_arrays

log = logging.getLogger("tocsin.engine")

Floats = NDArray[np.float64]
Times = NDArray[np.datetime64]

# So many are stored together: with each by itself, the store would write a page for every observation.
TOGETHER = 16
# Of more observations at once nothing is kept: the state that is due after them takes less room.
MOST_AT_ONCE = 64


class UnsavedForecasts:
    """What was forecast after the newest observations of a signal, `[T, F, width]`, as far as it is not stored yet."""

    def __init__(self) -> None:
        self._parts: list[tuple[Times, Floats]] = []
        self._whole = True

    def add(self, times: Times, foretold: Floats) -> None:
        """Keep what was forecast after some more observations, missing ones included."""
        if len(times) > MOST_AT_ONCE:
            self.break_off()
        elif self._whole:
            self._parts.append((times, foretold))

    def break_off(self) -> None:
        """Keep nothing until a state is stored: what was forecast is of use only where nothing before it is missing."""
        self._parts, self._whole = [], False

    def begin(self) -> None:
        """A state is stored: what was forecast before it is of no use any more."""
        self._parts, self._whole = [], True

    @property
    def due(self) -> bool:
        """Whether there is enough to be stored."""
        return sum(len(times) for times, _ in self._parts) >= TOGETHER

    def take(self) -> bytes:
        """All of it as it is stored; it is not kept any longer."""
        times, foretold = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        self._parts = []
        said = ~np.isnan(foretold).all(axis=(1, 2))  # within long gaps nothing is
        return pack_arrays({"times": times.astype(np.int64), "said": said, "foretold": foretold[said]})


class KeptForecasts:
    """What is stored of the forecasts after a signal's state, given out in the order of its observations.

    None is stored where they would be of no use.
    """

    def __init__(self, features: int, width: int, stored: Iterable[bytes] | None) -> None:
        self._times, self._foretold = np.empty(0, dtype=np.int64), np.empty((0, features, width))
        self._at = 0
        #: Whether what is stored, or the rest of it, is of no use.
        self.broken = stored is None
        try:
            parts = [_unpacked(one, features, width) for one in stored or ()]
        except (KeyError, ValueError) as error:  # of another release, or damaged
            log.warning("what was forecast is forecast anew, since it cannot be read: %s", error)
            self.broken = True
            return
        if parts:
            self._times, self._foretold = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def take(self, times: Times) -> Floats:
        """What was forecast after the first of the next observations: all of them, some or none."""
        known = self._times[self._at : self._at + (0 if self.broken else len(times))]
        other = np.flatnonzero(known != times[: len(known)].astype(np.int64))
        self.broken = self.broken or other.size > 0
        count = int(other[0]) if other.size else len(known)
        found = self._foretold[self._at : self._at + count]
        self._at += count
        return found


def _unpacked(stored: bytes, features: int, width: int) -> tuple[NDArray[np.int64], Floats]:
    arrays = unpack_arrays(stored)
    foretold = np.full((len(arrays["times"]), features, width), np.nan)
    foretold[arrays["said"]] = arrays["foretold"]
    return arrays["times"], foretold

"""Forecasts stored until the next state, so that a start does not have to make them again.

Forecasting takes most of a detector's time. Missing forecasts are made again, with the same numbers.
"""

import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import pack_arrays, unpack_arrays

log = logging.getLogger("tocsin.engine")

Floats = NDArray[np.float64]
Times = NDArray[np.datetime64]

# Forecasts stored together. One by one, the store would write a page for every observation.
TOGETHER = 16
# Forecasts for more observations than this at once are not kept: the next state takes less space.
MOST_AT_ONCE = 64


class UnsavedForecasts:
    """The forecasts made after a signal's newest observations, `[T, F, width]`, that are not stored yet."""

    def __init__(self) -> None:
        self._parts: list[tuple[Times, Floats]] = []
        self._whole = True

    def add(self, times: Times, kept_forecasts: Floats) -> None:
        """Add the forecasts made after more observations, including missing ones."""
        if len(times) > MOST_AT_ONCE:
            self.break_off()
        elif self._whole:
            self._parts.append((times, kept_forecasts))

    def break_off(self) -> None:
        """Keep nothing until the next state: forecasts are useful only if none before them is missing."""
        self._parts, self._whole = [], False

    def begin(self) -> None:
        """Start again after a state was stored: earlier forecasts are no longer needed."""
        self._parts, self._whole = [], True

    @property
    def due(self) -> bool:
        """Whether there are enough forecasts to store."""
        return sum(len(times) for times, _ in self._parts) >= TOGETHER

    def take(self) -> bytes:
        """All forecasts in the form to store. They are removed here."""
        times, kept_forecasts = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        self._parts = []
        said = ~np.isnan(kept_forecasts).all(axis=(1, 2))  # there are no forecasts in long gaps
        return pack_arrays({"times": times.astype(np.int64), "said": said, "kept_forecasts": kept_forecasts[said]})


class KeptForecasts:
    """The stored forecasts made after a signal's state, in the order of its observations.

    `stored` is None if they cannot be used.
    """

    def __init__(self, features: int, width: int, stored: Iterable[bytes] | None) -> None:
        self._times, self._forecasts = np.empty(0, dtype=np.int64), np.empty((0, features, width))
        self._at = 0
        #: Whether the remaining forecasts cannot be used.
        self.broken = stored is None
        try:
            parts = [_unpacked(one, features, width) for one in stored or ()]
        except (KeyError, ValueError) as error:  # of another release, or damaged
            log.warning("stored forecasts cannot be read, and are made again: %s", error)
            self.broken = True
            return
        if parts:
            self._times, self._forecasts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def take(self, times: Times) -> Floats:
        """The forecasts for the next observations: for all of them, for the first few, or for none."""
        known = self._times[self._at : self._at + (0 if self.broken else len(times))]
        other = np.flatnonzero(known != times[: len(known)].astype(np.int64))
        self.broken = self.broken or other.size > 0
        count = int(other[0]) if other.size else len(known)
        found = self._forecasts[self._at : self._at + count]
        self._at += count
        return found


def _unpacked(stored: bytes, features: int, width: int) -> tuple[NDArray[np.int64], Floats]:
    arrays = unpack_arrays(stored)
    kept_forecasts = np.full((len(arrays["times"]), features, width), np.nan)
    kept_forecasts[arrays["said"]] = arrays["kept_forecasts"]
    return arrays["times"], kept_forecasts

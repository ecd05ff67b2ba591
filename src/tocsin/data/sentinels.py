"""Numbers that stand for "nothing was measured", such as -999."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.data.cells import MISSING_TEXTS

#: Values that loggers commonly write; users name any others.
KNOWN = np.array(
    [-99999, -32768, -9999, -9998, -999.99, -999.9, -999, -200, -100, -99.99, -99.9, -99, 999, 999.9, 999.99, 9999,
     9999.99, 32767, 65535, 99999, 999999]
)  # fmt: skip
_NEAREST = np.abs(KNOWN).min()
NONE = "none"  # given as a missing value: detect none
_LEAST = 2  # how often it must occur, at least


class Sentinels:
    """Looks for sentinels in a table's columns: known numbers that recur and lie far from all others.

    A negative one is far off if no other value is negative. Any is far off if it is further from the others than they
    are from each other. A value such as -200 found in one column also counts in the other columns in which it is lower
    than all other values.
    """

    def __init__(self, features: int, given: Iterable[float] = (), *, find: bool = True) -> None:
        self._given = tuple(given)
        self._find = find
        self._counts = np.zeros((len(KNOWN), features), dtype=np.int64)
        self._low = np.full(features, np.inf)  # over all values that are not known sentinels
        self._high = np.full(features, -np.inf)

    def look(self, values: NDArray[np.float64]) -> None:
        """Add some rows."""
        if not self._find:
            return
        for column in range(values.shape[1]):
            numbers = values[:, column]
            numbers = numbers[np.isfinite(numbers)]
            far = np.flatnonzero(np.abs(numbers) >= _NEAREST)
            place = np.minimum(np.searchsorted(KNOWN, numbers[far]), len(KNOWN) - 1)
            known = KNOWN[place] == numbers[far]
            others = numbers
            if known.any():
                self._counts[:, column] += np.bincount(place[known], minlength=len(KNOWN))
                others = np.delete(numbers, far[known])
            if others.size:
                self._low[column] = min(self._low[column], others.min())
                self._high[column] = max(self._high[column], others.max())

    def conclude(self) -> list[tuple[float, ...]]:
        """The sentinels of each column."""
        value = KNOWN[:, np.newaxis]
        width = self._high - self._low
        off = np.maximum(self._low - value, value - self._high)
        there = (self._counts >= _LEAST) & (off > 0) & np.isfinite(width)
        negative = (value < 0) & (self._low >= 0)
        plain = there & (((off > width) & (width > 0)) | negative)
        beside = there & plain.any(axis=1, keepdims=True) & (value < 0)
        found = plain | beside
        return [(*self._given, *KNOWN[found[:, column]].tolist()) for column in range(len(width))]


def split_missing(
    missing: str | float | Iterable[str | float] | None,
) -> tuple[tuple[float, ...], frozenset[str], bool]:
    """The given missing values: numbers, words (in lower case), and whether to detect others."""
    given: Sequence[str | float] = (
        () if missing is None else (missing,) if isinstance(missing, (str, int, float)) else tuple(missing)
    )
    numbers, words = [], set()
    for one in given:
        try:
            numbers.append(float(one))
        except ValueError:
            words.add(str(one).strip().lower())
    return tuple(numbers), frozenset(words - MISSING_TEXTS), NONE not in words

"""Numbers that stand for "nothing was measured", such as -999."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.data.cells import MISSING_TEXTS

#: What loggers write; any other is for the user to name.
KNOWN = np.array(
    [-99999, -32768, -9999, -9998, -999.99, -999.9, -999, -200, -100, -99.99, -99.9, -99, 999, 999.9, 999.99, 9999,
     9999.99, 32767, 65535, 99999, 999999]
)  # fmt: skip
_NEAREST = np.abs(KNOWN).min()
NONE = "none"  # given as a value that means missing: find none
_LEAST = 2  # so often must it be there


class Sentinels:
    """Watches the columns of a table for sentinels: known numbers that come again and lie far off all others.

    A negative one is far off where no other value is negative; any is where it is further from the others than those
    are from each other. What lies at -200 in one column by that rule counts as well in the columns beside it where it
    is lower than all other values.
    """

    def __init__(self, features: int, given: Iterable[float] = (), *, find: bool = True) -> None:
        self._given = tuple(given)
        self._find = find
        self._counts = np.zeros((len(KNOWN), features), dtype=np.int64)
        self._low = np.full(features, np.inf)  # of all values that are not known sentinels
        self._high = np.full(features, -np.inf)

    def look(self, values: NDArray[np.float64]) -> None:
        """Take in some rows."""
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
    """What is given as missing: numbers, words (in lower case), and whether others may be found."""
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

"""Cells of a table to numbers: number formats, missing values, and sentinels such as -999."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import Argument, Message
from tocsin.data.problems import DataError

_SPACES = " \u00a0\u202f"  # plain, non-breaking and narrow
_NUMBER = re.compile(rf"[+-]?(\d{{1,15}}(?:[.,'\u2019{_SPACES}]\d{{1,15}})*)(?:[eE][+-]?\d+)?", re.ASCII)
_SEPARATORS = re.compile(r"\D")
_DECIMAL_COMMA = str.maketrans({",": ".", ".": "'"})  # with a decimal comma, a point is not part of a number
_NAMES = {**dict.fromkeys(_SPACES, "a space"), "'": "'", "\u2019": "'", ".": "a point", ",": "a comma"}

Cells = Sequence[Any] | NDArray[Any]  # text cells are str; cells of typed sources are numbers, None, stamps, ...
MISSING, TEXT, INFINITE = 1, 2, 3
KIND_OF = {MISSING: "missing value", TEXT: "not a number", INFINITE: "infinite value"}
MISSING_TEXTS = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "-", "--", "---", "?", "n.a.", "no data"}
)
#: Values that loggers commonly write; users name any others.
KNOWN = np.array(
    [-99999, -32768, -9999, -9998, -999.99, -999.9, -999, -200, -100, -99.99, -99.9, -99, 999, 999.9, 999.99, 9999,
     9999.99, 32767, 65535, 99999, 999999]
)  # fmt: skip
_NEAREST = np.abs(KNOWN).min()
NONE = "none"  # given as a missing value: detect none
_LEAST = 2  # how often it must occur, at least


@dataclass(frozen=True)
class NumberFormat:
    """The decimal point and the thousands separators; there are none unless the table shows them."""

    decimal: str = "."
    thousands: str = ""

    @property
    def plain(self) -> bool:
        """Whether `float` can read the texts directly."""
        return self.decimal == "." and not self.thousands

    def as_python(self, cell: Any) -> Any:
        """A text cell in the form `float` reads. Text that is not a number stays so.

        Examples
        --------
        >>> NumberFormat(",", ".").as_python("1.234,5"), NumberFormat(",", ".").as_python("1.5")
        ('1234.5', "1'5")
        """
        if not isinstance(cell, str) or not cell:
            return cell
        text = cell.strip()
        if not text[:1].isdigit() and text[:1] not in "+-.,":
            return cell
        if self.thousands:
            whole, point, rest = text.partition(self.decimal)
            for mark in self.thousands:
                if mark in whole and _grouped(whole.lstrip("+-").split(mark)):
                    text = whole.replace(mark, "") + point + rest
                    break
        return text if self.decimal == "." else text.translate(_DECIMAL_COMMA)

    def in_words(self) -> list[str]:
        """What differs from the usual format."""
        said = ["decimal comma"] if self.decimal == "," else []
        marks = list(dict.fromkeys(_NAMES[mark] for mark in self.thousands))
        return said + ([f"{' or '.join(marks)} between thousands"] if marks else [])


PLAIN = NumberFormat()


class NumberFormatDetector:
    """Evidence about the number format, collected from cells."""

    def __init__(self, decimal: str | None = None) -> None:
        self._given = decimal
        self._decimals: Counter[str] = Counter()  # columns that are readable only with this decimal point
        self._thousands: dict[str, None] = {}
        self._either: dict[str, str] = {}  # an ambiguous mark, and a cell with it

    def add(self, cells: Iterable[Any]) -> None:
        """Examine the cells of one column."""
        shown: Counter[str] = Counter()
        for cell in cells:
            match = _NUMBER.fullmatch(cell.strip()) if isinstance(cell, str) else None
            if match is not None:
                self._weigh(match[1], shown)
        if shown:
            self._decimals[shown.most_common(1)[0][0]] += 1

    def _weigh(self, digits: str, shown: Counter[str]) -> None:
        marks = _SEPARATORS.findall(digits)
        if not marks:
            return
        groups = _SEPARATORS.split(digits)
        last = marks[-1]
        if len(set(marks)) == 1:
            if last not in ".," or len(marks) > 1:
                if _grouped(groups):
                    self._thousands[last] = None
            elif _grouped(groups) and groups[0].strip("0"):
                self._either.setdefault(last, digits)
            else:
                shown[last] += 1
        elif last in ".," and len(set(marks[:-1])) == 1 and _grouped(groups[:-1]):
            shown[last] += 1
            self._thousands[marks[0]] = None

    def conclude(self) -> NumberFormat | None:
        """The number format; None if nothing shows it, DataError if it is ambiguous."""
        decimal = self._given or self._decimal()
        if decimal is None:
            if "," in self._either:
                raise DataError(
                    Message(
                        f"numbers such as {self._either[',']!r} are ambiguous: the comma may be the decimal point or "
                        "a thousands separator, and no number shows which; set ",
                        Argument("decimal"),
                        " to ',' or '.'",
                    )
                )
            return NumberFormat(thousands="".join(self._thousands)) if self._thousands else None
        other = "." if decimal == "," else ","
        marks = [*self._thousands, *([other] if other in self._either else [])]
        return NumberFormat(decimal, "".join(mark for mark in dict.fromkeys(marks) if mark != decimal))

    def fix_decimal(self) -> None:
        """Keep the decimal point found so far from now on."""
        self._given = self._given or self._decimal()

    def _decimal(self) -> str | None:
        if self._decimals:
            return "," if self._decimals[","] > self._decimals["."] else "."
        return "," if "." in self._thousands else "." if "," in self._thousands else None


def detect_number_format(columns: Iterable[Iterable[Any]], decimal: str | None = None) -> NumberFormat:
    """The number format of these columns; `decimal` if it is known.

    Examples
    --------
    >>> detect_number_format([["2,5", "0,75"], ["1.250", "3"]])
    NumberFormat(decimal=',', thousands='.')
    """
    evidence = NumberFormatDetector(decimal)
    for cells in columns:
        evidence.add(cells)
    return evidence.conclude() or PLAIN


def _grouped(groups: list[str]) -> bool:
    """Whether these are digits grouped by thousands."""
    return len(groups) > 1 and 1 <= len(groups[0]) <= 3 and all(len(g) == 3 and g.isdigit() for g in groups[1:])


def read_numbers(
    cells: Cells, number_format: NumberFormat = PLAIN
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Finite numbers or NaN, and for each cell why it is NaN (0 if it is not), or None if no cell is.

    Examples
    --------
    >>> values, why = read_numbers(["1.5", "n/a", "abc", "1e999"])
    >>> values.tolist(), [KIND_OF.get(code) for code in why.tolist()]
    ([1.5, nan, nan, nan], [None, 'missing value', 'not a number', 'infinite value'])
    """
    if isinstance(cells, np.ndarray):
        values = _typed(cells)
        why = np.zeros(len(values), dtype=np.uint8)
        if cells.dtype.kind not in "iuf":
            why[:] = TEXT
    else:
        if not number_format.plain:
            cells = list(map(number_format.as_python, cells))
        values, why = _read_all(cells)
    unusable = ~np.isfinite(values)
    if not unusable.any():
        return values, None
    why[np.isnan(values) & (why == 0)] = MISSING
    why[np.isinf(values)] = INFINITE
    values[unusable] = np.nan
    return values, why


def is_missing(cell: Any) -> bool:
    """Whether a cell marks a missing value (rather than being unreadable)."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING_TEXTS
    return cell is None or cell != cell  # NaN, NaT and the like never equal themselves


def without_words(cells: Cells, words: Collection[str]) -> Cells:
    """Cells, with those that are one of these words (in lower case) replaced by None."""
    if not words or isinstance(cells, np.ndarray):
        return cells
    return [None if isinstance(cell, str) and cell.strip().lower() in words else cell for cell in cells]


def _typed(cells: NDArray[Any]) -> NDArray[np.float64]:
    if cells.dtype.kind in "iuf":
        return cells.astype(np.float64)
    return np.full(len(cells), np.nan)


def _read_all(cells: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    why = np.zeros(len(cells), dtype=np.uint8)
    kinds = set(map(type, cells))
    # float() reads True as 1 and "1_000" as 1000, but a logger that writes these means something else.
    if kinds <= {int, float} or (kinds == {str} and "_" not in "".join(cells)):
        try:
            return np.fromiter(map(float, cells), np.float64, len(cells)), why
        except (OverflowError, ValueError):
            pass  # at least one cell is not a number: find out which
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        values[i], why[i] = _read_one(cell)
    return values, why


def _read_one(cell: Any) -> tuple[float, int]:
    if is_missing(cell):
        return np.nan, MISSING
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return np.nan, TEXT
    try:
        return float(cell), 0
    except OverflowError:
        return np.inf, INFINITE
    except (TypeError, ValueError):
        return np.nan, TEXT


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

"""A table's number format: decimal point or comma, and thousands separators."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tocsin.data.problems import DataError

_SPACES = " \u00a0\u202f"  # plain, non-breaking and narrow
_NUMBER = re.compile(rf"[+-]?(\d{{1,15}}(?:[.,'\u2019{_SPACES}]\d{{1,15}})*)(?:[eE][+-]?\d+)?", re.ASCII)
_SEPARATORS = re.compile(r"\D")
_DECIMAL_COMMA = str.maketrans({",": ".", ".": "'"})  # with a decimal comma, a point is not part of a number
_NAMES = {
    " ": "a space",
    "\u00a0": "a space",
    "\u202f": "a space",
    "'": "'",
    "\u2019": "'",
    ".": "a point",
    ",": "a comma",
}


@dataclass(frozen=True)
class Numerals:
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
        >>> Numerals(",", ".").as_python("1.234,5"), Numerals(",", ".").as_python("1.5")
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


PLAIN = Numerals()


class Evidence:
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

    def conclude(self) -> Numerals | None:
        """The number format; None if nothing shows it, DataError if it is ambiguous."""
        decimal = self._given or self._decimal()
        if decimal is None:
            if "," in self._either:
                raise DataError(
                    f"numbers such as {self._either[',']!r} are ambiguous: the comma may be the decimal point or a "
                    "thousands separator, and no number shows which; set `decimal` to ',' or '.'"
                )
            return Numerals(thousands="".join(self._thousands)) if self._thousands else None
        other = "." if decimal == "," else ","
        marks = [*self._thousands, *([other] if other in self._either else [])]
        return Numerals(decimal, "".join(mark for mark in dict.fromkeys(marks) if mark != decimal))

    def fix_decimal(self) -> None:
        """Keep the decimal point found so far from now on."""
        self._given = self._given or self._decimal()

    def _decimal(self) -> str | None:
        if self._decimals:
            return "," if self._decimals[","] > self._decimals["."] else "."
        return "," if "." in self._thousands else "." if "," in self._thousands else None


def find_numerals(columns: Iterable[Iterable[Any]], decimal: str | None = None) -> Numerals:
    """The number format of these columns; `decimal` if it is known.

    Examples
    --------
    >>> find_numerals([["2,5", "0,75"], ["1.250", "3"]])
    Numerals(decimal=',', thousands='.')
    """
    evidence = Evidence(decimal)
    for cells in columns:
        evidence.add(cells)
    return evidence.conclude() or PLAIN


def _grouped(groups: list[str]) -> bool:
    """Whether these are digits grouped by thousands."""
    return len(groups) > 1 and 1 <= len(groups[0]) <= 3 and all(len(g) == 3 and g.isdigit() for g in groups[1:])

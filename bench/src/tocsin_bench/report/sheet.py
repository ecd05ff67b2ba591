"""A table before it is formatted."""

import math
from dataclasses import dataclass
from typing import NamedTuple

MISSING = "–"  # noqa: RUF001  the dash that tables have where there is no number
# Significant digits of numbers of unknown magnitude.
SIGNIFICANT = 4


class Column(NamedTuple):
    """A heading, whether numbers are under it, and for terminals whether it is shown and a shorter heading."""

    heading: str
    numeric: bool = True
    terminal: bool = True
    short: str = ""


@dataclass(frozen=True)
class Number:
    """A number with its standard deviation and the paper's number, each NaN where there is none."""

    value: float
    sd: float = math.nan
    paper: float = math.nan
    decimals: int | None = 3
    best: bool = False

    @property
    def mean_text(self) -> str:
        return self._text(self.value)

    @property
    def text(self) -> str:
        """The number and its standard deviation."""
        return self.mean_text if math.isnan(self.sd) else f"{self.mean_text} ± {self._text(self.sd)}"

    @property
    def paper_text(self) -> str:
        """The paper's number with the digits printed there, or nothing."""
        if math.isnan(self.paper):
            return ""
        return f"{self.paper:g}" if self.decimals is None else self._text(self.paper)

    def _text(self, value: float) -> str:
        if math.isnan(value):
            return MISSING
        decimals = self.decimals
        if decimals is None:
            size = math.floor(math.log10(abs(value))) if value else 0
            decimals = min(max(SIGNIFICANT - 1 - size, 0), 6)
        return f"{value:.{decimals}f}"


Cell = str | Number
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Sheet:
    """A table: its name (of files), title, columns, blocks of rows with a rule between them, and a note."""

    name: str
    title: str
    columns: tuple[Column, ...]
    blocks: tuple[tuple[Row, ...], ...]
    note: str = ""

    @property
    def rows(self) -> list[Row]:
        """The rows of all blocks."""
        return [row for block in self.blocks for row in block]


def count(value: int) -> Number:
    """A count."""
    return Number(float(value), decimals=0)


def best_of(values: list[float], better: int, decimals: int | None) -> list[bool]:
    """Which values are the best, including all that look the same; none if neither direction is better."""
    known = [value for value in values if not math.isnan(value)]
    if not known or not better:
        return [False] * len(values)
    best = Number(max(known) if better > 0 else min(known), decimals=decimals).text
    return [not math.isnan(value) and Number(value, decimals=decimals).text == best for value in values]

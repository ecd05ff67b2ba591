"""Cells of a table to numbers: all at once if they are clean, otherwise one by one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.numerals import PLAIN, Numerals

Cells = Sequence[Any] | NDArray[Any]  # text cells are str; cells of typed sources are numbers, None, stamps, ...

MISSING, TEXT, INFINITE = 1, 2, 3
KIND_OF = {MISSING: "missing value", TEXT: "not a number", INFINITE: "infinite value"}

MISSING_TEXTS = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "-", "--", "---", "?", "n.a.", "no data"}
)


def read_numbers(cells: Cells, numerals: Numerals = PLAIN) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
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
        if not numerals.plain:
            cells = list(map(numerals.as_python, cells))
        values, why = _read_all(cells)
    strange = ~np.isfinite(values)
    if not strange.any():
        return values, None
    why[np.isnan(values) & (why == 0)] = MISSING
    why[np.isinf(values)] = INFINITE
    values[strange] = np.nan
    return values, why


def is_missing(cell: Any) -> bool:
    """Whether a cell marks a missing value (rather than being unreadable)."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING_TEXTS
    return cell is None or cell != cell  # NaN, NaT and the like never equal themselves


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

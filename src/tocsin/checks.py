"""Checks of arguments: each returns the value in its proper type, or says what it got and what it accepts."""

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """A whole number in [least, most]."""
    accepted = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be {accepted}, got {value!r}")
    if int(value) < least or (most is not None and int(value) > most):
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return int(value)


def number(name: str, value: Any, *, above: float, most: float | None = None, below: float | None = None) -> float:
    """A real number in (above, most] or (above, below)."""
    upper = f"and <= {most:g}" if most is not None else f"and < {below:g}"
    accepted = f"a number > {above:g} {upper}"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {accepted}, got {value!r}")
    try:
        given = float(value)
    except OverflowError:
        given = float("nan")  # an integer too large for a double is outside every range
    if not (given > above and (most is None or given <= most) and (below is None or given < below)):
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return given


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """One of the given words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A fresh array of doubles: never the caller's memory, always the one layout that the kernels are compiled for.

    What a masked array hides becomes NaN.
    """
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and _has_text(array)):
            raise TypeError(f"{array.dtype} values")
        return np.array(array, dtype=np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {_shortened(values)}: {error}") from error


def _has_text(array: NDArray[Any]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in array.flat)


def _shortened(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."

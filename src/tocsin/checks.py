"""Argument checks. Each returns the value in its proper type, or raises an error that states what is accepted.

Errors carry the names of arguments as data, so that a command can name its options instead: see `Message`.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Argument:
    """An argument in a message. Python puts it in backticks, unless it is the `subject` of the sentence."""

    name: str
    subject: bool = False

    def __str__(self) -> str:
        return self.name if self.subject else f"`{self.name}`"


class Message(str):
    """Text in which arguments of the library are marked, made of texts, arguments and other messages.

    Examples
    --------
    >>> message = Message("pump.csv: omit ", Argument("interval"))
    >>> print(message, "/", message.worded(lambda name: f"--{name}"))
    pump.csv: omit `interval` / pump.csv: omit --interval
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: object) -> Self:
        """An error counts with its message, anything else with its text."""
        flat: list[str | Argument] = []
        for part in parts:
            if type(part) is str or isinstance(part, Argument):
                flat.append(part)
            else:
                flat.extend(message_of(part).parts)
        self = super().__new__(cls, "".join(map(str, flat)))
        self.parts = tuple(flat)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts

    @classmethod
    def joined(cls, separator: str, parts: Iterable[object]) -> Self:
        """Parts with a separator between them."""
        return cls(*[one for part in parts for one in (separator, part)][1:])

    def worded(self, name_of: Callable[[str], str]) -> str:
        """The text with other names for the arguments."""
        return "".join(name_of(part.name) if isinstance(part, Argument) else part for part in self.parts)


def message_of(thing: object) -> Message:
    """The message of an error, or of anything else that has one; otherwise its text."""
    if isinstance(thing, BaseException) and len(thing.args) == 1 and isinstance(thing.args[0], Message):
        return thing.args[0]
    found = thing if isinstance(thing, Message) else getattr(thing, "message", None)
    return found if isinstance(found, Message) else Message(str(thing))


class _NamedArgumentError(Exception):
    """An error about one argument: its name, and what is wrong with it."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)
        self.argument = argument
        self.message = Message(Argument(argument, subject=True), " ", reason)

    def __str__(self) -> str:
        return str(self.message)


class ArgumentError(_NamedArgumentError, ValueError):
    """An argument with a value that is not accepted."""


class ArgumentTypeError(_NamedArgumentError, TypeError):
    """An argument of a type that is not accepted."""


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """A whole number in [least, most]."""
    # A fleet checks a row several times for each observation: plain integers are told at once, and words wait.
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise ArgumentTypeError(name, f"must be {_integers_text(least, most)}, got {value!r}")
    given = int(value)
    if given < least or (most is not None and given > most):
        raise ArgumentError(name, f"must be {_integers_text(least, most)}, got {value!r}")
    return given


def _integers_text(least: int, most: int | None) -> str:
    return f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number within the given bounds."""
    accepted = f"a number {range_text(above=above, least=least, most=most, below=below)}".rstrip()
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentTypeError(name, f"must be {accepted}, got {value!r}")
    try:
        given = float(value)
    except OverflowError:
        given = float("nan")  # an integer too large for a double is outside every range
    if not (
        math.isfinite(given)
        and (above is None or given > above)
        and (least is None or given >= least)
        and (most is None or given <= most)
        and (below is None or given < below)
    ):
        raise ArgumentError(name, f"must be {accepted}, got {value!r}")
    return given


def range_text(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> str:
    """Bounds in words.

    >>> range_text(above=0, most=0.1)
    '> 0 and <= 0.1'
    """
    bounds = ((">", above), (">=", least), ("<=", most), ("<", below))
    return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """One of the given words."""
    if not isinstance(value, str) or value not in options:
        raise ArgumentError(name, f"must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def arguments_of(made: Any) -> dict[str, Any]:
    """The arguments that recreate an object which keeps each of them in the attribute of its name."""
    kind: Any = type(made)
    return {name: getattr(made, name) for name in _argument_names(kind)}


@cache
def _argument_names(kind: type) -> tuple[str, ...]:
    return tuple(inspect.signature(kind).parameters)


def names(name: str, value: Any, singular: str) -> list[str]:
    """Distinct names. A count gives names made of `singular` and a number.

    >>> names("signals", 2, "signal")
    ['signal 1', 'signal 2']
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        given = list(value)
        if not given or not all(isinstance(one, str) for one in given) or len(set(given)) != len(given):
            raise ArgumentError(name, f"must be a number or distinct names, got {value!r}")
        return given
    count = integer(name, value, least=1, most=2**24)
    return [singular] if count == 1 else [f"{singular} {number}" for number in range(1, count + 1)]


def numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A new array of doubles: never the caller's memory, always the one layout that the kernels are compiled for.

    Masked values become NaN.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:  # the usual case, and the fast one
        return values.copy()
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and _has_text(array)):
            raise TypeError(f"{array.dtype} values")
        return np.array(array, dtype=np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise ArgumentTypeError(name, f"must be numbers, got {_shortened(values)}: {error}") from error


def indices(name: str, value: ArrayLike, count: int, *, of: str, distinct: bool = True) -> NDArray[np.intp]:
    """A new array of indices of `count` things; a wrong one would let compiled loops write out of bounds.

    >>> indices("rows", [2, 0], 3, of="signals").tolist()
    [2, 0]
    """
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentTypeError(name, f"must be a sequence of indices of {of}, got {value!r}")
    outside = array.size and (array.min() < 0 or array.max() >= count)
    if outside or (distinct and np.unique(array).size != array.size):
        raise ArgumentError(name, f"must be {'distinct ' * distinct}indices from 0 to {count - 1}, got {value!r}")
    return np.array(array, dtype=np.intp, order="C")


def _has_text(array: NDArray[Any]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in array.flat)


def _shortened(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."

"""What the checks of views, scorers and forecasters share: requirements, and data that is hard to get right."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import nbytes_of

Array = NDArray[Any]
#: Where histories are cut, to be continued in another call or another session.
CUTS = (0, 1, 2, 17, 33, 64, 130, 201)


class ContractError(Exception):
    """A view, scorer or forecaster violates its contract."""


def require(good: Any, message: str) -> None:
    """Raise a `ContractError` unless this is true."""
    if not bool(good):
        raise ContractError(message)


def same(one: Array | None, other: Array | None, message: str, tolerance: float = 0.0) -> None:
    """Require the same numbers bit for bit, or within a tolerance; NaN in the same places."""
    if one is None or other is None:
        require(one is other, f"{message}: one of them is empty")
        return
    require(one.shape == other.shape, f"{message}: shapes are {one.shape} and {other.shape}")
    if tolerance and one.dtype.kind == "f":
        require(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True), message)
        return
    differ = (one != other) & ~(_missing(one) & _missing(other))
    where = f", first at {tuple(int(i) for i in np.argwhere(differ)[0])}" if differ.any() else ""
    require(not differ.any(), f"{message}{where}")


def _missing(array: Array) -> Array:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def same_states(one: Mapping[str, Array], other: Mapping[str, Array], message: str) -> None:
    """Require the same arrays of the same types, bit for bit."""
    require(one.keys() == other.keys(), f"{message}: they have {sorted(one)} and {sorted(other)}")
    for name, array in one.items():
        require(array.dtype == other[name].dtype, f"{message}: state[{name!r}] changes its type")
        same(array, other[name], f"{message}: state[{name!r}] differs")


def check_plain(state: Mapping[str, Array], signals: int | None) -> None:
    """Require plain arrays, with this many entries first."""
    for name, array in state.items():
        plain = isinstance(array, np.ndarray) and array.dtype.kind in "biufU"
        require(plain, f"a state must be plain arrays, but state[{name!r}] is {type(array).__name__}")
        if signals is not None:
            first = array.shape[:1] == (signals,)
            require(first, f"state[{name!r}] must have the requested {signals} first, its shape is {array.shape}")


def held_bytes(session: Any) -> int:
    """Bytes of all arrays that a session holds."""
    return nbytes_of(*vars(session).values())


def hard_values(steps: int, columns: int, seed: int = 0) -> Array:
    """Waves, a walk, counts and a constant, with single gaps and long ones; one that begins late."""
    rng = np.random.default_rng(seed)
    at = np.arange(steps)[:, np.newaxis] + np.zeros(columns)
    kinds = [
        np.sin(at / 3) + 0.3 * rng.normal(size=at.shape),
        np.cumsum(rng.normal(size=at.shape), axis=0),
        rng.poisson(1.0, size=at.shape).astype(np.float64),
        1e9 + np.where(at > steps // 2, 5.0, rng.normal(size=at.shape)),
    ]
    values = np.stack([kinds[column % 4][:, column] for column in range(columns)], axis=1)
    values[rng.random(values.shape) < 0.04] = np.nan
    values[rng.random(values.shape) < 0.005] *= 1e3
    values[steps // 3 : steps // 3 + 21, :2] = np.nan
    values[: steps // 5, columns - 1] = np.nan
    return values


def pieces_of(steps: int) -> Iterator[tuple[int, int]]:
    """Where the pieces of a history begin and end; the first is empty."""
    return itertools.pairwise([0, 0, *(cut for cut in CUTS[1:] if cut < steps), steps])

"""How the inner loops are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile with numba, keeping the machine code on disk where there is a folder for it."""

    def decorate(function: Function) -> Function:
        # numpy's rule for division by zero: the check that python's rule needs would keep loops from vectorising.
        settings = {"nogil": True, "error_model": "numpy", **options}
        try:
            return njit(cache=True, **settings)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # a read-only installation used by someone without a home
            return njit(**settings)(function)  # type: ignore[no-any-return]

    return decorate

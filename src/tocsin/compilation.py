"""How the inner loops are compiled."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*, with_folder: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile with numba, keeping the machine code on disk where there is a folder for it.

    Numba makes the code anew when the function's own file has changed; `with_folder`, when any beside it has: loops
    that are spread over several files contain each other.
    """

    def decorate(function: Function) -> Function:
        # numpy's rule for division by zero: the check that python's rule needs would keep loops from vectorising.
        settings = {"nogil": True, "error_model": "numpy", **options}
        if with_folder:
            # What is on disk goes by the function's name.
            function.__qualname__ += f"_{_fingerprint(Path(function.__code__.co_filename).parent)}"
        try:
            return njit(cache=True, **settings)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # a read-only installation used by someone without a home
            return njit(**settings)(function)  # type: ignore[no-any-return]

    return decorate


@cache
def _fingerprint(folder: Path) -> str:
    contents = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return hashlib.sha256(contents).hexdigest()[:8]

"""How the inner loops are compiled."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_SETTINGS: dict[str, Any] = {
    # numpy's rule for division by zero: the check that python's rule needs would keep loops from vectorising.
    "error_model": "numpy",
    # Nothing here is called from C.
    "no_cfunc_wrapper": True,
}


def compiled(
    *, with_folder: bool = False, with_files: tuple[str, ...] = (), **options: Any
) -> Callable[[Function], Function]:
    """Compile with numba, keeping the machine code on disk where there is a folder for it.

    Numba makes the code anew when the function's own file has changed; `with_folder`, when any beside it has: loops
    that are spread over several files contain each other. `with_files` are other files of the package, likewise.
    """

    def decorate(function: Function) -> Function:
        settings = {"nogil": True, **_SETTINGS, **options}
        files = tuple(Path(__file__).parent / name for name in with_files)
        if with_folder:
            files += tuple(sorted(Path(function.__code__.co_filename).parent.glob("*.py")))
        if files:
            # What is on disk goes by the function's name.
            function.__qualname__ += f"_{_fingerprint(files)}"
        try:
            return njit(cache=True, **settings)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # a read-only installation used by someone without a home
            return njit(**settings)(function)  # type: ignore[no-any-return]

    return decorate


def inner(**options: Any) -> Callable[[Function], Function]:
    """Let compiled loops call a function that python does not call.

    It is compiled with the loops that call it, and kept on disk as a part of them. For python it stays what it is:
    what python needs to call a compiled function can take longer to compile than the function does.
    """

    def decorate(function: Function) -> Function:
        return register_jitable(**_SETTINGS, **options)(function)  # type: ignore[no-any-return, unused-ignore]

    return decorate


def inlined(function: Function) -> Function:
    """Put a function's own lines into the one compiled loop that calls it, instead of compiling it by itself first."""
    return njit(inline="always", **_SETTINGS)(function)  # type: ignore[no-any-return]


@cache
def _fingerprint(files: tuple[Path, ...]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]

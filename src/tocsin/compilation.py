"""How the inner loops are compiled."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import event
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_SETTINGS: dict[str, Any] = {
    # numpy's rule for division by zero: the check for python's rule would prevent vectorisation.
    "error_model": "numpy",
    # Nothing here is called from C.
    "no_cfunc_wrapper": True,
}


def compiled(
    *, with_folder: bool = False, with_files: tuple[str, ...] = (), **options: Any
) -> Callable[[Function], Function]:
    """Compile with numba, and cache the machine code on disk if there is a folder for it.

    Numba recompiles when the function's own file changes. With `with_folder`, it also recompiles when any file in the
    same folder changes, because loops spread over several files contain each other. `with_files` adds other files or
    folders of the package.
    """

    def decorate(function: Function) -> Function:
        settings = {"nogil": True, **_SETTINGS, **options}
        paths = [Path(__file__).parent / name for name in with_files]
        if with_folder:
            paths.append(Path(function.__code__.co_filename).parent)
        files = tuple(file for path in paths for file in (sorted(path.glob("*.py")) if path.is_dir() else [path]))
        if files:
            # The cache on disk is keyed by the function's name.
            function.__qualname__ += f"_{_fingerprint(files)}"
        try:
            return njit(cache=True, **settings)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # a read-only installation and a user without a home folder
            _not_kept.append(function.__name__)
            return njit(**settings)(function)  # type: ignore[no-any-return]

    return decorate


#: The loops whose machine code cannot be kept on disk: each process has to compile them.
_not_kept: list[str] = []


class NotCompiledError(Exception):
    """The machine code of a loop is not on disk."""


class _Begins(event.Listener):  # type: ignore[misc, unused-ignore]
    """Calls a function with the name of each of this package's loops whose compilation begins."""

    def __init__(self, call: Callable[[str], None]) -> None:
        self._call = call

    def on_start(self, begun: event.Event) -> None:
        function = begun.data["dispatcher"].py_func
        if function.__module__.startswith("tocsin."):
            self._call(function.__name__)

    def on_end(self, ended: event.Event) -> None:
        """Nothing to tell."""


@contextmanager
def telling_compilations(call: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of each loop that is compiled meanwhile, just before."""
    with event.install_listener("numba:compile", _Begins(call)):
        yield


@contextmanager
def compiling_nothing() -> Iterator[None]:
    """Raise NotCompiledError where a loop would be compiled whose machine code another process could leave on disk."""

    def refuse(name: str) -> None:
        if not _not_kept:
            raise NotCompiledError(name)

    with telling_compilations(refuse):
        yield


def inner(**options: Any) -> Callable[[Function], Function]:
    """Let compiled loops call a function that python never calls.

    It is compiled into the loops that call it, and cached with them. For python it stays uncompiled: the wrapper that
    python needs can take longer to compile than the function itself.
    """

    def decorate(function: Function) -> Function:
        return register_jitable(**_SETTINGS, **options)(function)  # type: ignore[no-any-return, unused-ignore]

    return decorate


def inlined(function: Function) -> Function:
    """Inline a function into the one compiled loop that calls it, instead of compiling it separately."""
    return njit(inline="always", **_SETTINGS)(function)  # type: ignore[no-any-return]


@cache
def _fingerprint(files: tuple[Path, ...]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]

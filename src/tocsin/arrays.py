"""Named arrays in npz files, never pickle."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

File = str | PathLike[str] | IO[bytes]


def write_arrays(arrays: Mapping[str, NDArray[Any]], file: File) -> None:
    """Write the arrays to a file (a path, or open for writing bytes).

    A path is replaced in one step, so that an interrupted save leaves what was there before.
    """
    if not isinstance(file, (str, PathLike)):
        _write(file, arrays)
        return
    path = Path(file)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as opened:
            _write(opened, arrays)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_arrays(file: File, what: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file (a path, or open for reading bytes); `what` says what it should hold."""
    if isinstance(file, (str, PathLike)):
        # Opened here, because numpy would leave it open where it finds damage.
        with Path(file).open("rb") as opened:
            return _read(opened, file, what)
    return _read(file, file, what)


def _write(opened: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    np.savez(opened, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle


def _read(opened: IO[bytes], file: File, what: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(opened, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip and npy readers meet damage with exceptions of a dozen kinds
        raise ValueError(f"file must hold {what} saved by tocsin, got {file!r}: {error}") from error

"""Named arrays: checked, in npz files, or faster in plain bytes; never pickle."""

import json
import math
import os
import struct
import zlib
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

File = str | PathLike[str] | IO[bytes]


# Packed arrays begin with this. Then come a checksum of the rest, and the length of the description of the arrays.
_PACKED = b"tocsin-arrays-1\n"
_HEAD = struct.Struct("<II")


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as bytes, much faster than an npz file.

    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}))["a"].tolist()
    [0, 1, 2]
    """
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    index = json.dumps([(name, array.dtype.str, arrays[name].shape) for name, array in plain.items()]).encode()
    content = b"".join([index, *(array.tobytes() for array in plain.values())])
    return _PACKED + _HEAD.pack(zlib.crc32(content), len(index)) + content


def is_packed(data: bytes) -> bool:
    """Whether these bytes came from `pack_arrays`, intact or damaged."""
    return bytes(data[: len(_PACKED)]) == _PACKED


def unpack_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays given to `pack_arrays`, read-only; ValueError if the bytes are damaged."""
    content = memoryview(data)[len(_PACKED) + _HEAD.size :]
    if not is_packed(data) or len(data) < len(_PACKED) + _HEAD.size:
        raise ValueError("these bytes are not packed arrays")
    checksum, length = _HEAD.unpack_from(data, len(_PACKED))
    if zlib.crc32(content) != checksum:
        raise ValueError("the packed arrays are damaged: their checksum is wrong")
    arrays, at = {}, length
    for name, kind, shape in json.loads(bytes(content[:length])):
        dtype = np.dtype(kind)
        if dtype.hasobject:
            raise ValueError(f"packed arrays must be plain, got {kind!r} for {name!r}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(content, dtype=dtype, count=count, offset=at).reshape(shape)
        at += count * dtype.itemsize
    return arrays


def nbytes_of(*holders: Any) -> int:
    """Bytes of all arrays among these values, and in tuples and lists of them; each array counts once.

    >>> one = np.zeros(3)
    >>> nbytes_of(one, (one, np.zeros(2)), "text")
    40
    """
    found: dict[int, int] = {}
    waiting = list(holders)
    while waiting:
        value = waiting.pop()
        if isinstance(value, np.ndarray):
            found[id(value)] = value.nbytes
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
    return sum(found.values())


def checked_state(state: Mapping[str, Any], own: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a state, which must have the names, shapes and types of one's own."""
    require_arrays(state, own)
    arrays = {name: np.asarray(state[name]) for name in own}
    for name, got in arrays.items():
        wanted = own[name]
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise ValueError(
                f"state[{name!r}] must be {wanted.dtype} of shape {wanted.shape}, got {got.dtype} of shape {got.shape}"
            )
    return arrays


def require_arrays(state: Mapping[str, Any], names: Collection[str]) -> None:
    """Reject a state that is no mapping, or in which arrays are missing."""
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a mapping of names to arrays, got {type(state).__name__}")
    if missing := sorted(set(names) - state.keys()):
        raise ValueError(f"state must hold the arrays {sorted(names)}, missing {missing}")


def require_state(good: bool | np.bool_, name: str, accepted: str) -> None:
    """Reject a state whose array `name` holds impossible values."""
    if not good:
        raise ValueError(f"state[{name!r}] is damaged: it must hold {accepted}")


def write_arrays(arrays: Mapping[str, NDArray[Any]], file: File) -> None:
    """Write the arrays to a file (a path, or open for writing bytes).

    A path is replaced atomically: an interrupted save leaves the previous file.
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
    """The arrays of a file (a path, or open for reading bytes); `what` names the expected contents."""
    if isinstance(file, (str, PathLike)):
        # Opened here, because numpy would leave a damaged file open.
        with Path(file).open("rb") as opened:
            return _read(opened, file, what)
    return _read(file, file, what)


def _write(opened: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    np.savez(opened, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle


def _read(opened: IO[bytes], file: File, what: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(opened, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip and npy readers raise a dozen kinds of exceptions on damage
        raise ValueError(f"file must hold {what} saved by tocsin, got {file!r}: {error}") from error

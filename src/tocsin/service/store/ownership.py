"""The lock that lets only one monitor at a time use an SQLite store."""

import os
import socket
import sys
from pathlib import Path
from typing import IO

from tocsin.service.errors import OwnedError, StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class LockFile:
    """A file next to an SQLite store, locked by the owner. The system releases the lock even if the owner crashes."""

    def __init__(self, store: Path) -> None:
        self._store, self._path = store, store.with_name(store.name + ".lock")
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Lock the file; OwnedError if another monitor holds the lock."""
        try:
            file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self._path} cannot be created or opened: {error.strerror}") from error
        try:
            _lock(file)
        except OSError as error:
            owner = _read(file)
            file.close()
            raise OwnedError(
                f"the store {self._store} is in use by another monitor ({owner}): stop that one first"
            ) from error
        file.seek(_TEXT)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        self._file = file

    def let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


# The text follows the locked byte, because on Windows nobody else can read a locked byte.
_TEXT = 1


def _lock(file: IO[str]) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read(file: IO[str]) -> str:
    file.seek(_TEXT)
    return file.read(200) or "unknown"

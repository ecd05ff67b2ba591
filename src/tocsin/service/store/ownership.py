"""Locks that let only one monitor at a time use a store."""

import os
import socket
import sys
import time
from pathlib import Path
from typing import IO

from sqlalchemy import Connection

from tocsin.service.errors import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# The first key of PostgreSQL's advisory lock. The second key distinguishes the schemas of a database.
_OWNED = 0x746F6373
_PATIENCE = 1.0


class LockFile:
    """A file next to an SQLite store, locked by the owner. The system releases the lock even if the owner crashes."""

    def __init__(self, store: Path) -> None:
        self._store, self._path = store, store.with_name(store.name + ".lock")
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Lock the file; StoreError if another monitor holds the lock."""
        try:
            file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self._path} cannot be created or opened: {error.strerror}") from error
        try:
            _lock(file)
        except OSError as error:
            owner = _read(file)
            file.close()
            raise StoreError(
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


def take_in_postgresql(connection: Connection) -> None:
    """Lock the store while the connection lasts; StoreError if another monitor holds the lock."""
    if _locked_in_time(connection):
        # If the network fails, the server releases the lock within a minute instead of after hours.
        for name, value in (("idle", 30), ("interval", 10), ("count", 3)):
            connection.exec_driver_sql(f"SET tcp_keepalives_{name} = {value}")
        connection.commit()
        return
    owner = connection.exec_driver_sql(
        "SELECT 'server process ' || a.pid || ' for ' || coalesce(host(a.client_addr), 'a local client')"
        " || ' since ' || a.backend_start FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %s::bigint::oid"
        " AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (_OWNED,),
    ).scalar()
    database = connection.engine.url.database
    raise StoreError(
        f"the store in the database {database!r} is in use by another monitor ({owner}): stop that one first"
    )


def _locked_in_time(connection: Connection) -> bool:
    """Try for a moment, since the server may not have noticed yet that the last owner is gone."""
    until = time.monotonic() + _PATIENCE
    while True:
        numbers = "%s, hashtext(current_schema())"
        if connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({numbers})", (_OWNED,)).scalar_one():
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


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

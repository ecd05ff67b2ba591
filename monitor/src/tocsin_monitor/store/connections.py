"""Connections to SQLite and PostgreSQL, their settings, their errors, and how long they may hang."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from tocsin_monitor.errors import DamagedError, StoreError, UnfitError
from tocsin_monitor.secrecy import MASK

SQLITE, POSTGRESQL = "sqlite", "postgresql+psycopg"
# A connection option: whether its transactions write.
WRITES = "tocsin_writes"

_PRAGMAS = {
    "busy_timeout": 15_000,
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "foreign_keys": "ON",
    # 64 MB: with rare checkpoints, a page that changes often is written only once.
    "wal_autocheckpoint": 16_000,
}
_PATIENCE = 5.0
# In seconds. A statement that waits for a lock fails sooner than one that runs.
_TIMEOUTS = {"lock_timeout": 10, "statement_timeout": 20}
# After this many seconds without a reply, a server counts as hanging.
_HANGS = 25.0
# The databases' error codes for unreadable pages.
_DAMAGED_SQLITE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_DAMAGED_POSTGRESQL = ("XX001", "XX002")
# With these, a lost server is noticed within a minute instead of after hours.
_POSTGRESQL = {
    "application_name": "tocsin",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connect(url: str, *, make: bool = True, patient: bool = False) -> Engine:
    """An engine for the store at the URL. With `make`, create SQLite's file and folder, accessible only to this user.

    With `patient`, statements have no time limit.
    """
    address = _address(url)
    if address.drivername == SQLITE:
        file = sqlite_file(address)
        if make:
            _make_file(file)
        elif not file.is_file():
            raise StoreError(f"there is no store {file}")
        return _sqlite(address)
    given = {name: value for name, value in _POSTGRESQL.items() if name not in address.query}
    try:
        engine = create_engine(address, pool_size=8, max_overflow=24, pool_pre_ping=True, connect_args=given)
    except ImportError as error:
        raise StoreError("a store in PostgreSQL needs psycopg: pip install 'tocsin-monitor[postgres]'") from error
    return engine if patient else _impatient(engine)


def sqlite_file(address: URL) -> Path:
    """The file of an SQLite store."""
    return Path(str(address.database))


def shown_address(engine: Engine) -> str:
    """Where a store is, for messages: its file, or its URL without the password."""
    if engine.dialect.name == "sqlite":
        return str(sqlite_file(engine.url))
    return engine.url.render_as_string(hide_password=True)


def for_writing(engine: Engine) -> Engine:
    """The engine, with transactions that may write from the start."""
    return engine.execution_options(**{WRITES: True})


def for_reading(engine: Engine) -> Engine:
    """The engine, with read-only transactions that see a snapshot taken at their first query."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


@contextmanager
def disposing(engine: Engine) -> Iterator[Engine]:
    """The engine, whose connections are closed at the end of the block."""
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def store_errors(engine: Engine) -> Iterator[None]:
    """Turn database errors into StoreError, without statements and values, which may be secret."""
    try:
        yield
    except DBAPIError as error:
        raise _store_error(engine, error.orig) from error
    except SQLAlchemyError as error:
        raise _store_error(engine, error) from error
    except engine.dialect.loaded_dbapi.Error as error:  # from below SQLAlchemy
        raise _store_error(engine, error) from error


def _store_error(engine: Engine, error: BaseException | None) -> StoreError:
    damaged = getattr(error, "sqlite_errorname", "").startswith(_DAMAGED_SQLITE) or (
        (getattr(error, "sqlstate", None) or "").startswith(_DAMAGED_POSTGRESQL)
    )
    if damaged:
        return DamagedError(f"the store is damaged: {_first_line(engine, error)}{_where(engine)}")
    # The data are at fault only if the connection still works.
    if isinstance(error, (engine.dialect.loaded_dbapi.DataError, engine.dialect.loaded_dbapi.IntegrityError)):
        return UnfitError(f"the store rejects the data: {_first_line(engine, error)}")
    return StoreError(f"the store failed: {_first_line(engine, error)}{_where(engine)}")


def _where(engine: Engine) -> str:
    """The file that failed. PostgreSQL's own errors name the server."""
    return f" ({sqlite_file(engine.url)})" if engine.dialect.name == "sqlite" else ""


def _first_line(engine: Engine, error: object) -> str:
    """The first line of an error, without the password, which a server or a proxy may repeat."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    password = engine.url.password
    return line.replace(str(password), MASK) if password else line


def check_file(engine: Engine) -> None:
    """Check the file of an SQLite store; DamagedError if it is damaged. PostgreSQL checks its own files."""
    if engine.dialect.name != "sqlite":
        return
    with for_reading(engine).connect() as connection:
        found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        raise DamagedError(damage_message(sqlite_file(engine.url), str(found)))


def damage_message(file: Path, found: str) -> str:
    """The error message for a damaged file, with what to do about it."""
    first = next(iter(found.splitlines()), "")
    return (
        f"the store {file} is damaged ({first}): move it away and put a backup in its place (tocsin restore), or save "
        f"what can be read (sqlite3 {file} .recover) and check the disk"
    )


def _address(url: str) -> URL:
    wanted = "sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME"
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        # Neither the URL nor the original error is shown: both may contain a password.
        raise StoreError(f"a store's URL must be {wanted}; the given one cannot be parsed") from None
    in_memory = address.drivername == SQLITE and (not address.database or address.database.startswith((":", "file:")))
    if address.drivername not in (SQLITE, POSTGRESQL) or in_memory:
        raise StoreError(f"a store's URL must be {wanted}, got {address.render_as_string(hide_password=True)}")
    return address


def _make_file(file: Path) -> None:
    try:
        missing = [folder for folder in file.absolute().parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        # SQLite creates its other files with the same mode.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"the store {file} cannot be created or opened: {error.strerror}") from error


def _set(connection: Any, pragma: str, value: object) -> None:
    """Set a pragma. SQLite does not wait while another connection changes the journal mode, so this retries."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}={value}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _impatient(engine: Engine) -> Engine:
    """Limit the time of statements on the server, and the wait for a server that does not reply."""
    kind: Any = engine.dialect.loaded_dbapi.Connection

    class Limited(kind):  # type: ignore[misc]
        def wait(self, *arguments: Any, **given: Any) -> Any:
            with WATCHDOG.limit(self.fileno(), _HANGS):
                return super().wait(*arguments, **given)

    @event.listens_for(engine, "do_connect")
    def _connect(_: Any, __: Any, arguments: Any, given: Any) -> Any:
        connection = Limited.connect(*arguments, **given)
        connection.autocommit = True
        for name, seconds in _TIMEOUTS.items():
            connection.execute(f"SET {name} = '{seconds}s'")
        connection.autocommit = False
        return connection

    return engine


def _sqlite(address: URL) -> Engine:
    engine = create_engine(address, pool_size=8, max_overflow=24, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        # Python's implicit transactions exclude reads and schema changes, so `_begin` starts them explicitly.
        connection.isolation_level = None
        for pragma, value in _PRAGMAS.items():
            _set(connection, pragma, value)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later would fail if another wrote in between.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


CHECK_EVERY = 0.5


class Watchdog:
    """Breaks connections that have waited too long for a reply: a server that hangs does not apply its own timeouts.

    The waiting call fails as it does when a connection is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, file: int, seconds: float) -> Iterator[None]:
        """Break the connection with this file descriptor if the block takes longer."""
        key = object()
        with self._lock:
            self._waiting[key] = (time.monotonic() + seconds, file)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="tocsin-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._waiting.pop(key, None)

    def cut_all(self) -> None:
        with self._lock:
            self._cut(list(self._waiting))

    def _watch(self) -> None:
        while True:
            time.sleep(CHECK_EVERY)
            with self._lock:
                now = time.monotonic()
                self._cut([key for key, (until, _) in self._waiting.items() if until < now])

    def _cut(self, keys: list[object]) -> None:
        """The caller holds the lock, so these calls still wait and the file descriptors are still theirs."""
        for key in keys:
            _, file = self._waiting.pop(key)
            with suppress(OSError):
                cut = socket.socket(fileno=socket.dup(file))
                try:
                    cut.shutdown(socket.SHUT_RDWR)
                finally:
                    cut.close()


WATCHDOG = Watchdog()

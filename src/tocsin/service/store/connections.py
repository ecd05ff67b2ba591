"""How the databases are reached: which ones there are, and what is set on every connection."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from tocsin.service.errors import DamagedError, StoreError, UnfitError
from tocsin.service.secrecy import MASK
from tocsin.service.store.watchdog import limited

SQLITE, POSTGRESQL = "sqlite", "postgresql+psycopg"
# An option of a connection: whether its transactions write.
WRITES = "tocsin_writes"

_PRAGMAS = {
    "busy_timeout": 15_000,
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "foreign_keys": "ON",
    # 64 MB: moving pages out of the log in large pieces writes a page that changes often only once.
    "wal_autocheckpoint": 16_000,
}
_PATIENCE = 5.0
# In seconds. A statement that waits for a lock gives up earlier than one that works.
_TIMEOUTS = {"lock_timeout": 10, "statement_timeout": 20}
# A server that does not answer for longer than that hangs.
_HANGS = 25.0
# How the databases call pages that cannot be read.
_DAMAGED_SQLITE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_DAMAGED_POSTGRESQL = ("XX001", "XX002")
# A server that is gone without a word is noticed within a minute, not after the hours that are usual.
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
    """An engine for the store at the URL; SQLite's file and its folder are made if asked for, for nobody but us.

    Only who is patient waits for a server for longer than a statement may take.
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
        raise StoreError("a store in PostgreSQL needs psycopg: pip install 'tocsin[postgres]'") from error
    return engine if patient else _impatient(engine)


def sqlite_file(address: URL) -> Path:
    """The file of a store in SQLite."""
    return Path(str(address.database))


def for_writing(engine: Engine) -> Engine:
    """The engine, with transactions that may write from their beginning."""
    return engine.execution_options(**{WRITES: True})


def for_reading(engine: Engine) -> Engine:
    """The engine, with transactions that see the store as it was at their first look, and cannot write."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


@contextmanager
def store_errors(engine: Engine) -> Iterator[None]:
    """Say as StoreError what the database says, without statements and their values, which may be secret."""
    try:
        yield
    except DBAPIError as error:
        raise _told(engine, error.orig) from error
    except SQLAlchemyError as error:
        raise _told(engine, error) from error
    except engine.dialect.loaded_dbapi.Error as error:  # from below SQLAlchemy
        raise _told(engine, error) from error


def _told(engine: Engine, error: BaseException | None) -> StoreError:
    damaged = getattr(error, "sqlite_errorname", "").startswith(_DAMAGED_SQLITE) or (
        (getattr(error, "sqlstate", None) or "").startswith(_DAMAGED_POSTGRESQL)
    )
    if damaged:
        return DamagedError(f"the store is damaged: {_said(engine, error)}{_where(engine)}")
    # Not where the connection broke meanwhile, which says nothing of what was to be stored.
    if isinstance(error, (engine.dialect.loaded_dbapi.DataError, engine.dialect.loaded_dbapi.IntegrityError)):
        return UnfitError(f"the store refuses this: {_said(engine, error)}")
    return StoreError(f"the store failed: {_said(engine, error)}{_where(engine)}")


def _where(engine: Engine) -> str:
    """Which file failed; PostgreSQL says by itself which server."""
    return f" ({sqlite_file(engine.url)})" if engine.dialect.name == "sqlite" else ""


def _said(engine: Engine, error: object) -> str:
    """The first line, without the password: a server, or the way to it, may repeat what it was sent."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    password = engine.url.password
    return line.replace(str(password), MASK) if password else line


def _address(url: str) -> URL:
    wanted = "sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME"
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        # The text itself may hold a password, and so may what is said of it.
        raise StoreError(f"a store's URL must be {wanted}, which the one given is not") from None
    in_memory = address.drivername == SQLITE and (not address.database or address.database.startswith((":", "file:")))
    if address.drivername not in (SQLITE, POSTGRESQL) or in_memory:
        raise StoreError(f"a store's URL must be {wanted}, got {address.render_as_string(hide_password=True)}")
    return address


def _make_file(file: Path) -> None:
    try:
        missing = [folder for folder in file.absolute().parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"the store {file} cannot be created or opened: {error.strerror}") from error


def _set(connection: Any, pragma: str, value: object) -> None:
    """Set a pragma. While another one changes the journal's mode SQLite does not wait, so we do."""
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
    """Have the server give up what takes too long, and us a server that does not answer at all."""

    kind = limited(engine.dialect.loaded_dbapi.Connection, _HANGS)

    @event.listens_for(engine, "do_connect")
    def _connect(_: Any, __: Any, arguments: Any, given: Any) -> Any:
        connection = kind.connect(*arguments, **given)
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
        # Python's own way of beginning transactions leaves out reads and changes of tables: we begin them ourselves.
        connection.isolation_level = None
        for pragma, value in _PRAGMAS.items():
            _set(connection, pragma, value)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # One that reads first and writes later could find that another one wrote in between, and would have to fail.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine

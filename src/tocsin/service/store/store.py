"""The store, in SQLite or PostgreSQL: opening, locking, transactions."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Connection, Engine

from tocsin.service.audit import pending_entry
from tocsin.service.errors import DamagedError
from tocsin.service.store import schema
from tocsin.service.store.connections import connect, for_reading, for_writing, sqlite_file, store_errors
from tocsin.service.store.migrations import migrate, newest_version, version_of
from tocsin.service.store.ownership import LockFile, take_in_postgresql
from tocsin.service.store.reader import StoreReader
from tocsin.service.store.sqlite_files import check_file, damage_message, keep_copy
from tocsin.service.store.watchdog import WATCHDOG
from tocsin.service.store.writer import StoreWriter

log = logging.getLogger("tocsin.store")


class Store:
    """The store; open it with `Store.open`. Threads may share it, and one at a time writes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading, self._writing = for_reading(engine), for_writing(engine)
        self._lock = threading.Lock()
        self._owned = False
        # In PostgreSQL, the owner writes through the connection that holds the lock. If it loses the connection, it
        # loses the lock too, and must take the lock again before it can write.
        self._kept: Connection | None = None

    @classmethod
    def open(cls, url: str, *, check: bool = False) -> Self:
        """Open the store. Create it if it does not exist, and migrate its tables to the newest version.

        A store that another monitor uses is not migrated. In SQLite, the store is copied first. With `check`, look for
        damage.
        """
        engine = connect(url)
        store = cls(engine)
        try:
            with store_errors(engine):
                if check:
                    check_file(engine)
                store._bring_up_to_date()
        except DamagedError as error:
            engine.dispose()
            if engine.dialect.name == "sqlite":
                raise DamagedError(damage_message(sqlite_file(engine.url), str(error))) from error
            raise
        except BaseException:
            engine.dispose()
            raise
        return store

    def _bring_up_to_date(self) -> None:
        with self._reading.connect() as connection:
            version = version_of(connection)
        if not 0 < version < newest_version():
            migrate(self._engine)  # creates the tables, or rejects those of a newer version
            return
        with self.own():
            if self._engine.dialect.name == "sqlite":
                log.warning("migrating the store; the copy %s has the old version", keep_copy(self._engine, version))
            migrate(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def own(self) -> Iterator[None]:
        """Keep other monitors from using the store; StoreError if one uses it already."""
        if self._engine.dialect.name == "sqlite":
            lock = LockFile(sqlite_file(self._engine.url))
            lock.take()
            try:
                yield
            finally:
                lock.let_go()
            return
        with self._lock, store_errors(self._engine):
            self._keep()
        self._owned = True
        try:
            yield
        finally:
            with self._lock:
                self._owned = False
                self._drop()

    @contextmanager
    def transaction(self) -> Iterator[StoreWriter]:
        """Change the store: commit at the end of the block, or roll back if it raises.

        If the database fails, the block raises StoreError, and the next transaction connects again.
        """
        with self._lock, store_errors(self._engine):
            if not self._owned or self._engine.dialect.name == "sqlite":
                with _noting(), self._writing.begin() as connection:
                    yield (writer := StoreWriter(connection))
                    _note(writer)
                return
            connection = self._keep()
            try:
                with _noting(), connection.begin():
                    yield (writer := StoreWriter(connection))
                    _note(writer)
            except BaseException:
                if connection.invalidated:
                    self._drop()
                raise

    @contextmanager
    def reading(self) -> Iterator[StoreReader]:
        """Read a snapshot of the store, taken at the first query."""
        with store_errors(self._engine), self._reading.begin() as connection:
            yield StoreReader(connection)

    def cut(self) -> None:
        """Break all connections to a server that does not reply, because the monitor must stop."""
        if self._engine.dialect.name != "sqlite":
            WATCHDOG.cut_all()

    def size_bytes(self) -> int:
        """The size on disk."""
        if self._engine.dialect.name == "sqlite":
            file = sqlite_file(self._engine.url)
            files = (file.with_name(file.name + suffix) for suffix in ("", "-wal"))
            return sum(one.stat().st_size for one in files if one.exists())
        with store_errors(self._engine), self._reading.begin() as connection:
            sizes = ", ".join(f"('{table}')" for table in schema.metadata.tables)
            query = f"SELECT sum(pg_total_relation_size(name::regclass)) FROM (VALUES {sizes}) AS tables(name)"  # noqa: S608
            return int(connection.exec_driver_sql(query).scalar_one())

    def _keep(self) -> Connection:
        if self._kept is None:
            connection = self._engine.connect()
            try:
                take_in_postgresql(connection)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._kept = connection
        return self._kept

    def _drop(self) -> None:
        """Close the connection that holds the lock: only that is sure to release it."""
        if self._kept is not None:
            self._kept.invalidate()
            self._kept.close()
            self._kept = None


def _note(writer: StoreWriter) -> None:
    """Add the current action to the audit trail, in the transaction of its changes."""
    entry = pending_entry()
    if entry is not None:
        writer.add_audit(entry, time.time_ns())


@contextmanager
def _noting() -> Iterator[None]:
    """Mark the current action as stored once the transaction in the block is committed."""
    entry = pending_entry()
    yield
    if entry is not None:
        entry.stored = True

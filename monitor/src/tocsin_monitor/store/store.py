"""The store, in SQLite or PostgreSQL: opening, locking, transactions."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Self

from sqlalchemy import Connection, Engine

from tocsin_monitor.access_log import pending_entry
from tocsin_monitor.errors import DamagedError, StoreError
from tocsin_monitor.store import schema
from tocsin_monitor.store.connections import (
    WATCHDOG,
    check_file,
    connect,
    damage_message,
    for_reading,
    for_writing,
    sqlite_file,
    store_errors,
)
from tocsin_monitor.store.locks import Owner, SessionLock, evict, find_owner, heartbeat, locked_file
from tocsin_monitor.store.migrations import keep_copy, migrate, newest_version, version_of
from tocsin_monitor.store.reader import StoreReader
from tocsin_monitor.store.writer import StoreWriter

log = logging.getLogger("tocsin.store")


class Store:
    """The store; open it with `Store.open`. Threads may share it, and one at a time writes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading, self._writing = for_reading(engine), for_writing(engine)
        self._lock = threading.Lock()
        self._owned = False
        # In PostgreSQL, the owner writes through the session that holds the lock.
        self._session_lock = SessionLock(engine)

    @classmethod
    def open(cls, url: str, *, check: bool = False) -> Self:
        """Open the store. Create it if it does not exist, and migrate its tables to the newest version.

        A store that another monitor uses is not migrated. In SQLite, the store is copied first. With `check`, look for
        damage.
        """
        store = cls.reach(url)
        engine = store._engine
        try:
            with store_errors(engine):
                if check:
                    check_file(engine)
            store.bring_up_to_date()
        except DamagedError as error:
            engine.dispose()
            if engine.dialect.name == "sqlite":
                raise DamagedError(damage_message(sqlite_file(engine.url), str(error))) from error
            raise
        except BaseException:
            engine.dispose()
            raise
        return store

    @classmethod
    def reach(cls, url: str) -> Self:
        """The store as it is. This does not connect yet, and does not migrate its tables."""
        return cls(connect(url))

    def bring_up_to_date(self) -> None:
        """Create the tables, or migrate them to the newest version; StoreError if this release cannot read them."""
        with store_errors(self._engine):
            with self._reading.connect() as connection:
                version = version_of(connection)
            if not 0 < version < newest_version():
                migrate(self._engine)  # creates the tables, or rejects those that this release cannot read
                return
            with nullcontext() if self._owned else self.own():
                if self._engine.dialect.name == "sqlite":
                    log.warning(
                        "migrating the store; the copy %s has the old version", keep_copy(self._engine, version)
                    )
                migrate(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def own(self) -> Iterator[None]:
        """Keep other monitors from using the store; OwnedError if one uses it already."""
        if self._engine.dialect.name == "sqlite":
            with locked_file(sqlite_file(self._engine.url)):
                yield
            return
        with self._lock, store_errors(self._engine):
            self._session_lock.take()
        self._owned = True
        try:
            with heartbeat(self._beat):
                yield
        finally:
            with self._lock:
                self._owned = False
                self._session_lock.let_go()

    @property
    def lost(self) -> bool:
        """Whether the owner lost its session, and with it the lock: another monitor may own the store now."""
        return self._owned and self._session_lock.session is None

    def regain(self) -> None:
        """Take the lock again if it was lost; OwnedError if another monitor holds it.

        The caller must then read everything again, because other monitors may have changed the store.
        """
        if self.lost:
            with self._lock, store_errors(self._engine):
                self._session_lock.take()

    def check_owned(self) -> None:
        if self.lost:
            raise StoreError("the connection that held the lock of the store was lost")

    def owner(self) -> Owner | None:
        """The monitor that uses the store in PostgreSQL, if any. End its session if it shows no sign of life."""
        with store_errors(self._engine), self._reading.begin() as connection:
            owner = find_owner(connection)
            if owner is not None and owner.quiet:
                log.warning("the leader shows no sign of life; ending its session: %s", owner.name)
                evict(connection, owner)
            return owner

    @contextmanager
    def transaction(self) -> Iterator[StoreWriter]:
        """Change the store: commit at the end of the block, or roll back if it raises.

        If the database fails, the block raises StoreError, and the next transaction connects again. An owner must first
        regain the store, because what it would write may be stale.
        """
        with self._lock, store_errors(self._engine):
            if not self._owned or self._engine.dialect.name == "sqlite":
                with self._writing.connect() as connection, _recorded(connection) as writer:
                    yield writer
                return
            self.check_owned()
            session = self._session_lock.session
            assert session is not None  # noqa: S101 for the type checker
            try:
                with _recorded(session) as writer:
                    yield writer
            except BaseException:
                if session.invalidated:
                    self._session_lock.let_go()
                raise

    def _beat(self) -> None:
        """Show the server that the owner is alive. A transaction in progress shows it too."""
        if self._lock.acquire(blocking=False):
            try:
                with store_errors(self._engine):
                    self._session_lock.beat()
            except StoreError as error:
                log.error("the lock of the store is lost: %s", error)
            finally:
                self._lock.release()

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
        if self._engine.dialect.name == "sqlite":
            file = sqlite_file(self._engine.url)
            files = (file.with_name(file.name + suffix) for suffix in ("", "-wal"))
            return sum(one.stat().st_size for one in files if one.exists())
        with store_errors(self._engine), self._reading.begin() as connection:
            sizes = ", ".join(f"('{table}')" for table in schema.metadata.tables)
            query = f"SELECT sum(pg_total_relation_size(name::regclass)) FROM (VALUES {sizes}) AS tables(name)"  # noqa: S608
            return int(connection.exec_driver_sql(query).scalar_one())


@contextmanager
def _recorded(connection: Connection) -> Iterator[StoreWriter]:
    """A transaction, which also adds the current action to the access log; from then on, that is stored."""
    entry, writer = pending_entry(), StoreWriter(connection)
    with connection.begin():
        yield writer
        if entry is not None:
            writer.add_to_access_log(entry, time.time_ns())
    if entry is not None:
        entry.stored = True

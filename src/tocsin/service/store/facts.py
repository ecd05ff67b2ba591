"""What a store is, without changing anything of it."""

import sqlite3
import time
from dataclasses import dataclass

from sqlalchemy import func, select

from tocsin.service.store import schema
from tocsin.service.store.connections import connect, for_reading, store_errors
from tocsin.service.store.leadership import find_owner
from tocsin.service.store.migrations import newest_version, version_of
from tocsin.service.store.reader import StoreReader
from tocsin.service.store.rows import TokenRow


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What was found. Times are nanoseconds since 1970."""

    #: Such as "PostgreSQL 15.4".
    database: str
    encoding: str
    #: The version of its tables, 0 for none, and the one that this program works with.
    tables: int
    newest_tables: int
    #: By how many seconds the clock of its server is ahead of ours.
    clock_ahead: float
    #: Which monitor works on it, as far as the database knows.
    owner: str | None = None
    #: The time of the newest observation.
    newest: int | None = None
    tokens: tuple[TokenRow, ...] = ()

    @property
    def current(self) -> bool:
        """Whether its tables are those that this program works with."""
        return self.tables == self.newest_tables


def look_at(url: str) -> StoreFacts:
    """Look at a store; StoreError where it cannot be reached or read, or where there is none."""
    engine = connect(url, make=False)
    try:
        with store_errors(engine), for_reading(engine).begin() as connection:
            if engine.dialect.name == "sqlite":
                database, ahead, owner = f"SQLite {sqlite3.sqlite_version}", 0.0, None
                encoding = connection.exec_driver_sql("PRAGMA encoding").scalar_one()
            else:
                asked = time.time()
                seconds = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
                ahead = float(seconds) - (asked + time.time()) / 2
                database = f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar_one()}"
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
                found = find_owner(connection)
                owner = None if found is None else found.name
            tables, newest = version_of(connection), None
            tokens: tuple[TokenRow, ...] = ()
            if tables == newest_version():
                newest = connection.execute(select(func.max(schema.observations.c.time))).scalar()
                tokens = tuple(StoreReader(connection).tokens())
        return StoreFacts(database, encoding, tables, newest_version(), ahead, owner, newest, tokens)
    finally:
        engine.dispose()

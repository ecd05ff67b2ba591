"""What a store is, without changing anything of it."""

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection, func, make_url, select

from tocsin_monitor.store import schema
from tocsin_monitor.store.connections import connect, for_reading, sqlite_file, store_errors
from tocsin_monitor.store.locks import find_owner
from tocsin_monitor.store.migrations import newest_version, version_of
from tocsin_monitor.store.reader import StoreReader
from tocsin_monitor.store.rows import TemplateRow, TokenRow


@dataclass(frozen=True, slots=True)
class StuckMessages:
    """The messages that a sink has not accepted so far."""

    count: int
    #: When the oldest of them was put there.
    since: int
    #: Why the newest of them was not accepted.
    error: str


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
    templates: tuple[TemplateRow, ...] = ()
    #: The names of signals whose rows cannot be read.
    damaged: tuple[str, ...] = ()
    #: By the names of sinks.
    stuck: Mapping[str, StuckMessages] = field(default_factory=dict)

    @property
    def current(self) -> bool:
        """Whether its tables are those that this program works with."""
        return self.tables == self.newest_tables


def file_of(url: str) -> Path | None:
    """The file of a store in SQLite; None for a store in another database."""
    return sqlite_file(make_url(url)) if url.startswith("sqlite:") else None


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
            facts = StoreFacts(database, encoding, version_of(connection), newest_version(), ahead, owner)
            if facts.current:
                reader = StoreReader(connection)
                facts = replace(
                    facts, newest=_newest(connection), tokens=tuple(reader.tokens()),
                    templates=tuple(reader.templates()), stuck=_stuck(connection),
                    damaged=tuple(row.name for row in reader.signals() if row.damage is not None),
                )  # fmt: skip
        return facts
    finally:
        engine.dispose()


def _newest(connection: Connection) -> int | None:
    """One index lookup per signal: the table may have a hundred million rows."""
    observations, signals = schema.observations.c, schema.signals.c
    of_signal = select(func.max(observations.time)).where(observations.signal == signals.id).scalar_subquery()
    times = select(of_signal.label("time")).select_from(schema.signals).subquery()
    return connection.execute(select(func.max(times.c.time))).scalar()


def _stuck(connection: Connection) -> dict[str, StuckMessages]:
    columns = schema.outbox.c
    tried = columns.delivered.is_(None), columns.attempts > 0
    numbers = func.count().label("count"), func.min(columns.created).label("since"), func.max(columns.id).label("last")
    groups = select(columns.sink, *numbers).where(*tried).group_by(columns.sink).subquery()
    wanted = select(groups.c.sink, groups.c.count, groups.c.since, columns.error)
    rows = connection.execute(wanted.join_from(groups, schema.outbox, columns.id == groups.c.last))
    return {sink: StuckMessages(count, since, error or "") for sink, count, since, error in rows}

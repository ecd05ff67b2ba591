"""Backups. A backup is one SQLite file, whatever the store's database, so it can be restored into either database."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, Select, Table, create_engine, func, insert, select

from tocsin_monitor.errors import StoreError
from tocsin_monitor.store import migrations, schema
from tocsin_monitor.store.connections import connect, disposing, for_reading, shown_address, sqlite_file, store_errors
from tocsin_monitor.store.encoding import insert_observations
from tocsin_monitor.store.migrations import Progress, migrate, newest_version, readable_versions, version_of
from tocsin_monitor.store.store import Store

_ROWS = 5000


def backup(url: str, file: Path, progress: Progress | None = None) -> None:
    """Write a snapshot of the whole store to a new file. The monitor may keep running."""
    if file.exists():
        raise StoreError(f"a backup needs a new file, but {file} already exists")
    try:
        with disposing(connect(url, make=False, patient=True)) as engine, store_errors(engine):
            _check_current(engine)
            with migrations.whole_file(file) as part:
                if engine.dialect.name == "sqlite":
                    migrations.copy_pages(sqlite_file(engine.url), part, progress)
                else:
                    _copy_store(engine, part, progress)
    except OSError as error:
        raise StoreError(f"the backup {file} cannot be written: {error.strerror}") from error


def restore(file: Path, url: str, progress: Progress | None = None) -> None:
    """Restore a backup into an empty store, in one transaction. StoreError if it is damaged or the store not empty."""
    with _opened(file) as source:
        store = Store.open(url)
        try:
            with store.own(), store.transaction() as writer, source.begin() as connection:
                target = writer.connection
                full = [table.name for table in _tables() if target.execute(select(table).limit(1)).first()]
                if full:
                    raise StoreError(
                        f"a backup can only be restored into an empty store, but this one has {', '.join(full)}"
                    )
                _copy_rows(connection, target, progress)
        finally:
            store.close()


def _tables() -> list[Table]:
    """The tables in a backup, in an order that satisfies foreign keys."""
    return [table for table in schema.metadata.sorted_tables if table is not schema.schema_version]


def _check_current(engine: Engine) -> None:
    with for_reading(engine).begin() as connection:
        version = version_of(connection)
    if version != newest_version():
        raise StoreError(
            f"the store {shown_address(engine)} has tables of version {version}, but this release works with version "
            f"{newest_version()}: back it up with the tocsin that uses it"
        )


def _copy_store(engine: Engine, part: Path, progress: Progress | None) -> None:
    with disposing(_plain(part)) as copy:
        migrate(copy)
        with for_reading(engine).begin() as source, copy.begin() as target:
            _copy_rows(source, target, progress)


def _wanted(table: Table) -> Select[Any]:
    if table is schema.observations:
        # Ids of new signals continue after the largest copied one, so leave out observations of removed signals.
        return select(table).where(table.c.signal.in_(select(schema.signals.c.id)))
    return select(table)


def _copy_rows(source: Connection, target: Connection, progress: Progress | None) -> None:
    counts = (select(func.count()).select_from(_wanted(table).subquery()) for table in _tables())
    total = sum(source.execute(count).scalar_one() for count in counts)
    done = 0
    for table in _tables():
        wanted = _wanted(table).order_by(*table.primary_key.columns)
        rows = source.execution_options(yield_per=_ROWS).execute(wanted)
        for piece in rows.partitions():
            if table is schema.observations:
                insert_observations(target, [tuple(row) for row in piece])
            else:
                target.execute(insert(table), [dict(row._mapping) for row in piece])
            done += len(piece)
            if progress is not None:
                progress(done, total)
        if target.dialect.name == "postgresql" and "id" in table.c:
            _continue_numbers(target, table)


def _continue_numbers(connection: Connection, table: Table) -> None:
    """Make PostgreSQL continue after the largest copied id."""
    largest = connection.execute(select(func.max(table.c.id))).scalar_one()
    if largest is not None:
        sequence = func.pg_get_serial_sequence(table.name, "id")
        connection.execute(select(func.setval(sequence, largest)))


@contextmanager
def _opened(file: Path) -> Iterator[Engine]:
    """Open and check a backup. If its version is older, open a migrated copy: the backup itself must not change."""
    if not file.is_file():
        raise StoreError(f"no such backup: {file}")
    with tempfile.TemporaryDirectory(prefix="tocsin-") as folder:
        version = _check(file)
        if version < newest_version():
            file = Path(shutil.copy(file, folder))
            with disposing(_plain(file)) as older, store_errors(older):
                migrate(older)
        with disposing(_read_only(file)) as engine:
            yield engine


def _check(file: Path) -> int:
    """The version of a backup's tables; StoreError if the file is not a backup, or is damaged."""
    try:
        with disposing(_read_only(file)) as engine, store_errors(engine), engine.begin() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            version = version_of(connection) if found == "ok" else 0
    except StoreError as error:
        raise StoreError(f"{file} is not a backup, or is damaged: {error}") from error
    if found != "ok":
        raise StoreError(f"{file} is damaged: {found}")
    if not 0 < version <= newest_version():
        what = f"has tables of version {version}" if version else "has no tables of a store"
        raise StoreError(
            f"{file} {what}, and this release restores backups of {readable_versions()}: restore it with the tocsin "
            "that wrote it"
        )
    return version


def _read_only(file: Path) -> Engine:
    address = f"{file.resolve().as_uri()}?mode=ro"
    return create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=NullPool)


def _plain(file: Path) -> Engine:
    """An SQLite file without a write-ahead log."""
    return create_engine(URL.create("sqlite", database=str(file)), poolclass=NullPool)

"""The version of the tables, the migrations to the next versions, and the copy of an SQLite file before them."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, select
from sqlalchemy import text as sql

from tocsin_monitor.errors import StoreError
from tocsin_monitor.store import schema
from tocsin_monitor.store.connections import for_reading, for_writing, shown_address, sqlite_file

Migration = Callable[[Connection], None]


def _onsets_and_labels(connection: Connection) -> None:
    """Incidents say what came before them, and what their labels do."""
    for column in (
        "seen BIGINT NOT NULL DEFAULT 0",
        "began_earliest BIGINT",
        "began_latest BIGINT",
        "given_back BIGINT",
        "alike TEXT",
        "advice TEXT",
        "occurrence BIGINT NOT NULL DEFAULT 1",
        "first_alike BIGINT",
        "holds BOOLEAN NOT NULL DEFAULT FALSE",
        "label_of BIGINT",
        "suppressed BOOLEAN NOT NULL DEFAULT FALSE",
    ):
        connection.exec_driver_sql(f"ALTER TABLE incidents ADD COLUMN {column}")
    connection.exec_driver_sql("CREATE INDEX incidents_alike ON incidents (signal, alike, start)")


def _rules_and_schedules(connection: Connection) -> None:
    """Signals have rules, incidents below a minimum are marked, and maintenance recurs."""
    connection.exec_driver_sql("ALTER TABLE signals ADD COLUMN rules TEXT")
    connection.exec_driver_sql("ALTER TABLE incidents ADD COLUMN below_minimum BOOLEAN NOT NULL DEFAULT FALSE")
    for column in ("schedule TEXT", "duration DOUBLE PRECISION", "time_zone TEXT"):
        connection.exec_driver_sql(f"ALTER TABLE maintenance ADD COLUMN {column}")


def _features_of_incidents(connection: Connection) -> None:
    """Incidents say what each feature contributed, with its p-value."""
    connection.exec_driver_sql("ALTER TABLE incidents ADD COLUMN feature_p TEXT NOT NULL DEFAULT '{}'")
    connection.exec_driver_sql("ALTER TABLE incidents ADD COLUMN suspects TEXT NOT NULL DEFAULT '[]'")


def _rates_of_signals(connection: Connection) -> None:
    """Signals keep the alarm rate that they had by default, which is another one now."""
    for number, text in connection.exec_driver_sql("SELECT id, settings FROM signals").all():
        with suppress(ValueError, TypeError):  # what is damaged is told when it is read
            settings = {"alarm_rate": 0.01, **json.loads(text)}
            connection.execute(_SETTINGS, {"settings": json.dumps(settings), "id": number})


_SETTINGS = sql("UPDATE signals SET settings = :settings WHERE id = :id")

# The first migrates from version 1, the tables of release 0.1.0, to version 2, and so on. A new store is created from
# `schema.metadata`, so the last migration must result in the same tables. Never change a released migration.
MIGRATIONS: tuple[Migration, ...] = (
    _onsets_and_labels,
    _rules_and_schedules,
    _features_of_incidents,
    _rates_of_signals,
)

# The lock held while tables are created or changed, so that two processes do not do so at the same time.
_CHANGING = 0x746F6373696E


def newest_version() -> int:
    """The version that this release uses."""
    return 1 + len(MIGRATIONS)


def readable_versions() -> str:
    """The versions that this release can read, as text."""
    return "version 1" if newest_version() == 1 else f"versions 1 to {newest_version()}"


def version_of(connection: Connection) -> int:
    """The version of a store's tables, 0 if there are none."""
    if not inspect(connection).has_table(schema.schema_version.name):
        return 0
    version = connection.execute(select(schema.schema_version.c.version)).scalar()
    if version is None:
        raise StoreError("the store is damaged: the version of its tables is missing")
    return int(version)


def _check_encoding(connection: Connection) -> None:
    """Require UTF-8, because names and notes may be in any script."""
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise StoreError(
            f"the database {connection.engine.url.database!r} has the encoding {encoding}, and the monitor needs UTF8: "
            "create one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )


def migrate(engine: Engine) -> None:
    """Migrate the tables to the newest version in one transaction: after a failure, nothing has changed."""
    with for_reading(engine).connect() as connection:
        _check_encoding(connection)
        if _checked_version(connection) == newest_version():
            return
    with for_writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_CHANGING,))
        version = _checked_version(connection)  # another process may have been faster
        if version == 0:
            schema.metadata.create_all(connection, checkfirst=False)
            connection.execute(schema.schema_version.insert().values(version=newest_version()))
            return
        for number in range(version, newest_version()):
            MIGRATIONS[number - 1](connection)
            connection.execute(schema.schema_version.update().values(version=number + 1))


def _checked_version(connection: Connection) -> int:
    """The version of a store's tables; StoreError if this release cannot read them."""
    version = version_of(connection)
    if not 0 <= version <= newest_version():
        raise StoreError(
            f"the store {shown_address(connection.engine)} has tables of version {version}, and this release reads "
            f"{readable_versions()}: use the tocsin that wrote it, or an empty store (storage.folder or storage.url)"
        )
    return version


#: Called with the amount done and the total: rows, or pages if a file is copied.
Progress = Callable[[int, int], None]

_PAGES = 1024


def copy_pages(source: Path, part: Path, progress: Progress | None = None) -> None:
    """Copy a consistent snapshot of a store into a file, which may exist but be empty."""
    with closing(sqlite3.connect(source)) as origin, closing(sqlite3.connect(part)) as target:
        # Our own transaction makes the copy a snapshot. Without it, the copy would restart after every write.
        origin.isolation_level = None
        origin.execute("BEGIN")
        origin.execute("SELECT version FROM schema_version").fetchone()
        done = None if progress is None else lambda _, left, total: progress(total - left, total)
        origin.backup(target, pages=_PAGES, progress=done)
        origin.execute("COMMIT")
        # The copy would use a write-ahead log, but a backup must be a single file.
        target.execute("PRAGMA journal_mode=DELETE")


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """A new file for this user only, under another name until it is complete; it takes the place of an old one."""
    part = file.with_name(file.name + ".part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def keep_copy(engine: Engine, version: int) -> Path:
    """Copy a store before a migration; `tocsin restore` can restore the copy."""
    file = sqlite_file(engine.url)
    copy = file.with_name(f"{file.name}.version-{version}")
    try:
        with whole_file(copy) as part:
            copy_pages(file, part)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the store was not migrated, because it cannot be copied to {copy}: {error}") from error
    return copy

"""The file of an SQLite store: checks for damage, and copies."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from tocsin.service.errors import DamagedError, StoreError
from tocsin.service.store.connections import for_reading, sqlite_file

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


def keep_copy(engine: Engine, version: int) -> Path:
    """Copy a store before a migration; `tocsin restore` can restore the copy."""
    file = sqlite_file(engine.url)
    copy = file.with_name(f"{file.name}.version-{version}")
    part = copy.with_name(copy.name + ".part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        copy_pages(file, part)
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the store was not migrated, because it cannot be copied to {copy}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return copy


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

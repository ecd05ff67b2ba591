"""Inserts many observations with each database's own fast path; SQLAlchemy's is too slow."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from tocsin.service.store import schema

_NAMES = ", ".join(schema.observations.c.keys())
_INSERT = f"INSERT INTO observations ({_NAMES}) VALUES ({', '.join('?' * len(schema.observations.c))})"  # noqa: S608
_COPY = f"COPY observations ({_NAMES}) FROM STDIN (FORMAT BINARY)"
_COPY_TYPES = ("int8", "int8", "int2", *["float8"] * 7, "bool", "bool", "text")


def insert_observations(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add observations, given as columns. It is an error if one is stored already: nothing is overwritten."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_INSERT, list(rows))
        return
    with connection.connection.cursor() as cursor, cursor.copy(_COPY) as copy:  # type: ignore[attr-defined]
        copy.set_types(_COPY_TYPES)
        for row in rows:
            copy.write_row(row)

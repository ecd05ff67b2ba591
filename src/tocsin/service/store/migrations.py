"""Numbered versions of the tables, and how a store gets from one to the next."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine, inspect, select

from tocsin.service.errors import StoreError
from tocsin.service.store import schema
from tocsin.service.store.connections import for_reading, for_writing

Step = Callable[[Connection], None]

# The first step leads from version 1 to 2, and so on. An empty store gets the newest version at once, from
# `schema.metadata`, so the last step must lead to what stands there. Never change a step that was released.
STEPS: tuple[Step, ...] = ()

# Held while the tables are made or changed, so that two that open a new store at once do not both make them.
_CHANGING = 0x746F6373696E


def newest_version(steps: Sequence[Step] | None = None) -> int:
    """The version that this program works with."""
    return 1 + len(STEPS if steps is None else steps)


def version_of(connection: Connection) -> int:
    """The version of a store's tables, 0 if there are none."""
    if not inspect(connection).has_table(schema.schema_version.name):
        return 0
    version = connection.execute(select(schema.schema_version.c.version)).scalar()
    if version is None:
        raise StoreError("the store is damaged: it does not say of which version its tables are")
    return int(version)


def migrate(engine: Engine, steps: Sequence[Step] | None = None) -> None:
    """Bring the tables to the newest version, in one transaction: after a failure they are as they were."""
    steps = STEPS if steps is None else steps
    with for_reading(engine).connect() as connection:
        if _checked(version_of(connection), steps) == newest_version(steps):
            return
    with for_writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_CHANGING,))
        version = _checked(version_of(connection), steps)  # another one may have been faster
        if version == 0:
            schema.metadata.create_all(connection, checkfirst=False)
            connection.execute(schema.schema_version.insert().values(version=newest_version(steps)))
            return
        for number in range(version, newest_version(steps)):
            steps[number - 1](connection)
            connection.execute(schema.schema_version.update().values(version=number + 1))


def _checked(version: int, steps: Sequence[Step]) -> int:
    if version > newest_version(steps):
        raise StoreError(
            f"the store has tables of version {version}, and this program knows those up to {newest_version(steps)}: "
            "it was written by a newer tocsin, so use that one"
        )
    return version

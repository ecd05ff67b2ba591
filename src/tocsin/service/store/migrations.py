"""The versions of the tables, and the migrations from one to the next."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, inspect, select, text

from tocsin.service.errors import StoreError
from tocsin.service.store import schema
from tocsin.service.store.connections import for_reading, for_writing

Step = Callable[[Connection], None]


def _incidents_in_words(connection: Connection) -> None:
    """Incidents get an explanation, and signals the settings of detectors with views."""
    double = "DOUBLE PRECISION" if connection.dialect.name == "postgresql" else "BLOB"
    added = {"severity": double, "return_period": double, "view": "TEXT", "explanation": "TEXT"}
    for name, kind in added.items():
        connection.exec_driver_sql(f"ALTER TABLE incidents ADD COLUMN {name} {kind}")
    # Severity was given by p. It is computed here because not every SQLite has logarithms.
    change = text("UPDATE incidents SET severity = :severity WHERE id = :id")
    known = connection.exec_driver_sql("SELECT id, p FROM incidents WHERE p > 0").all()
    if known:
        connection.execute(change, [{"id": number, "severity": -math.log10(p)} for number, p in known])
    connection.exec_driver_sql("ALTER TABLE incidents DROP COLUMN merged")
    change = text("UPDATE signals SET settings = :settings WHERE id = :id")
    for number, settings in connection.exec_driver_sql("SELECT id, settings FROM signals").all():
        connection.execute(change, {"id": number, "settings": json.dumps(_with_views(json.loads(settings)))})


def _with_views(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a detector without those that views replaced."""
    gone = (
        "horizons", "light", "merge", "recalibrate", "learn", "hold_below", "hold_after", "hold_most", "hold_context",
    )  # fmt: skip
    kept = {name: value for name, value in settings.items() if name not in gone}
    if settings.get("light"):
        kept.setdefault("preset", "light")
    if kept.get("nonconformity") == "signed":
        del kept["nonconformity"]
    if "merge_features" in kept and kept["merge_features"] not in ("harmonic", "mean"):
        del kept["merge_features"]
    return kept


def _references(connection: Connection) -> None:
    """Signals may have a reference."""
    binary = "BYTEA" if connection.dialect.name == "postgresql" else "BLOB"
    connection.exec_driver_sql(
        "CREATE TABLE reference ("
        "signal BIGINT NOT NULL PRIMARY KEY REFERENCES signals (id) ON DELETE CASCADE, "
        'start BIGINT NOT NULL, "end" BIGINT NOT NULL, observations BIGINT NOT NULL, '
        f"created BIGINT NOT NULL, created_by TEXT NOT NULL, observed {binary} NOT NULL)"
    )


def _ends(connection: Connection) -> None:
    """Incidents say why they ended. For those that ended before, the reason is unknown."""
    connection.exec_driver_sql("ALTER TABLE incidents ADD COLUMN ended TEXT")


def _refused(connection: Connection) -> None:
    """Refused observations are listed."""
    number = "BIGSERIAL" if connection.dialect.name == "postgresql" else "INTEGER"
    key = "PRIMARY KEY" if connection.dialect.name == "postgresql" else "NOT NULL PRIMARY KEY AUTOINCREMENT"
    connection.exec_driver_sql(
        f"CREATE TABLE refused (id {number} {key}, signal TEXT NOT NULL, time BIGINT NOT NULL, value TEXT NOT NULL, "
        "source TEXT NOT NULL, reason TEXT NOT NULL, noted BIGINT NOT NULL)"
    )


def _who_did_what(connection: Connection) -> None:
    """Tokens may be limited to name patterns, the time of the first token is kept, and there is an audit trail."""
    number = (
        "BIGSERIAL NOT NULL PRIMARY KEY"
        if connection.dialect.name == "postgresql"
        else "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    )
    connection.exec_driver_sql("ALTER TABLE tokens ADD COLUMN patterns TEXT")
    connection.exec_driver_sql("CREATE TABLE guarded (since BIGINT NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql("INSERT INTO guarded SELECT min(created) FROM tokens HAVING min(created) IS NOT NULL")
    connection.exec_driver_sql(
        f"CREATE TABLE audit (id {number}, time BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, "
        "target TEXT NOT NULL, details TEXT NOT NULL)"
    )


def _withheld(connection: Connection) -> None:
    """Budgets may withhold incidents from sinks."""
    no = "FALSE" if connection.dialect.name == "postgresql" else "0"
    connection.exec_driver_sql(f"ALTER TABLE incidents ADD COLUMN withheld BOOLEAN NOT NULL DEFAULT {no}")


def _foretold(connection: Connection) -> None:
    """Forecasts are stored until the next state."""
    binary = "BYTEA" if connection.dialect.name == "postgresql" else "BLOB"
    connection.exec_driver_sql(
        "CREATE TABLE foretold (signal BIGINT NOT NULL REFERENCES signals (id) ON DELETE CASCADE, "
        f"time BIGINT NOT NULL, foretold {binary} NOT NULL, PRIMARY KEY (signal, time))"
    )


def _parts(connection: Connection) -> None:
    """Signals may aggregate their observations."""
    double = "DOUBLE PRECISION" if connection.dialect.name == "postgresql" else "FLOAT"
    connection.exec_driver_sql(f"ALTER TABLE signals ADD COLUMN every {double}")
    connection.exec_driver_sql("ALTER TABLE signals ADD COLUMN aggregate TEXT NOT NULL DEFAULT 'mean'")
    connection.exec_driver_sql(
        "CREATE TABLE parts (signal BIGINT NOT NULL REFERENCES signals (id) ON DELETE CASCADE, "
        "time BIGINT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (signal, time))"
    )


def _events(connection: Connection) -> None:
    """Incidents belong to events. Each one of which people were told is an event by itself, with its own number."""
    postgresql = connection.dialect.name == "postgresql"
    number = "BIGSERIAL NOT NULL PRIMARY KEY" if postgresql else "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    do = connection.exec_driver_sql
    do(
        f"CREATE TABLE events (id {number}, kind TEXT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL, "
        "shared TEXT NOT NULL, open BOOLEAN NOT NULL, opened BIGINT NOT NULL, closed BIGINT, acknowledged BIGINT, "
        "acknowledged_by TEXT, snoozed_until BIGINT, label TEXT, note TEXT)"
    )
    do("CREATE INDEX events_open ON events (open)")
    do("ALTER TABLE incidents ADD COLUMN event BIGINT")
    do("CREATE INDEX incidents_of_event ON incidents (event)")
    do("ALTER TABLE outbox ADD COLUMN event BIGINT")
    do("ALTER TABLE outbox ADD COLUMN told BIGINT")
    do("ALTER TABLE outbox ADD COLUMN news INTEGER NOT NULL DEFAULT 0")
    do("CREATE INDEX outbox_of_event ON outbox (event)")
    do("ALTER TABLE signals ADD COLUMN source TEXT")
    do(
        "INSERT INTO events SELECT id, kind, start, start, '[]', open, opened, closed, acknowledged, acknowledged_by, "
        "snoozed_until, label, note FROM incidents WHERE NOT withheld AND coalesce(ended, '') <> 'imported'"
    )
    do("UPDATE incidents SET event = id WHERE NOT withheld AND coalesce(ended, '') <> 'imported'")
    do("UPDATE outbox SET told = delivered, event = (SELECT event FROM incidents WHERE incidents.id = incident)")
    if postgresql:
        do("SELECT setval(pg_get_serial_sequence('events', 'id'), coalesce(max(id), 0) + 1, false) FROM events")


def _templates(connection: Connection) -> None:
    """Templates may be stored, besides those of the settings file."""
    connection.exec_driver_sql(
        "CREATE TABLE templates (pattern TEXT NOT NULL PRIMARY KEY, template TEXT NOT NULL, changed BIGINT NOT NULL, "
        "changed_by TEXT NOT NULL)"
    )


def _votes(connection: Connection) -> None:
    """Detectors whose views vote: signals and templates lose the settings that are gone. States are learned anew."""
    change = text("UPDATE signals SET settings = :settings WHERE id = :id")
    for number, settings in connection.exec_driver_sql("SELECT id, settings FROM signals").all():
        connection.execute(change, {"id": number, "settings": json.dumps(_with_votes(json.loads(settings)))})
    change = text("UPDATE templates SET template = :template WHERE pattern = :pattern")
    for pattern, stored in connection.exec_driver_sql("SELECT pattern, template FROM templates").all():
        template = json.loads(stored)
        if template.get("detector"):
            template["detector"] = _with_votes(template["detector"])
            connection.execute(change, {"pattern": pattern, "template": json.dumps(template)})
    connection.exec_driver_sql("DELETE FROM foretold")  # another network made them


def _with_votes(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a detector with the views and settings that are left."""
    kept = {name: value for name, value in settings.items() if name != "merge_features"}
    if kept.get("views") is not None:
        views = kept["views"]
        names = [part.strip() for part in views.split(",")] if isinstance(views, str) else views
        # A view that is gone is replaced by the one that sees the same, if there is one.
        now = {"horizons": "error", "paper": "error", "shape-light": "shape", "level": None, "all": None}
        left = dict.fromkeys(one for one in (now.get(name, name) for name in names) if one is not None)
        kept["views"] = list(left) or None  # None: the usual ones
    # The network looks 32 steps ahead instead of 64, and the view error needs 15 of them.
    forecaster = kept.get("forecaster", "auto")
    network = forecaster == "embedded" or (forecaster == "auto" and kept.get("preset") != "light")
    if network and (kept.get("refresh") or 1) > 18:
        kept["refresh"] = 18
    return kept


# The first step migrates from version 1 to 2, and so on. A new store is created from `schema.metadata`, so the last
# step must result in the same tables. Never change a released step.
STEPS: tuple[Step, ...] = (
    _incidents_in_words,
    _references,
    _ends,
    _refused,
    _who_did_what,
    _withheld,
    _foretold,
    _parts,
    _events,
    _templates,
    _votes,
)

# The lock held while tables are created or changed, so that two processes do not do so at the same time.
_CHANGING = 0x746F6373696E


def newest_version(steps: Sequence[Step] | None = None) -> int:
    """The version that this release uses."""
    return 1 + len(STEPS if steps is None else steps)


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


def migrate(engine: Engine, steps: Sequence[Step] | None = None) -> None:
    """Migrate the tables to the newest version in one transaction: after a failure, nothing has changed."""
    steps = STEPS if steps is None else steps
    with for_reading(engine).connect() as connection:
        _check_encoding(connection)
        if _checked(version_of(connection), steps) == newest_version(steps):
            return
    with for_writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_CHANGING,))
        version = _checked(version_of(connection), steps)  # another process may have been faster
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
            f"the store has tables of version {version}, and this release supports versions up to "
            f"{newest_version(steps)}: a newer tocsin wrote it, so use that one"
        )
    return version

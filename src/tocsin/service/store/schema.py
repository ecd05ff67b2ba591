"""The tables of the store, as the newest version has them. Times are nanoseconds since 1970 (UTC)."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType


class _Untouched(UserDefinedType[float]):
    """A column in which SQLite leaves numbers as they are: in one of type REAL, -0.0 would become 0.0."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "BLOB"


class ExactDouble(TypeDecorator[float]):
    """A double that comes back bit for bit; NULL for NaN."""

    impl = Double
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(_Untouched() if dialect.name == "sqlite" else Double())

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        return None if value is None or value != value else float(value)


# SQLite numbers rows by itself only where the type is exactly INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

# Numbers are never given twice (AUTOINCREMENT), so that nothing left over is ever taken for that of a newer signal.
signals = Table(
    "signals",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("features", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("silent_after", Double),
    Column("unit", Text),
    Column("template", Text),
    Column("created", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# No foreign key: thousands of rows come in at a time. Those of a removed signal go with the next pruning.
observations = Table(
    "observations",
    metadata,
    Column("signal", BigInteger, primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("status", SmallInteger, nullable=False),
    Column("value", ExactDouble),
    Column("forecast", ExactDouble),
    Column("low", ExactDouble),
    Column("high", ExactDouble),
    Column("p", ExactDouble),
    Column("merged", ExactDouble),
    Column("feature_p", ExactDouble),
    Column("alarm", Boolean, nullable=False),
    Column("warm", Boolean, nullable=False),
    Column("parts", Text),
    sqlite_with_rowid=False,
)

states = Table(
    "states",
    metadata,
    Column("signal", BigInteger, ForeignKey("signals.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("time", BigInteger),
    Column("taken", BigInteger, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

# What was observed is copied: observations go when they are too old, a reference stays until somebody removes it.
reference = Table(
    "reference",
    metadata,
    Column("signal", BigInteger, ForeignKey("signals.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("observations", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("observed", LargeBinary, nullable=False),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("signal", BigInteger, ForeignKey("signals.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("peak", BigInteger, nullable=False),
    Column("alarms", BigInteger, nullable=False),
    Column("duration", BigInteger, nullable=False),
    Column("p", ExactDouble),
    Column("severity", ExactDouble),
    Column("return_period", ExactDouble),
    Column("view", Text),
    Column("explanation", Text),
    Column("direction", Text),
    Column("deviation", ExactDouble),
    Column("contributions", Text, nullable=False),
    Column("open", Boolean, nullable=False),
    Column("opened", BigInteger, nullable=False),
    Column("closed", BigInteger),
    Column("ended", Text),
    Column("acknowledged", BigInteger),
    Column("acknowledged_by", Text),
    Column("snoozed_until", BigInteger),
    Column("label", Text),
    Column("note", Text),
    Column("excluded", Boolean, nullable=False),
    UniqueConstraint("signal", "kind", "start"),
    Index("incidents_open", "open"),
    Index("incidents_of_signal", "signal", "start"),
    sqlite_autoincrement=True,
)

_WAITING = text("delivered IS NULL")

outbox = Table(
    "outbox",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("sink", Text, nullable=False),
    Column("incident", BigInteger, ForeignKey("incidents.id", ondelete="CASCADE"), nullable=False),
    Column("status", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt", BigInteger, nullable=False),
    Column("delivered", BigInteger),
    Column("error", Text),
    UniqueConstraint("sink", "incident", "status"),
    Index("outbox_waiting", "sink", "id", sqlite_where=_WAITING, postgresql_where=_WAITING),
    Index("outbox_of_incident", "incident"),
    sqlite_autoincrement=True,
)

maintenance = Table(
    "maintenance",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("pattern", Text, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    sqlite_autoincrement=True,
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("patterns", Text),
    sqlite_autoincrement=True,
)

# At most one row: since when there have been tokens. It stays when the last of them is revoked.
guarded = Table("guarded", metadata, Column("since", BigInteger, primary_key=True, autoincrement=False))

audit = Table(
    "audit",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("details", Text, nullable=False),
    sqlite_autoincrement=True,
)

cursors = Table(
    "cursors",
    metadata,
    Column("source", Text, primary_key=True),
    Column("position", Text, nullable=False),
)

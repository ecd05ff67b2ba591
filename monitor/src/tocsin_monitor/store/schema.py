"""The tables of the store in their newest version. Times are nanoseconds since 1970 (UTC)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    bindparam,
    text,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.types import TypeEngine, UserDefinedType

from tocsin_monitor.fields import declared
from tocsin_monitor.store.rows import (
    AccessLogRow,
    EventRow,
    IncidentRow,
    MaintenanceRow,
    ReferenceRow,
    RefusedRow,
    StateRow,
)


class _Untouched(UserDefinedType[float]):
    """A column that SQLite stores unchanged: a REAL column would turn -0.0 into 0.0."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "BLOB"


class ExactDouble(TypeDecorator[float]):
    """A double that is read back bit for bit; NaN becomes NULL."""

    impl = Double
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(_Untouched() if dialect.name == "sqlite" else Double())

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        return None if value is None or value != value else float(value)


class CleanText(TypeDecorator[str]):
    """Text that every database accepts: input may contain NUL characters or lone surrogates, which are replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\0", "\ufffd").encode(errors="replace").decode()


# SQLite generates ids only if the type is exactly INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

# Ids are never reused (AUTOINCREMENT), so leftover rows of a removed signal never belong to a newer one. `removal.py`
# says when a removed signal is still stored, and under which name.
signals = Table(
    "signals",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("name", CleanText, nullable=False, unique=True),
    Column("features", CleanText, nullable=False),
    Column("settings", CleanText, nullable=False),
    Column("silent_after", Double),
    Column("unit", CleanText),
    Column("template", CleanText),
    Column("created", BigInteger, nullable=False),
    Column("every", Double),
    Column("aggregate", Text, nullable=False, server_default="mean"),
    Column("source", CleanText),
    Column("rules", CleanText),
    sqlite_autoincrement=True,
)

# No foreign key, because thousands of rows are inserted at a time. Pruning removes those of removed signals.
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

# The observations of signals that aggregate (`every`).
parts = Table(
    "parts",
    metadata,
    Column("signal", BigInteger, ForeignKey("signals.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Text, nullable=False),
)

# Forecasts made after the last stored state, in runs that end at `time`. They save a start from making them again.
kept_forecasts = Table(
    "kept_forecasts",
    metadata,
    Column("signal", BigInteger, ForeignKey("signals.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("kept_forecasts", LargeBinary, nullable=False),
)


def _columns(row: type, **types: Any) -> list[Column[Any]]:
    """The columns of a table for the fields of its row. Without an `id`, there is one row for each signal.

    `types` are those of some that differ.
    """
    found: list[Column[Any]] = []
    fields = declared(row)
    for field in fields:
        kind: Any = types.get(field.name) or _TYPES.get(field.type, CleanText)
        if field.name == "id":
            found.append(Column("id", _NUMBER, primary_key=True))
        elif field.name == "signal" and field.type is int:
            key: dict[str, Any] = {} if fields[0].name == "id" else {"primary_key": True, "autoincrement": False}
            found.append(Column("signal", kind, ForeignKey("signals.id", ondelete="CASCADE"), nullable=False, **key))
        else:
            found.append(Column(field.name, kind, nullable=field.optional or field.is_number))
    return found


_TYPES: dict[Any, type[TypeEngine[Any]]] = {int: BigInteger, float: ExactDouble, bool: Boolean, bytes: LargeBinary}

states = Table("states", metadata, *_columns(StateRow))

# References have a copy of their observations: old observations are removed, but a reference stays until it is removed.
reference = Table("reference", metadata, *_columns(ReferenceRow), Column("observed", LargeBinary, nullable=False))

# Incidents that belong together. What they have in common (`shared`) is a list as JSON.
events = Table("events", metadata, *_columns(EventRow), Index("events_open", "open"), sqlite_autoincrement=True)

incidents = Table(
    "incidents",
    metadata,
    *_columns(IncidentRow),
    UniqueConstraint("signal", "kind", "start"),
    Index("incidents_of_event", "event"),
    Index("incidents_open", "open"),
    Index("incidents_of_signal", "signal", "start"),
    Index("incidents_alike", "signal", "alike", "start"),
    sqlite_autoincrement=True,
)

_WAITING = text("delivered IS NULL")

outbox = Table(
    "outbox",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("sink", CleanText, nullable=False),
    Column("incident", BigInteger, ForeignKey("incidents.id", ondelete="CASCADE"), nullable=False),
    Column("status", CleanText, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt", BigInteger, nullable=False),
    Column("delivered", BigInteger),
    Column("error", CleanText),
    Column("event", BigInteger),
    # When the sink got it last, and how often there was something new to tell since it was first put here.
    Column("told", BigInteger),
    Column("news", Integer, nullable=False, server_default="0"),
    UniqueConstraint("sink", "incident", "status"),
    Index("outbox_waiting", "sink", "id", sqlite_where=_WAITING, postgresql_where=_WAITING),
    Index("outbox_of_incident", "incident"),
    Index("outbox_of_event", "event"),
    sqlite_autoincrement=True,
)

maintenance = Table("maintenance", metadata, *_columns(MaintenanceRow, duration=Double), sqlite_autoincrement=True)

# Signal templates that people changed, by pattern. The rest of a template is JSON, which the settings' models check.
signal_templates = Table(
    "signal_templates",
    metadata,
    Column("pattern", CleanText, primary_key=True),
    Column("template", CleanText, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("changed_by", CleanText, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("name", CleanText, nullable=False, unique=True),
    Column("role", CleanText, nullable=False),
    Column("hash", CleanText, nullable=False, unique=True),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("patterns", Text),
    sqlite_autoincrement=True,
)

# At most one row: when the first token was created. It stays after the last token is revoked.
guarded = Table("guarded", metadata, Column("since", BigInteger, primary_key=True, autoincrement=False))

access_log = Table("access_log", metadata, *_columns(AccessLogRow), sqlite_autoincrement=True)

cursors = Table(
    "cursors",
    metadata,
    Column("source", CleanText, primary_key=True),
    Column("position", CleanText, nullable=False),
)

# Observations that the store rejected, or whose time was wrong. They are listed here, so nothing disappears silently.
refused = Table("refused", metadata, *_columns(RefusedRow), sqlite_autoincrement=True)


def matching(columns: ReadOnlyColumnCollection[str, Column[Any]], **given: Any) -> list[ColumnElement[bool]]:
    """The conditions that columns have these values; None stands for any."""
    return [columns[name] == value for name, value in given.items() if value is not None]


def newest_first(wanted: Select[Any], number: Column[int], before_id: int | None, limit: int) -> Select[Any]:
    """The newest rows by their numbers, only those before one if it is given."""
    if before_id is not None:
        wanted = wanted.where(number < before_id)
    return wanted.order_by(number.desc()).limit(limit)


def among(column: Column[int], numbers: Collection[int]) -> ColumnElement[bool]:
    """Whether a column is one of these numbers.

    They are written into the statement: as parameters, databases take at most 32,766 or 65,535 of them.
    """
    return column.in_(bindparam(None, list(numbers), expanding=True, literal_execute=True))

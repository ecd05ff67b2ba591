"""Changes of the store."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any

from sqlalchemy import Table, bindparam, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import ReturningInsert, Update

from tocsin_monitor.access_log import AccessEntry
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import VerdictColumns
from tocsin_monitor.rules import NO_RULES
from tocsin_monitor.schedules import Schedule
from tocsin_monitor.store import encoding, removal, schema
from tocsin_monitor.store.encoding import insert_observations, update_verdicts
from tocsin_monitor.store.events import EventWriter
from tocsin_monitor.store.reader import ALIKE, EARLIER_ALIKE, StoreReader, those_alike
from tocsin_monitor.store.removal import RemovalWriter
from tocsin_monitor.store.rows import (
    IncidentFacts,
    IncidentRow,
    ObservationColumns,
    ObservationRow,
    PartRow,
    ReferenceRow,
    Refused,
    SignalRow,
    StateRow,
    TemplateRow,
)
from tocsin_monitor.tokens import Role

# What identifies an incident, and when it was first stored: these never change.
_IDENTITY = frozenset({"signal", "kind", "start"})
_FIRST = _IDENTITY | {"opened"}
# What is not so of a new incident.
_FLAGS = ("holds", "suppressed", "excluded", "withheld")
# The most entries of the access log, and after how many new ones the oldest are removed.
MOST_LOGGED = 200_000
_LOG_PIECE = 1000


class StoreWriter(StoreReader, EventWriter, RemovalWriter):
    """Reads and changes the store in one transaction."""

    def add_signal(
        self, name: str, features: Sequence[str], settings: Mapping[str, Any], *, created: int, **others: Any
    ) -> SignalRow:
        """Add a signal; `others` are further fields of its row."""
        if self.signal(name) is not None:
            raise RefusedError(f"signal {name!r} already exists")
        missing = dict.fromkeys(("silent_after", "unit", "template"))
        row = SignalRow(0, name, tuple(features), dict(settings), created=created, **{**missing, **others})
        values = {field.name: getattr(row, field.name) for field in fields(SignalRow) if field.name != "id"}
        return replace(row, id=self._insert(schema.signals, _texts(values)))

    def change_signal(self, signal_id: int, **changes: Any) -> None:
        """Change fields of a signal: features, settings, silent_after, unit, template, source, rules."""
        self._change(schema.signals, signal_id, _texts(changes))

    def remove_signal(self, signal_id: int) -> None:
        """Remove a signal and everything that belongs to it. If it has many observations, pruning removes the rest."""
        if not self._delete(schema.signals, id=signal_id):  # states, incidents and messages go with it
            raise UnknownError(f"there is no signal with number {signal_id}")
        removal.remove_empty_events(self.connection)
        removal.remove_observations(self.connection, [(signal_id, removal.ALL)], removal.PIECE)

    def add_observations(self, rows: Iterable[ObservationRow]) -> None:
        """Add observations. None of them may be stored already."""
        insert_observations(self.connection, [encoding.observation_to_columns(row) for row in rows])

    def add_parts(self, rows: Sequence[PartRow]) -> None:
        """Add observations to aggregate. None of them may be stored already."""
        if rows:
            given = [
                {"signal": row.signal, "time": row.time, "value": encoding.values_to_text(row.values)} for row in rows
            ]
            self.connection.execute(insert(schema.parts), given)

    def remove_parts(self, signal_id: int, before: int) -> None:
        columns = schema.parts.c
        self.connection.execute(delete(schema.parts).where(columns.signal == signal_id, columns.time < before))

    def judge_observations(self, signal_id: int, observations: ObservationColumns, verdicts: VerdictColumns) -> None:
        """Store the verdicts on a signal's observations that are already stored."""
        update_verdicts(self.connection, signal_id, observations, verdicts)

    def refuse(self, rows: Sequence[Refused]) -> None:
        if rows:
            self.connection.execute(insert(schema.refused), [asdict(row) for row in rows])

    def take_out(self, signal: SignalRow, after: int, reason: str, now: int) -> int:
        """Remove a signal's observations after a time, and list them as refused; returns how many."""
        taken, last = 0, after
        while rows := self.observations(signal.id, after=last, limit=removal.PIECE):
            last = rows[-1].time
            self.refuse(
                [
                    Refused(signal.name, row.time, encoding.values_to_text(row.judged.value), "", reason, now)
                    for row in rows
                ]
            )
            taken += len(rows)
        columns = schema.observations.c
        self.connection.execute(delete(schema.observations).where(columns.signal == signal.id, columns.time > after))
        return taken

    def add_kept_forecasts(self, rows: Sequence[tuple[int, int, bytes]]) -> None:
        """Store forecasts as (signal, time of the last observation, forecasts), until the next state replaces them."""
        if rows:
            names = ("signal", "time", "kept_forecasts")
            self.connection.execute(insert(schema.kept_forecasts), [dict(zip(names, row, strict=True)) for row in rows])

    def put_state(self, signal_id: int, time: int | None, taken: int, state: bytes) -> None:
        self.put_states([StateRow(signal_id, time, taken, state)])

    def put_states(self, rows: Sequence[StateRow]) -> None:
        """Store the states of several signals' detectors, each in place of the previous one."""
        if rows:
            self._remove_kept_forecasts([row.signal for row in rows])
            self.connection.execute(_PUT_STATE, [asdict(row) for row in rows])

    def remove_state(self, signal_id: int) -> None:
        """Remove the state of a signal's detector and the forecasts made after it."""
        self._delete(schema.states, signal=signal_id)
        self._remove_kept_forecasts([signal_id])

    def _remove_kept_forecasts(self, signal_ids: Sequence[int]) -> None:
        columns = schema.kept_forecasts.c
        self.connection.execute(delete(schema.kept_forecasts).where(columns.signal.in_(signal_ids)))

    def put_reference(self, reference: ReferenceRow, times: Sequence[int], values: Sequence[tuple[float, ...]]) -> None:
        """Store a signal's reference with a copy of its observations, in place of the previous one."""
        self.remove_reference(reference.signal)
        columns = {**asdict(reference), "observed": encoding.values_to_bytes(times, values)}
        self.connection.execute(insert(schema.reference).values(columns))

    def remove_reference(self, signal_id: int) -> None:
        self._delete(schema.reference, signal=signal_id)

    def put_incident(self, incident: IncidentFacts) -> int:
        """Store or update an incident and return its number. What people did about it stays."""
        facts = {field.name: getattr(incident, field.name) for field in fields(IncidentFacts)}
        facts = encoding.incident_to_columns(facts)
        facts["occurrence"], facts["first_alike"] = 1, None
        if incident.alike is not None:
            count, facts["first_alike"] = self.connection.execute(_EARLIER, those_alike(incident)).one()
            facts["occurrence"] = 1 + count
        which = {f"of_{name}": facts[name] for name in _IDENTITY}
        known = self.connection.execute(_KNOWN, which).one_or_none()
        if known is None:
            return self._insert(schema.incidents, {**facts, **dict.fromkeys(_FLAGS, False)})
        news = {name: value for name, value in facts.items() if name not in _FIRST}
        if news["closed"] is not None and known.closed is not None:
            news["closed"] = known.closed  # this update repeats a known one, as after a restart
        self._change(schema.incidents, known.id, news)
        return int(known.id)

    def withdraw_labels(self, incident: IncidentRow) -> None:
        """Let no label of an incident like this one hold any longer."""
        change = update(schema.incidents).where(*ALIKE, schema.incidents.c.holds).values(holds=False)
        self.connection.execute(change, those_alike(incident))

    def remove_imported_incidents(self, signal_id: int, first: int, last: int) -> None:
        """Remove incidents of imported history from one time to another, except those that people commented on."""
        columns = schema.incidents.c
        untouched = columns.label.is_(None), columns.note.is_(None), columns.acknowledged.is_(None)
        within = columns.signal == signal_id, columns.start >= first, columns.start <= last
        self.connection.execute(delete(schema.incidents).where(*within, columns.ended == "imported", *untouched))

    def prolong_incidents(self, lasted: Sequence[tuple[int, int, int]]) -> None:
        """Extend open incidents, given as (number, new end, new duration in observations)."""
        if lasted:
            news = [{"of_id": number, "end": end, "duration": many} for number, end, many in lasted]
            self.connection.execute(_update(schema.incidents), news)

    def change_incident(self, incident_id: int, **changes: Any) -> None:
        """Change fields of an incident, such as `acknowledged` or `label`, but not those that identify it."""
        self._change(schema.incidents, incident_id, encoding.incident_to_columns(changes))

    def mark_delivered(
        self, ids: Collection[int], now: int, *, news: Mapping[int, int] = {}, update_every: int = 0
    ) -> None:
        """Record that the sinks received these messages, with `news` as far as there were any.

        A message with newer ones is due again after `update_every`.
        """
        columns = schema.outbox.c
        delivered = {"delivered": now, "told": now, "attempts": columns.attempts + 1, "error": None}
        self.connection.execute(update(schema.outbox).where(columns.id.in_(list(ids))).values(delivered))
        for number, told in news.items():
            newer = columns.id == number, columns.news > told
            again = {"delivered": None, "attempts": 0, "next_attempt": now + update_every}
            self.connection.execute(update(schema.outbox).where(*newer).values(again))

    def drop_messages(self, sink: str, incident: int) -> None:
        """Remove the waiting messages about an incident for a sink: then it is told nothing of its end either."""
        columns = schema.outbox.c
        which = columns.sink == sink, columns.incident == incident, columns.delivered.is_(None)
        self.connection.execute(delete(schema.outbox).where(*which))

    def skip_messages(self, ids: Collection[int], now: int) -> None:
        """The sinks do not want these messages."""
        change = update(schema.outbox).where(schema.outbox.c.id.in_(ids))
        self.connection.execute(change.values(delivered=now, attempts=0))

    def hold_messages(self, until: Mapping[int, int]) -> None:
        """Deliver these messages, by their numbers, not before a time."""
        for number, moment in until.items():
            self._change(schema.outbox, number, {"next_attempt": moment})

    def mark_failed(self, outbox_id: int, error: str, next_attempt: int) -> None:
        """Record that a message could not be delivered. It is tried again at `next_attempt`."""
        columns = schema.outbox.c
        failed = {"attempts": columns.attempts + 1, "error": error, "next_attempt": next_attempt}
        changed = self.connection.execute(update(schema.outbox).where(columns.id == outbox_id).values(failed))
        if not changed.rowcount:
            raise UnknownError(f"there is nothing with number {outbox_id} in outbox")

    def add_maintenance(
        self, pattern: str, start: int, end: int, reason: str, created_by: str, recurs: Schedule | None = None
    ) -> int:
        window = {"pattern": pattern, "start": start, "end": end, "reason": reason, "created_by": created_by}
        if recurs is not None:
            window |= {"schedule": recurs.text, "duration": recurs.duration, "time_zone": recurs.time_zone}
        return self._insert(schema.maintenance, window)

    def remove_maintenance(self, maintenance_id: int) -> None:
        if not self._delete(schema.maintenance, id=maintenance_id):
            raise UnknownError(f"there is no maintenance window with number {maintenance_id}")

    def put_template(self, row: TemplateRow) -> None:
        self._delete(schema.signal_templates, pattern=row.pattern)
        columns = {**asdict(row), "template": json.dumps(row.template)}
        self.connection.execute(insert(schema.signal_templates).values(columns))

    def remove_template(self, pattern: str) -> None:
        if not self._delete(schema.signal_templates, pattern=pattern):
            raise UnknownError(f"there is no stored template {pattern!r}")

    def add_token(
        self, name: str, role: Role, hash: str, created: int, expires: int | None = None,  # noqa: A002
        patterns: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Add a token. With patterns, it is limited to signals whose names match one of them."""
        limits = encoding.names_to_text(patterns) if patterns else None
        token = {
            "name": name, "role": role, "hash": hash, "created": created, "expires": expires, "patterns": limits,
        }  # fmt: skip
        if self.guarded_since() is None:
            self.connection.execute(insert(schema.guarded).values(since=created))
        try:
            with self.connection.begin_nested():
                self._insert(schema.tokens, token)
        except IntegrityError as error:
            raise RefusedError(f"a token named {name!r} already exists") from error

    def add_to_access_log(self, entry: AccessEntry, now: int) -> None:
        """Add an entry to the access log. Only the newest `MOST_LOGGED` entries are kept."""
        names = ("who", "action", "target", "details")
        number = self._insert(schema.access_log, {"time": now, **{name: getattr(entry, name) for name in names}})
        if number % _LOG_PIECE == 0:
            self.connection.execute(delete(schema.access_log).where(schema.access_log.c.id <= number - MOST_LOGGED))

    def remove_token(self, name: str) -> None:
        if not self._delete(schema.tokens, name=name):
            raise UnknownError(f"there is no token named {name!r}")

    def put_cursor(self, source: str, position: str) -> None:
        """Store the position up to which a source has read."""
        columns = schema.cursors.c
        moved = self.connection.execute(
            update(schema.cursors).where(columns.source == source).values(position=position)
        )
        if not moved.rowcount:
            self.connection.execute(insert(schema.cursors).values(source=source, position=position))

    def remove_cursor(self, source: str) -> None:
        self._delete(schema.cursors, source=source)

    def remove_cursors(self, first: str, last: str) -> None:
        """Remove the cursors from one name up to, but not including, another."""
        source = schema.cursors.c.source
        self.connection.execute(delete(schema.cursors).where(source >= first, source < last))

    def _insert(self, table: Table, values: Mapping[str, Any]) -> int:
        return int(self.connection.execute(_insert(table), dict(values)).scalar_one())

    def _change(self, table: Table, number: int, values: Mapping[str, Any]) -> None:
        if values and not self.connection.execute(_update(table), {**values, "of_id": number}).rowcount:
            raise UnknownError(f"there is nothing with number {number} in {table.name}")

    def _delete(self, table: Table, **where: Any) -> int:
        which = (table.c[name] == value for name, value in where.items())
        return int(self.connection.execute(delete(table).where(*which)).rowcount)


# A state is mostly as long as the one before: SQLite then writes only those of its pages that differ.
_PUT_STATE = text(
    "INSERT INTO states (signal, time, taken, state) VALUES (:signal, :time, :taken, :state) "
    "ON CONFLICT (signal) DO UPDATE SET time = excluded.time, taken = excluded.taken, state = excluded.state"
)
# Statements that run for every incident are built once: that takes several times as long as to run one.
_EARLIER = select(func.count(), func.min(schema.incidents.c.start)).where(*EARLIER_ALIKE)
_KNOWN = select(schema.incidents.c.id, schema.incidents.c.closed).where(
    *(schema.incidents.c[name] == bindparam(f"of_{name}") for name in sorted(_IDENTITY))
)


@cache
def _insert(table: Table) -> ReturningInsert[Any]:
    """Insert a row; returns its number."""
    return insert(table).returning(table.c.id)


@cache
def _update(table: Table) -> Update:
    """Change the row with the number `of_id`."""
    return update(table).where(table.c.id == bindparam("of_id"))


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a signal as columns."""
    texts = dict(values)
    if "features" in texts:
        texts["features"] = encoding.names_to_text(texts["features"])
    if "settings" in texts:
        texts["settings"] = json.dumps(dict(texts["settings"]))
    if "rules" in texts:
        given = texts["rules"]
        texts["rules"] = None if given == NO_RULES else given.model_dump_json(exclude_defaults=True)
    return texts

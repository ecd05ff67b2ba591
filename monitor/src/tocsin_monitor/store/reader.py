"""Queries of the store."""

import heapq
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypedDict, TypeVar, Unpack

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, case, func, not_, or_, select, tuple_

from tocsin.detection import MUCH_SEVERER
from tocsin_monitor.observations import Status
from tocsin_monitor.rules import NO_RULES, SignalRules
from tocsin_monitor.store import encoding, schema
from tocsin_monitor.store.events import EventReader, incident_of
from tocsin_monitor.store.removal import REMOVED, RemovalReader, name_of
from tocsin_monitor.store.rows import (
    DAMAGE,
    AccessLogRow,
    IncidentFacts,
    IncidentRow,
    Kind,
    MaintenanceRow,
    ObservationColumns,
    ObservationRow,
    OutboxRow,
    PartRow,
    ReferenceRow,
    RefusedRow,
    SignalRow,
    StateRow,
    TemplateRow,
    TokenRow,
)
from tocsin_monitor.store.schema import among, matching, newest_first
from tocsin_monitor.tokens import Role

T = TypeVar("T")

# Observations looked up per statement.
_LOOKED_UP = 500


class Which(TypedDict, total=False):
    """Which incidents are wanted: those for which all that is given is so.

    None ended before `since` or started after `until`; their numbers are lower than `before_id`.
    """

    number: int | None
    signal_id: int | None
    signal_ids: Collection[int] | None
    open: bool | None
    kind: Kind | None
    since: int | None
    until: int | None
    alike: str | None
    suppressed: bool | None
    withheld: bool | None
    before_id: int | None


class StoreReader(EventReader, RemovalReader):
    """Reads in one transaction. If the database fails, the block of the transaction raises StoreError."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def signals(self, numbers: Collection[int] | None = None) -> list[SignalRow]:
        """All signals, or those with these numbers even if they are removed, in the order of their creation."""
        chosen = not_(REMOVED) if numbers is None else among(schema.signals.c.id, numbers)
        wanted = select(schema.signals).where(chosen).order_by(schema.signals.c.id)
        return [_signal(row) for row in self.connection.execute(wanted)]

    def signal_names(self) -> dict[int, str]:
        """The names of all signals by their numbers, removed ones included; quicker than all of their rows."""
        columns = schema.signals.c
        return {number: name_of(name) for number, name in self.connection.execute(select(columns.id, columns.name))}

    def signal(self, name: str) -> SignalRow | None:
        row = self.connection.execute(select(schema.signals).where(schema.signals.c.name == name)).one_or_none()
        return None if row is None else _signal(row)

    def observations_at(self, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], ObservationRow]:
        """The stored ones of these observations, which are given as (signal, time)."""
        names = ", ".join(f"o.{name}" for name in schema.observations.c.keys())  # noqa: SIM118
        place = "(?, ?)" if self.connection.dialect.name == "sqlite" else "(%s, %s)"
        found = {}
        pairs = list(pairs)
        for first in range(0, len(pairs), _LOOKED_UP):
            some = pairs[first : first + _LOOKED_UP]
            # Plain SQL for speed: this runs for every batch.
            wanted = ", ".join([place] * len(some))
            rows = self.connection.exec_driver_sql(
                f"WITH wanted(signal, time) AS (VALUES {wanted}) SELECT {names} FROM wanted"  # noqa: S608
                " JOIN observations o ON o.signal = wanted.signal AND o.time = wanted.time",
                tuple(chain.from_iterable(some)),
            )
            for row in rows:
                found[row[0], row[1]] = encoding.observation_from_columns(row)
        return found

    def observations(
        self,
        signal_id: int,
        *,
        after: int | None = None,
        until: int | None = None,
        statuses: Collection[Status] | None = None,
        limit: int,
        newest: bool = False,
    ) -> list[ObservationRow]:
        """Observations after one time and up to another, by time: the first `limit`, or the last if `newest`."""
        given = {"after": after, "until": until}
        limits = {name: time for name, time in given.items() if time is not None}
        wanted = _observations(tuple(limits), None if statuses is None else tuple(map(int, statuses)), newest)
        which = {"of_signal": signal_id, "most": limit, **limits}
        rows = [encoding.observation_from_columns(row) for row in self.connection.execute(wanted, which)]
        return rows[::-1] if newest else rows

    def observation_columns(
        self, signal_id: int, *, after: int | None, until: int | None, statuses: Collection[Status], limit: int
    ) -> ObservationColumns:
        """What `observations` returns without verdicts, as columns: long histories need no object for each."""
        # Plain SQL for speed.
        mark = "?" if self.connection.dialect.name == "sqlite" else "%s"
        given = {"time >": after, "time <=": until}
        within = "".join(f" AND {name} {mark}" for name, time in given.items() if time is not None)
        numbers = ", ".join(str(int(status)) for status in statuses)
        rows = self.connection.exec_driver_sql(
            f"SELECT time, status, value, parts FROM observations WHERE signal = {mark}{within}"  # noqa: S608
            f" AND status IN ({numbers}) ORDER BY time LIMIT {mark}",
            (signal_id, *(time for time in given.values() if time is not None), limit),
        ).all()
        return encoding.observation_columns(rows)

    def parts(self, signal_id: int, after: int | None) -> list[PartRow]:
        """The observations that a signal aggregates, after a time."""
        columns = schema.parts.c
        wanted = select(schema.parts).where(columns.signal == signal_id)
        if after is not None:
            wanted = wanted.where(columns.time > after)
        rows = self.connection.execute(wanted.order_by(columns.time))
        return [PartRow(row.signal, row.time, encoding.values_from_text(row.value)) for row in rows]

    def parts_at(self, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """The pairs (signal, time) that have a stored part."""
        columns = schema.parts.c
        found: set[tuple[int, int]] = set()
        for first in range(0, len(pairs), _LOOKED_UP):
            some = pairs[first : first + _LOOKED_UP]
            wanted = select(columns.signal, columns.time).where(tuple_(columns.signal, columns.time).in_(some))
            found.update((signal, time) for signal, time in self.connection.execute(wanted))
        return found

    def newest_time(self, signal_id: int) -> int | None:
        columns = schema.observations.c
        return self.connection.execute(select(func.max(columns.time)).where(columns.signal == signal_id)).scalar()

    def newest_observation(self) -> int | None:
        """The time of the newest observation of all signals."""
        observations, signals = schema.observations.c, schema.signals.c
        # One index lookup per signal: the table may have a hundred million rows.
        of_signal = select(func.max(observations.time)).where(observations.signal == signals.id).scalar_subquery()
        times = select(of_signal.label("time")).select_from(schema.signals).subquery()
        return self.connection.execute(select(func.max(times.c.time))).scalar()

    def time_before_newest(
        self, signal_id: int, count: int, statuses: Collection[Status], *, before: int | None = None
    ) -> int | None:
        """The time of the observation just before the newest `count` of a signal; None if there are no more than that.

        With `before`, count only observations before that time.
        """
        columns = schema.observations.c
        wanted = select(columns.time).where(
            columns.signal == signal_id, columns.status.in_([int(status) for status in statuses])
        )
        if before is not None:
            wanted = wanted.where(columns.time < before)
        return self.connection.execute(wanted.order_by(columns.time.desc()).offset(count).limit(1)).scalar()

    def count_observations(self, signal_id: int, after: int | None, statuses: Collection[Status]) -> int:
        columns = schema.observations.c
        wanted = select(func.count()).where(
            columns.signal == signal_id, columns.status.in_([int(status) for status in statuses])
        )
        if after is not None:
            wanted = wanted.where(columns.time > after)
        return int(self.connection.execute(wanted).scalar_one())

    def states(self, signal_ids: Collection[int]) -> dict[int, StateRow]:
        """The states of these signals, for those that have one."""
        states = schema.states
        rows = self._rows(StateRow, select(states).where(states.c.signal.in_(signal_ids)))
        return {row.signal: row for row in rows}

    def kept_forecasts(self, signal_ids: Collection[int]) -> dict[int, list[bytes]]:
        """The stored forecasts made after the states of these signals, in the order of the observations."""
        columns = schema.kept_forecasts.c
        wanted = select(columns.signal, columns.kept_forecasts).where(columns.signal.in_(signal_ids))
        found: dict[int, list[bytes]] = {number: [] for number in signal_ids}
        for signal, kept_forecasts in self.connection.execute(wanted.order_by(columns.signal, columns.time)):
            found[signal].append(kept_forecasts)
        return found

    def states_times(self) -> dict[int, int | None]:
        """For each signal with a state, the time of the newest observation that the state includes."""
        rows = self.connection.execute(select(schema.states.c.signal, schema.states.c.time))
        return {signal: time for signal, time in rows}  # noqa: C416

    def references(self) -> list[ReferenceRow]:
        columns = [column for column in schema.reference.c if column.name != "observed"]
        return self._rows(ReferenceRow, select(*columns).order_by(schema.reference.c.signal))

    def reference_values(self, signal_id: int) -> tuple[list[int], list[tuple[float, ...]]]:
        """The times and values of a signal's reference, by time; empty if it has no reference."""
        columns = schema.reference.c
        wanted = select(columns.observed, columns.observations).where(columns.signal == signal_id)
        row = self.connection.execute(wanted).one_or_none()
        return ([], []) if row is None else encoding.values_from_bytes(row.observed, row.observations)

    def incidents(self, *, limit: int, **which: Unpack[Which]) -> list[IncidentRow]:
        """Incidents, newest first."""
        wanted = select(schema.incidents).where(*_conditions(which))
        rows = self.connection.execute(wanted.order_by(schema.incidents.c.id.desc()).limit(limit))
        return [incident_of(row) for row in rows]

    def rarest_incidents(
        self, seconds: Mapping[int, float], *, limit: int, **which: Unpack[Which]
    ) -> list[IncidentRow]:
        """Incidents by how rare they are, the rarest first, as budgets rank them.

        `seconds` are those between two observations of a signal, by its number. Without them, an incident comes last.
        """
        columns = schema.incidents.c
        facts = select(columns.id, columns.signal, columns.rarity, columns.severity).where(*_conditions(which))

        def rarity(row: Any) -> tuple[float, ...]:
            pace = seconds.get(row.signal, 0.0)
            rarity = -math.inf if row.rarity is None or not pace > 0 else row.rarity + math.log(pace)
            return rarity, row.severity or 0.0, row.id

        chosen = [row.id for row in heapq.nlargest(limit, self.connection.execute(facts), rarity)]
        rows = self.connection.execute(select(schema.incidents).where(among(columns.id, chosen)))
        found = {row.id: incident_of(row) for row in rows}
        return [found[number] for number in chosen]

    def count_incidents(self, **which: Unpack[Which]) -> int:
        wanted = select(func.count()).select_from(schema.incidents).where(*_conditions(which))
        return int(self.connection.execute(wanted).scalar_one())

    def incident(self, incident_id: int) -> IncidentRow | None:
        row = self.connection.execute(_INCIDENT, {"number": incident_id}).one_or_none()
        return None if row is None else incident_of(row)

    def label_holder(self, incident: IncidentFacts) -> IncidentRow | None:
        """The last incident like this one, before it, whose label holds."""
        row = self.connection.execute(_LABEL_HOLDER, those_alike(incident)).one_or_none()
        return None if row is None else incident_of(row)

    def open_incidents(self) -> list[IncidentRow]:
        columns = schema.incidents.c
        wanted = select(schema.incidents).where(columns.open == True).order_by(columns.id)  # noqa: E712
        return [incident_of(row) for row in self.connection.execute(wanted)]

    def count_open_incidents(self) -> int:
        wanted = select(func.count()).select_from(schema.incidents).where(schema.incidents.c.open == True)  # noqa: E712
        return int(self.connection.execute(wanted).scalar_one())

    def outbox_due(self, sink: str, now: int, limit: int) -> list[OutboxRow]:
        """The messages to send to a sink now, in order, new ones first.

        "resolved" is sent only after "firing", and "firing" is not sent while all open incidents of the event are
        snoozed.
        """
        outbox, firing, incidents = schema.outbox, schema.outbox.alias("firing"), schema.incidents.c
        # Looked up once, not for each message: thousands may wait for a sink that is down.
        asleep = func.min(func.coalesce(incidents.snoozed_until, 0)) > now
        going_on = select(incidents.event).where(incidents.open, incidents.event.is_not(None))
        events_asleep = going_on.group_by(incidents.event).having(asleep)
        incidents_asleep = select(incidents.id).where(incidents.open, incidents.snoozed_until > now)
        snoozed = case(
            (outbox.c.event.is_(None), outbox.c.incident.in_(incidents_asleep)),
            else_=outbox.c.event.in_(events_asleep),
        )
        not_sent_yet = select(firing.c.id).where(
            firing.c.sink == outbox.c.sink,
            firing.c.incident == outbox.c.incident,
            firing.c.status == "firing",
            firing.c.delivered.is_(None),
            firing.c.told.is_(None),
        )
        wanted = select(outbox).where(
            outbox.c.sink == sink,
            outbox.c.delivered.is_(None),
            outbox.c.next_attempt <= now,
            or_(
                and_(outbox.c.status == "firing", not_(snoozed)),
                and_(outbox.c.status == "resolved", not_(not_sent_yet.exists())),
            ),
        )
        return self._rows(OutboxRow, wanted.order_by(outbox.c.attempts, outbox.c.id).limit(limit))

    def outbox_waiting(self, now: int | None = None) -> dict[str, int]:
        """The number of waiting messages for each sink that has any.

        With `now`, those that a sink's rules hold back until later do not count.
        """
        columns = schema.outbox.c
        waiting = select(columns.sink, func.count()).where(columns.delivered.is_(None)).group_by(columns.sink)
        if now is not None:
            waiting = waiting.where(or_(columns.attempts > 0, columns.next_attempt <= now))
        return {sink: count for sink, count in self.connection.execute(waiting)}  # noqa: C416

    def stuck_messages(self) -> dict[str, tuple[int, int, str]]:
        """For each sink with messages that it refused so far: how many, since when, and why it refused the newest."""
        columns = schema.outbox.c
        tried = columns.delivered.is_(None), columns.attempts > 0
        last = func.max(columns.id).label("last")
        numbers = func.count().label("count"), func.min(columns.created).label("since"), last
        groups = select(columns.sink, *numbers).where(*tried).group_by(columns.sink).subquery()
        wanted = select(groups.c.sink, groups.c.count, groups.c.since, columns.error)
        rows = self.connection.execute(wanted.join_from(groups, schema.outbox, columns.id == groups.c.last))
        return {sink: (count, since, error or "") for sink, count, since, error in rows}

    def delivered_firing(self, sink: str) -> list[int]:
        """The incidents of which the sink was told and that go on, or their events do."""
        outbox, incidents, events = schema.outbox.c, schema.incidents.c, schema.events.c
        told = and_(outbox.sink == sink, outbox.status == "firing", outbox.told.is_not(None))
        wanted = select(incidents.id).join(schema.outbox, outbox.incident == incidents.id)
        wanted = wanted.join(schema.events, events.id == incidents.event, isouter=True)
        going_on = func.coalesce(events.open, incidents.open)
        return list(self.connection.execute(wanted.where(told, going_on).order_by(incidents.id)).scalars())

    def maintenance(self) -> list[MaintenanceRow]:
        windows = schema.maintenance
        return self._rows(MaintenanceRow, select(windows).order_by(windows.c.start, windows.c.id))

    def templates(self) -> list[TemplateRow]:
        rows = self.connection.execute(select(schema.signal_templates).order_by(schema.signal_templates.c.pattern))
        return [TemplateRow(row.pattern, json.loads(row.template), row.changed, row.changed_by) for row in rows]

    def tokens(self) -> list[TokenRow]:
        """All tokens, by name, including expired ones."""
        rows = self.connection.execute(select(schema.tokens).order_by(schema.tokens.c.name))
        patterns = encoding.names_from_text
        return [
            TokenRow(**{**row._mapping, "role": Role(row.role), "patterns": patterns(row.patterns or "[]")})
            for row in rows
        ]

    def guarded_since(self) -> int | None:
        """When the first token was created, even if it was revoked since; None if there never was one."""
        return self.connection.execute(select(schema.guarded.c.since)).scalar()

    def access_log(self, *, before_id: int | None = None, who: str | None = None, limit: int) -> list[AccessLogRow]:
        """The access log, newest first."""
        columns = schema.access_log.c
        wanted = select(schema.access_log).where(*matching(columns, who=who))
        return self._rows(AccessLogRow, newest_first(wanted, columns.id, before_id, limit))

    def cursor(self, source: str) -> str | None:
        """The position up to which a source has read."""
        wanted = select(schema.cursors.c.position).where(schema.cursors.c.source == source)
        return self.connection.execute(wanted).scalar_one_or_none()

    def cursors(self, prefix: str) -> dict[str, str]:
        """The positions of all cursors whose names have this prefix, by name."""
        wanted = select(schema.cursors).where(schema.cursors.c.source.startswith(prefix, autoescape=True))
        return {row.source: row.position for row in self.connection.execute(wanted)}

    def refused(self, *, limit: int, before_id: int | None = None) -> list[RefusedRow]:
        """Refused observations, newest first."""
        wanted = newest_first(select(schema.refused), schema.refused.c.id, before_id, limit)
        return self._rows(RefusedRow, wanted)

    def _rows(self, kind: type[T], wanted: Select[Any]) -> list[T]:
        """The rows of a query whose columns are the fields of the dataclass."""
        return [kind(**row._mapping) for row in self.connection.execute(wanted)]


def _conditions(which: Which) -> list[ColumnElement[bool]]:
    columns = schema.incidents.c
    equal = {name: which.get(name) for name in ("open", "kind", "alike", "suppressed", "withheld")}
    found = matching(columns, id=which.get("number"), signal=which.get("signal_id"), **equal)
    if (signals := which.get("signal_ids")) is not None:
        found.append(among(columns.signal, signals))
    if (since := which.get("since")) is not None:
        found.append(or_(columns.open == True, columns.end >= since))  # noqa: E712
    if (until := which.get("until")) is not None:
        found.append(columns.start <= until)
    if (before := which.get("before_id")) is not None:
        found.append(columns.id < before)
    return found


@cache
def _observations(limits: tuple[str, ...], statuses: tuple[int, ...] | None, newest: bool) -> Select[Any]:
    """Observations of the signal `of_signal`, at most `most`; `limits` are "after", "until", both or none.

    A start reads some of every signal. To build the statement takes longer than to read them.
    """
    columns = schema.observations.c
    within = {"after": columns.time > bindparam("after"), "until": columns.time <= bindparam("until")}
    wanted = select(schema.observations).where(
        columns.signal == bindparam("of_signal"), *(within[one] for one in limits)
    )
    if statuses is not None:
        wanted = wanted.where(columns.status.in_(statuses))
    return wanted.order_by(columns.time.desc() if newest else columns.time).limit(bindparam("most"))


# Statements that run for every incident are built once: that takes several times as long as to run one.
_INCIDENT = select(schema.incidents).where(schema.incidents.c.id == bindparam("number"))
#: Which incidents have the same view, main feature and direction as `those_alike` says.
ALIKE = schema.incidents.c.signal == bindparam("of_signal"), schema.incidents.c.alike == bindparam("kind_alike")
#: Which incidents before it an incident is like: it is not much severer than they were.
EARLIER_ALIKE = (
    *ALIKE,
    schema.incidents.c.start < bindparam("before"),
    schema.incidents.c.severity >= bindparam("least"),
)
_LABEL_HOLDER = (
    select(schema.incidents)
    .where(*EARLIER_ALIKE, schema.incidents.c.holds)
    .order_by(schema.incidents.c.start.desc())
    .limit(1)
)


def those_alike(incident: IncidentFacts) -> dict[str, Any]:
    """What `ALIKE` and `EARLIER_ALIKE` mean for this incident."""
    least = incident.severity / MUCH_SEVERER
    return {
        "of_signal": incident.signal, "kind_alike": incident.alike, "before": incident.start, "least": least,
    }  # fmt: skip


def _signal(row: Row[Any]) -> SignalRow:
    fields = dict(row._mapping)
    fields["name"] = name_of(fields["name"])
    try:
        fields["features"] = encoding.names_from_text(fields["features"])
        fields["settings"] = json.loads(fields["settings"])
        fields["rules"] = NO_RULES if fields["rules"] is None else SignalRules.model_validate_json(fields["rules"])
        numbers = [fields[name] for name in ("silent_after", "every") if fields[name] is not None]
        if not isinstance(fields["settings"], dict) or not all(isinstance(one, str) for one in fields["features"]):
            raise TypeError("settings must be an object, and features names")
        if not all(isinstance(one, (int, float)) for one in (fields["created"], *numbers)):
            raise TypeError("created, silent_after and every must be numbers")
    except (TypeError, ValueError) as error:
        # It is set aside: the others must not suffer from it.
        unknown = {"features": ("value",), "silent_after": None, "every": None, "created": 0, "rules": NO_RULES}
        fields |= {**unknown, "settings": {DAMAGE: f"its row in the store is damaged: {error}"}}
    return SignalRow(**fields)

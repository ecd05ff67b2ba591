"""Events in the store: incidents that belong together, and the messages about them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from tocsin_monitor.errors import UnknownError
from tocsin_monitor.observations import place_of
from tocsin_monitor.store import encoding, schema
from tocsin_monitor.store.rows import EventRow, EventSummary, IncidentRow, Kind, Member
from tocsin_monitor.store.schema import among, matching, newest_first

#: How many incidents a summary lists.
LISTED = 10


def incident_of(row: Row[Any]) -> IncidentRow:
    """A row of the table of incidents."""
    return encoding.incident_from_columns(dict(row._mapping))


class EventReader:
    """What can be asked about events."""

    connection: Connection

    def event(self, number: int) -> EventRow | None:
        row = self.connection.execute(_EVENT, {"number": number}).one_or_none()
        return None if row is None else _event(row)

    def event_of(self, incident_id: int) -> EventRow | None:
        row = self.connection.execute(_EVENT_OF, {"number": incident_id}).one_or_none()
        return None if row is None else _event(row)

    def open_events(self, opened_after: int) -> list[EventRow]:
        """All events that go on, or began after a time, the oldest first."""
        columns = schema.events.c
        wanted = select(schema.events).where(or_(columns.open, columns.opened > opened_after)).order_by(columns.id)
        return [_event(row) for row in self.connection.execute(wanted)]

    def events(
        self,
        *,
        signal_ids: Collection[int] | None = None,
        open: bool | None = None,  # noqa: A002
        kind: Kind | None = None,
        since: int | None = None,
        before_id: int | None = None,
        limit: int,
    ) -> list[EventRow]:
        """Events, the newest first, those of some signals only; `since` leaves out those that were over before."""
        columns, incidents = schema.events.c, schema.incidents.c
        wanted = select(schema.events)
        of_event = select(incidents.id).where(incidents.event == columns.id)
        if signal_ids is not None:
            of_event = of_event.where(among(incidents.signal, signal_ids))
        wanted = wanted.where(of_event.exists(), *matching(columns, open=open, kind=kind))
        if since is not None:
            wanted = wanted.where(or_(columns.open == True, columns.closed >= since))  # noqa: E712
        rows = self.connection.execute(newest_first(wanted, columns.id, before_id, limit))
        return [_event(row) for row in rows]

    def members(
        self, event_id: int, *, signal_ids: Collection[int] | None = None, offset: int = 0, limit: int
    ) -> list[IncidentRow]:
        """The incidents of an event in the order of their start."""
        columns = schema.incidents.c
        wanted = _of(event_id, signal_ids).order_by(columns.start, columns.id).offset(offset).limit(limit)
        return [incident_of(row) for row in self.connection.execute(wanted)]

    def has_open_members(self, event_id: int) -> bool:
        return self.connection.execute(_OPEN_MEMBER, {"number": event_id}).first() is not None

    def events_of_signal(self, signal_id: int) -> list[int]:
        columns = schema.incidents.c
        wanted = select(columns.event).where(columns.signal == signal_id, columns.event.is_not(None)).distinct()
        return list(self.connection.execute(wanted).scalars())

    def summaries(self, events: Iterable[EventRow], names: Mapping[int, str]) -> list[EventSummary]:
        """Events in short. Only incidents of signals that are among `names` count; one of them must be."""
        everyone = set(self.connection.execute(select(schema.signals.c.id)).scalars()) <= names.keys()
        return [self._summary(event, names, None if everyone else list(names)) for event in events]

    def _summary(self, event: EventRow, names: Mapping[int, str], limited: Collection[int] | None) -> EventSummary:
        columns = schema.incidents.c
        of_event = _of(event.id, limited).subquery().c
        count, signals, open_count, snoozed, until, reasons, first, last, age = self.connection.execute(
            select(
                func.count(of_event.id), func.count(of_event.signal.distinct()),
                func.coalesce(func.sum(case((of_event.open, 1), else_=0)), 0), func.count(of_event.snoozed_until),
                func.min(of_event.snoozed_until), func.count(of_event.ended.distinct()), func.min(of_event.ended),
                func.max(of_event.ended), func.min(of_event.opened - of_event.end),
            )
        ).one()  # fmt: skip
        listed = self.members(event.id, signal_ids=limited, limit=LISTED)
        by_severity = _of(event.id, limited).order_by(
            func.coalesce(columns.severity, -1.0).desc(), columns.start, columns.id
        )
        strongest = self.connection.execute(by_severity.limit(1)).one()
        members = tuple(Member(one, names[one.signal]) for one in listed)
        # Together, signals that returned and others that only subsided have subsided.
        over = reasons == 2 and (first, last) == ("returned", "subsided")
        return EventSummary(
            event=event,
            count=count,
            signals=signals,
            open_count=open_count,
            first=members[0],
            strongest=Member(incident_of(strongest), names[strongest.signal]),
            members=members,
            places=self._places(event.id, names, limited),
            source_signals=self._source_signals(event),
            snoozed_until=until if snoozed == count else None,
            ended=last if open_count == 0 and (reasons == 1 or over) else None,
            age=age,
        )

    def _places(self, number: int, names: Mapping[int, str], limited: Collection[int] | None) -> tuple[str, ...]:
        """The places of an event's signals, that of the strongest first."""
        of_event = _of(number, limited).subquery().c
        strongest = func.max(func.coalesce(of_event.severity, -1.0)).desc()
        wanted = select(of_event.signal).group_by(of_event.signal).order_by(strongest, of_event.signal)
        found = (place_of(names[one]) or names[one] for one in self.connection.execute(wanted).scalars())
        return tuple(dict.fromkeys(found))

    def _source_signals(self, event: EventRow) -> int:
        source = event.source
        if source is None:
            return 0
        wanted = select(func.count()).select_from(schema.signals).where(schema.signals.c.source == source)
        return int(self.connection.execute(wanted).scalar_one())

    def counted_together(
        self, signal_id: int, others: Collection[int], before: int, window: int, most: int
    ) -> tuple[int, dict[int, int]]:
        """How many of the newest `most` incidents of a signal before a time there are, and near how many of them each
        of the others had one, too."""
        columns = schema.incidents.c
        past = (
            select(columns.id, columns.start)
            .where(columns.signal == signal_id, columns.start < before)
            .order_by(columns.start.desc())
            .limit(most)
            .subquery()
        )
        total = int(self.connection.execute(select(func.count()).select_from(past)).scalar_one())
        near = columns.start.between(past.c.start - window, past.c.start + window)
        wanted = (
            select(columns.signal, func.count(past.c.id.distinct()))
            .select_from(past)
            .join(schema.incidents, near)
            .where(columns.signal.in_(others), columns.signal != signal_id)
            .group_by(columns.signal)
        )
        return total, {signal: count for signal, count in self.connection.execute(wanted)}  # noqa: C416


class EventWriter(EventReader):
    """What can be changed of events."""

    def add_event(self, kind: Kind, start: int, shared: Sequence[str], now: int) -> int:
        """Add an event whose first incident starts then, and return its number."""
        values = {
            "kind": kind, "first": start, "last": start, "shared": encoding.names_to_text(shared), "open": True,
            "opened": now,
        }  # fmt: skip
        added = insert(schema.events).values(values).returning(schema.events.c.id)
        return int(self.connection.execute(added).scalar_one())

    def change_event(self, number: int, **changes: Any) -> None:
        if "shared" in changes:
            changes["shared"] = encoding.names_to_text(changes["shared"])
        changed = update(schema.events).where(schema.events.c.id == number).values(changes)
        if not self.connection.execute(changed).rowcount:
            raise UnknownError(f"there is no event {number}")

    def change_members(self, number: int, **changes: Any) -> None:
        columns = schema.incidents.c
        self.connection.execute(update(schema.incidents).where(columns.event == number).values(changes))

    def reopen_event(self, number: int) -> None:
        """An event goes on that was over. Sinks that were told so already are told anew that it began."""
        outbox = schema.outbox.c
        self.change_event(number, open=True, closed=None)
        over = outbox.event == number, outbox.status == "resolved"
        knowing = select(outbox.sink).where(*over, outbox.told.is_not(None))
        anew = update(schema.outbox).where(outbox.event == number, outbox.status == "firing", outbox.sink.in_(knowing))
        self.connection.execute(anew.values(delivered=None, told=None, attempts=0, error=None))
        self.connection.execute(delete(schema.outbox).where(*over))

    def tell_event(self, sink: str, number: int, incident: int, now: int, due: int, update_every: int | None) -> None:
        """Have a sink told of an event: when it is due, through this incident if it was not told yet.

        With `update_every` there is something new to tell, not sooner than so long after the sink was told last.
        """
        columns = schema.outbox.c
        same = columns.sink == sink, columns.event == number, columns.status == "firing"
        row = self.connection.execute(select(columns.id, columns.told).where(*same)).first()
        if row is None:
            message = {"sink": sink, "incident": incident, "event": number, "status": "firing", "created": now}
            waiting = {"attempts": 0, "next_attempt": due, "news": 0}
            self.connection.execute(insert(schema.outbox).values({**message, **waiting}))
        elif update_every is not None:
            news: dict[str, Any] = {"news": columns.news + 1}
            if row.told is not None:
                again = max(now, row.told + update_every)
                news |= {"delivered": None, "attempts": 0, "error": None, "next_attempt": again}
            self.connection.execute(update(schema.outbox).where(columns.id == row.id).values(news))

    def tell_end(self, number: int, now: int) -> None:
        """Have all sinks told that an event is over that were told, or are to be told, that it began.

        What was still to be told of its growth is left.
        """
        which = {"number": number}
        self.connection.execute(_LEAVE_GROWTH, which)
        known = set(self.connection.execute(_TOLD_END, which).scalars())
        for row in self.connection.execute(_TOLD_BEGINNING, which):
            if row.sink not in known:
                message = {"sink": row.sink, "incident": row.incident, "event": number, "status": "resolved"}
                waiting = {"created": now, "attempts": 0, "next_attempt": now, "news": 0}
                self.connection.execute(insert(schema.outbox).values({**message, **waiting}))


# Statements that run for every incident are built once: that takes several times as long as to run one.
_NUMBER: BindParameter[int] = bindparam("number")
_EVENT = select(schema.events).where(schema.events.c.id == _NUMBER)
_EVENT_OF = (
    select(schema.events)
    .join(schema.incidents, schema.incidents.c.event == schema.events.c.id)
    .where(schema.incidents.c.id == _NUMBER)
)
_OPEN_MEMBER = (
    select(schema.incidents.c.id).where(schema.incidents.c.event == _NUMBER, schema.incidents.c.open).limit(1)
)
_FIRING = schema.outbox.c.event == _NUMBER, schema.outbox.c.status == "firing"
_LEAVE_GROWTH = (
    update(schema.outbox)
    .where(*_FIRING, schema.outbox.c.delivered.is_(None), schema.outbox.c.told.is_not(None))
    .values(delivered=schema.outbox.c.told, error=None)
)
_TOLD_END = select(schema.outbox.c.sink).where(schema.outbox.c.event == _NUMBER, schema.outbox.c.status == "resolved")
_TOLD_BEGINNING = select(schema.outbox.c.sink, schema.outbox.c.incident).where(*_FIRING).order_by(schema.outbox.c.id)


def _of(event_id: int, signal_ids: Collection[int] | None) -> Select[Any]:
    columns = schema.incidents.c
    wanted = select(schema.incidents).where(columns.event == event_id)
    return wanted if signal_ids is None else wanted.where(among(columns.signal, signal_ids))


def _event(row: Row[Any]) -> EventRow:
    found = dict(row._mapping)
    found["shared"] = encoding.names_from_text(found["shared"])
    return EventRow(**found)

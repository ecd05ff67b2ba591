"""How rows leave the store: old ones are pruned, and removed signals stay while they are needed.

A sink that was told of an incident of a removed signal must be told of its end. The name of a removed signal is free
for a new one at once, so its row is renamed: a mark, which no name of a signal has, and its number are added. Readers
see the name without them.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import BindParameter, Connection, and_, bindparam, delete, func, or_, select, update

from tocsin_monitor.store import schema
from tocsin_monitor.store.rows import Pruned
from tocsin_monitor.store.schema import among

# Rows removed per transaction: about 100 ms.
PIECE = 20_000
# Later than any other time: removes everything.
ALL = 2**63 - 1
# The most refused observations that are kept.
MOST_REFUSED = 100_000


def remove_observations(connection: Connection, old: Sequence[tuple[int, int]], limit: int) -> int:
    """Remove the oldest observations of each signal, up to its time, at most `limit` in total; returns how many."""
    if not old:
        return 0
    share = max(1, limit // len(old))
    columns = schema.observations.c
    # One statement, run as a batch: with thousands of signals, a query for each would take too long.
    signal: BindParameter[int] = bindparam("of_signal")
    last: BindParameter[int] = bindparam("last")
    up_to_last = select(columns.time).where(columns.signal == signal, columns.time <= last)
    end_of_share = up_to_last.order_by(columns.time).limit(1).offset(share - 1).scalar_subquery()
    remove = delete(schema.observations).where(
        columns.signal == signal, columns.time <= func.coalesce(end_of_share, last)
    )
    return connection.execute(remove, [{"of_signal": one, "last": time} for one, time in old[:limit]]).rowcount


def _old(connection: Connection, before: int, keep_after: Mapping[int, int | None]) -> list[tuple[int, int]]:
    """The signals with observations to remove, and up to which time. Removed signals come first."""
    found = [(signal, ALL) for signal in _left_behind(connection)]
    signals, observations = schema.signals.c, schema.observations.c
    # One index lookup per signal.
    oldest = select(func.min(observations.time)).where(observations.signal == signals.id).scalar_subquery()
    for signal, time in connection.execute(select(signals.id, oldest).order_by(signals.id)):
        kept = keep_after.get(signal)
        if time is not None and kept is not None and time <= (last := min(kept, before - 1)):
            found.append((signal, last))
    return found


def _left_behind(connection: Connection) -> list[int]:
    """The ids of removed signals that still have observations, found by skipping through the index."""
    observations = schema.observations.c
    found = select(func.min(observations.signal).label("signal")).cte("found", recursive=True)
    following = select(func.min(observations.signal)).where(observations.signal > found.c.signal).scalar_subquery()
    found = found.union_all(select(following).where(found.c.signal.is_not(None)))
    missing = select(found.c.signal).where(
        found.c.signal.is_not(None), found.c.signal.not_in(select(schema.signals.c.id))
    )
    return list(connection.execute(missing.order_by(found.c.signal)).scalars())


def _remove_refused(connection: Connection, before: int) -> None:
    """Refused observations are kept as long as others, and never more than `MOST_REFUSED` of them."""
    columns = schema.refused.c
    last = connection.execute(select(func.max(columns.id))).scalar()
    if last is not None:
        remove = delete(schema.refused).where((columns.noted < before) | (columns.id <= last - MOST_REFUSED))
        connection.execute(remove)


def _remove_incidents(connection: Connection, before: int, limit: int) -> int:
    """Remove old incidents with their messages, and events without incidents. An open event keeps all of its."""
    columns, events = schema.incidents.c, schema.events.c
    over = func.coalesce(columns.closed, columns.end) < before
    going_on = select(events.id).where(events.id == columns.event, events.open)
    old = select(columns.id).where(columns.open.is_(False), over, ~going_on.exists()).order_by(columns.id).limit(limit)
    removed = connection.execute(delete(schema.incidents).where(columns.id.in_(old))).rowcount
    if removed:
        remove_empty_events(connection)
    return removed


def remove_empty_events(connection: Connection) -> None:
    """Remove the events whose incidents are gone."""
    events, incidents = schema.events.c, schema.incidents.c
    left = select(incidents.id).where(incidents.event == events.id)
    connection.execute(delete(schema.events).where(~left.exists()))


# Names of signals are printable, and this is not.
_MARK = "\x1f"

#: Whether a row is that of a removed signal.
REMOVED = schema.signals.c.name.contains(_MARK)


def name_of(stored: str) -> str:
    """The name of a signal whose row has this one."""
    return stored.partition(_MARK)[0]


class RemovalReader:
    """What can be asked about removed signals."""

    connection: Connection

    def leaving(self) -> set[int]:
        """The removed signals that are still stored."""
        return set(self.connection.execute(select(schema.signals.c.id).where(REMOVED)).scalars())

    def awaited(self, signal_ids: Collection[int], since: int) -> set[int]:
        """The signals through whose incidents a sink is still to be told something.

        That is so while such an event goes on, and then until the sink knows of its end, if that was after `since`.
        """
        incidents, outbox, events = schema.incidents.c, schema.outbox.c, schema.events.c
        over = and_(outbox.status == "resolved", outbox.delivered.is_(None), outbox.created > since)
        wanted = (
            select(incidents.signal)
            .join(schema.outbox, outbox.incident == incidents.id)
            .join(schema.events, events.id == outbox.event, isouter=True)
            .where(among(incidents.signal, signal_ids), or_(events.open, over))
        )
        return set(self.connection.execute(wanted.distinct()).scalars())


class RemovalWriter(RemovalReader):
    """How signals and old rows are removed."""

    def leave(self, signal_id: int) -> None:
        """Store that a signal is removed. It counts no more among those of its source."""
        columns = schema.signals.c
        change = update(schema.signals).where(columns.id == signal_id)
        self.connection.execute(change.values(name=columns.name + f"{_MARK}{signal_id}", source=None))

    def prune(
        self, observations_before: int, incidents_before: int, keep_after: Mapping[int, int | None], piece: int = PIECE
    ) -> Pruned:
        """Remove old rows, at most `piece`. Call it again, in another transaction, while there are more.

        Observations of a signal after its time in `keep_after` stay, or all of them if it has no time there, because
        its detector is rebuilt from them. Incidents are removed if they ended before `incidents_before`.
        """
        old = _old(self.connection, observations_before, keep_after)
        observations = remove_observations(self.connection, old, piece)
        incidents = 0
        more = bool(old) and bool(_old(self.connection, observations_before, keep_after))
        if not more and observations < piece:
            incidents = _remove_incidents(self.connection, incidents_before, piece - observations)
            _remove_refused(self.connection, observations_before)
        return Pruned(observations, incidents, more or observations + incidents == piece)

"""Removed signals that are still stored: a sink that heard of one of their incidents is to hear of its end.

The name of a removed signal is free for a new one at once. So its row is renamed: a mark, which no name of a signal
has, and its number are added. Readers see the name without them.
"""

from collections.abc import Collection

from sqlalchemy import Connection, and_, or_, select, update

from tocsin.service.store import schema
from tocsin.service.store.selection import among

# Names of signals are printable, and this is not.
_MARK = "\x1f"

#: Whether a row is that of a removed signal.
REMOVED = schema.signals.c.name.contains(_MARK)


def name_of(stored: str) -> str:
    """The name of a signal whose row has this one."""
    return stored.partition(_MARK)[0]


class LeavingReader:
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


class LeavingWriter(LeavingReader):
    """What can be changed of removed signals."""

    def leave(self, signal_id: int) -> None:
        """Store that a signal is removed. It counts no more among those of its source."""
        columns = schema.signals.c
        change = update(schema.signals).where(columns.id == signal_id)
        self.connection.execute(change.values(name=columns.name + f"{_MARK}{signal_id}", source=None))

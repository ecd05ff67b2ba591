"""The lock of a store in PostgreSQL: one session has it, and its owner writes through that session alone.

That makes the lock a fence. Whoever loses the session loses the lock, and cannot write with what it remembers: the next
owner has it already, or everything is read anew. A session that shows no sign of life is ended by a monitor on standby.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from tocsin.service.errors import OwnedError

# The first number of the lock; the second tells apart stores in several schemas of a database.
_OWNED = 0x746F6373
_PATIENCE = 1.0
# In seconds. An owner shows that it lives; who shows nothing for so long is taken for dead: between statements, and in
# one (a COPY may wait for the rest of its rows).
BEAT, QUIET, QUIET_IN_STATEMENT = 2.0, 8.0, 12.0

_FIND = """
SELECT a.pid, a.application_name, coalesce(host(a.client_addr), 'a local client') AS client, a.backend_start AS since,
       clock_timestamp() - a.state_change
           > make_interval(secs => CASE a.state WHEN 'active' THEN %s ELSE %s END) AS quiet
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %s::bigint::oid
  AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """The session that has the lock."""

    pid: int
    #: Whose it is, in words.
    name: str
    #: It shows no sign of life.
    quiet: bool


def find_owner(connection: Connection) -> Owner | None:
    """The session that has the lock of this store; None if it is free."""
    row = connection.exec_driver_sql(_FIND, (QUIET_IN_STATEMENT, QUIET, _OWNED)).first()
    if row is None:
        return None
    who = row.application_name or "another user"
    name = f"{who}, server process {row.pid} for {row.client} since {row.since:%Y-%m-%dT%H:%M:%S%z}"
    return Owner(row.pid, name, bool(row.quiet))


def evict(connection: Connection, owner: Owner) -> bool:
    """End the session of an owner that shows no sign of life; false where the server refuses that."""
    return bool(connection.exec_driver_sql("SELECT pg_terminate_backend(%s)", (owner.pid,)).scalar_one())


class SessionLock:
    """The lock, and the session that has it. Its methods must not be called by two threads at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: The session with the lock.
        self.session: Connection | None = None

    def take(self) -> None:
        """Take the lock in a new session; OwnedError where another one has it."""
        connection = self._engine.connect()
        try:
            self._take(connection)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self.session = connection

    def beat(self) -> None:
        """Show the server that the owner lives."""
        if self.session is not None:
            try:
                with self.session.begin():
                    self.session.exec_driver_sql("SELECT 1")
            except BaseException:
                self.let_go()
                raise

    def let_go(self) -> None:
        """End the session: only that lets go of the lock for sure."""
        if self.session is not None:
            self.session.invalidate()
            self.session.close()
            self.session = None

    def _take(self, connection: Connection) -> None:
        if not _locked_in_time(connection):
            owner = find_owner(connection)
            raise OwnedError(
                f"the store in the database {connection.engine.url.database!r} is in use by another monitor "
                f"({owner.name if owner else 'which has just gone'}): stop that one first, or start this one with "
                "storage.standby"
            )
        # The server cuts names that are longer than 63 bytes.
        name = f"process {os.getpid()} on {socket.gethostname()}"[:63]
        connection.exec_driver_sql("SELECT set_config('application_name', %s, false)", (name,))
        # If we are cut off and nobody is on standby, the server lets go of the lock within a minute, not after hours.
        for setting, value in (("idle", 30), ("interval", 10), ("count", 3)):
            connection.exec_driver_sql(f"SET tcp_keepalives_{setting} = {value}")
        connection.commit()


def _locked_in_time(connection: Connection) -> bool:
    """The server needs a moment to notice that the owner before has gone."""
    until = time.monotonic() + _PATIENCE
    while True:
        numbers = "%s, hashtext(current_schema())"
        locked = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({numbers})", (_OWNED,)).scalar_one()
        connection.commit()
        if locked or time.monotonic() > until:
            return bool(locked)
        time.sleep(0.05)


class Heartbeat:
    """Calls something every few seconds, on a thread of its own, while in a `with` block."""

    def __init__(self, beat: Callable[[], None], every: float = BEAT) -> None:
        self._beat, self._every = beat, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._beat()

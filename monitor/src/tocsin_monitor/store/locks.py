"""The locks that let only one monitor at a time use a store.

In SQLite, it is a locked file next to the store. In PostgreSQL, one session holds the lock, and the owner writes only
through that session: an owner that loses it can no longer write, and must take the lock and read everything again
first. A monitor on standby ends the session of an owner that shows no sign of life, and so fences it off before it
takes over.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine

from tocsin_monitor.errors import OwnedError, StoreError

# The first key of the advisory lock. The second key distinguishes the schemas of a database.
_OWNED = 0x746F6373
_PATIENCE = 1.0
# The session names of owners that show signs of life begin with this.
_ALIVE = "process "
# In seconds: how often an owner shows that it is alive, and after how long without a sign it counts as dead, between
# statements and within one that waits for the owner (a COPY waits for its rows). A statement that keeps the server busy
# says nothing about the owner; it has a time limit of its own.
BEAT, QUIET, QUIET_IN_STATEMENT = 1.5, 6.0, 9.0

_FIND = """
SELECT a.pid, a.application_name, coalesce(host(a.client_addr), 'a local client') AS client, a.backend_start AS since,
       clock_timestamp() - a.state_change
           > make_interval(secs => CASE a.state WHEN 'active' THEN %s ELSE %s END)
       AND (a.state <> 'active' OR a.wait_event_type IS NOT DISTINCT FROM 'Client') AS quiet
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %s::bigint::oid
  AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """The session that holds the lock."""

    pid: int
    #: Whose it is, in words.
    name: str
    #: Whether it shows no sign of life.
    quiet: bool


def find_owner(connection: Connection) -> Owner | None:
    """The session that holds the lock of this store; None if it is free."""
    row = connection.exec_driver_sql(_FIND, (QUIET_IN_STATEMENT, QUIET, _OWNED)).first()
    if row is None:
        return None
    who = row.application_name or "another user"
    name = f"{who}, server process {row.pid} for {row.client} since {row.since:%Y-%m-%dT%H:%M:%S%z}"
    # Owners of earlier versions show no signs of life; their sessions have another name.
    return Owner(row.pid, name, bool(row.quiet) and who.startswith(_ALIVE))


def evict(connection: Connection, owner: Owner) -> bool:
    """End the session of an owner; false if it has ended already."""
    return bool(connection.exec_driver_sql("SELECT pg_terminate_backend(%s)", (owner.pid,)).scalar_one())


class SessionLock:
    """The lock, and the session that holds it. Only one thread at a time may call its methods."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: The session that holds the lock, if any.
        self.session: Connection | None = None

    def take(self) -> None:
        """Take the lock in a new session; OwnedError if another session holds it."""
        connection = self._engine.connect()
        try:
            self._take(connection)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self.session = connection

    def beat(self) -> None:
        """Show the server that the owner is alive."""
        if self.session is not None:
            try:
                with self.session.begin():
                    self.session.exec_driver_sql("SELECT 1")
            except BaseException:
                self.let_go()
                raise

    def let_go(self) -> None:
        """Close the session: only that is sure to release the lock."""
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
        # The server cuts off names after 63 bytes.
        name = f"{_ALIVE}{os.getpid()} on {socket.gethostname()}"[:63]
        connection.exec_driver_sql("SELECT set_config('application_name', %s, false)", (name,))
        # If the network fails and nobody is on standby, the server releases the lock within a minute, not after hours.
        for setting, value in (("idle", 30), ("interval", 10), ("count", 3)):
            connection.exec_driver_sql(f"SET tcp_keepalives_{setting} = {value}")
        connection.commit()


def _locked_in_time(connection: Connection) -> bool:
    """Try for a moment, since the server may not have noticed yet that the last owner is gone."""
    until = time.monotonic() + _PATIENCE
    while True:
        numbers = "%s, hashtext(current_schema())"
        locked = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({numbers})", (_OWNED,)).scalar_one()
        connection.commit()
        if locked or time.monotonic() > until:
            return bool(locked)
        time.sleep(0.05)


@contextmanager
def heartbeat(beat: Callable[[], None]) -> Iterator[None]:
    """Call a function every few seconds, in a thread of its own, during a `with` block."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(BEAT):
            beat()

    thread = threading.Thread(target=run, name="tocsin-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


# In a lock file, the text follows the locked byte, because on Windows nobody else can read a locked byte.
_OWNER_AT = 1


@contextmanager
def locked_file(store: Path) -> Iterator[None]:
    """Lock a file next to an SQLite store; OwnedError if another monitor holds the lock.

    The system releases the lock even if the owner crashes.
    """
    path = store.with_name(store.name + ".lock")
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be created or opened: {error.strerror}") from error
    with file:
        try:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(_OWNER_AT)
            owner = file.read(200) or "unknown"
            raise OwnedError(
                f"the store {store} is in use by another monitor ({owner}): stop that one first"
            ) from error
        file.seek(_OWNER_AT)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield

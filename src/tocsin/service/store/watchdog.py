"""Breaks connections to a database that hangs, so that nothing waits forever."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

CHECK_EVERY = 0.5


class Watchdog:
    """Breaks connections that have waited too long for a reply: a server that hangs does not apply its own timeouts.

    The waiting call fails as it does when a connection is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, file: int, seconds: float) -> Iterator[None]:
        """Break the connection with this file descriptor if the block takes longer."""
        key = object()
        with self._lock:
            self._waiting[key] = (time.monotonic() + seconds, file)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="tocsin-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._waiting.pop(key, None)

    def cut_all(self) -> None:
        """Break all connections that wait."""
        with self._lock:
            self._cut(list(self._waiting))

    def _watch(self) -> None:
        while True:
            time.sleep(CHECK_EVERY)
            with self._lock:
                now = time.monotonic()
                self._cut([key for key, (until, _) in self._waiting.items() if until < now])

    def _cut(self, keys: list[object]) -> None:
        """The caller holds the lock, so these calls still wait and the file descriptors are still theirs."""
        for key in keys:
            _, file = self._waiting.pop(key)
            with suppress(OSError):
                cut = socket.socket(fileno=socket.dup(file))
                try:
                    cut.shutdown(socket.SHUT_RDWR)
                finally:
                    cut.close()


WATCHDOG = Watchdog()


def limited(kind: Any, seconds: float) -> Any:
    """A psycopg connection class whose connections wait no longer than this for a reply."""

    class Limited(kind):  # type: ignore[misc]
        def wait(self, *arguments: Any, **given: Any) -> Any:
            with WATCHDOG.limit(self.fileno(), seconds):
                return super().wait(*arguments, **given)

    return Limited

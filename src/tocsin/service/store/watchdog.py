"""That nobody waits for ever for a database that hangs."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

CHECK_EVERY = 0.5


class Watchdog:
    """Cuts connections that have waited too long for an answer: the timeouts of a server that hangs do not help.

    Who waits gets the error of a connection that broke.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, file: int, seconds: float) -> Iterator[None]:
        """Cut the connection with this file number if what is done meanwhile takes longer."""
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
        """Let nobody wait any more."""
        with self._lock:
            self._cut(list(self._waiting))

    def _watch(self) -> None:
        while True:
            time.sleep(CHECK_EVERY)
            with self._lock:
                now = time.monotonic()
                self._cut([key for key, (until, _) in self._waiting.items() if until < now])

    def _cut(self, keys: list[object]) -> None:
        """While the lock is held those are still waiting, so that the file is theirs."""
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
    """The class of connections of psycopg, such that none waits longer than this for an answer."""

    class Limited(kind):  # type: ignore[misc]
        def wait(self, *arguments: Any, **given: Any) -> Any:
            with WATCHDOG.limit(self.fileno(), seconds):
                return super().wait(*arguments, **given)

    return Limited

"""Somebody who is told of incidents over HTTP."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """Answers with the statuses given, one after the other, then with 200; None is 200 once `late` is set.

    As a proxy may do, it refuses bodies that are larger than `largest`, and those that hold one of the texts `hated`.
    `clock` says when each was taken, in nanoseconds.
    """

    def __init__(
        self, largest: int | None = None, hated: tuple[str, ...] = (), clock: Callable[[], int] = time.time_ns
    ) -> None:
        self.answers: list[int | None] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.taken: list[Any] = []
        self.moments: list[int] = []
        self.late = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                body = json.loads(text)
                receiver.asked.append((self.path, dict(self.headers)))
                status = receiver.answers.pop(0) if receiver.answers else 200
                if largest is not None and len(text) > largest:
                    status = 413
                elif any(word in text for word in hated):
                    status = 403
                if status is None:
                    receiver.late.wait(60)
                    status = 200
                if status == 200:
                    receiver.moments.append(clock())
                    receiver.taken.append(body)
                try:
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(b"so be it")
                except OSError:
                    pass  # whoever asked has gone

            def log_message(self, *message: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.late.set()
        self._server.shutdown()
        self._server.server_close()

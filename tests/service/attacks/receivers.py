"""Receivers of alarms, and proxies before them, that do not behave."""

import socket
import threading
import time
import zlib
from base64 import b64encode
from collections import Counter
from contextlib import suppress

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack
from tests.service.receiver import Receiver

MANY = 300
SECRET = "hunter2-7f3a"
SILENT = '[[templates]]\nmatch = "pump/*"\nsilent_after = "1s"\n'


def told_of(receiver: Receiver) -> Counter[str]:
    """How often the receiver took an alert of each signal."""
    return Counter(alert["labels"]["signal"] for body in list(receiver.taken) for alert in body)


def point_at(ground: Ground, place: str, name: str = "manager", more: str = "", *, restart: bool = True) -> None:
    """Have the monitor tell a receiver of incidents."""
    sink = f'[[sinks.alertmanager]]\nname = "{name}"\nurl = "http://{place}"\nrefresh = "1s"\ntimeout = "2s"\n{more}'
    ground.monitor.config.write_text(ground.monitor.config.read_text() + sink)
    if restart:
        ground.restart()


class Answering:
    """A server that answers every request with the same bytes, the last of which again and again."""

    def __init__(self, head: bytes, endless: bytes) -> None:
        self.asked: list[bytes] = []
        self._head, self._endless = head, endless
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = connection.recv(65536)
            self.asked.append(request)
            connection.sendall(self._head + request)
            while self._endless:
                connection.sendall(self._endless)

    def close(self) -> None:
        self._listening.close()


@attack(config=SILENT)
def a_receiver_answers_without_end(ground: Ground) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    packed = bomb.compress(b"a" * 10**8) + bomb.flush(zlib.Z_SYNC_FLUSH)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n" + packed
    servers = [Answering(head, packed), Answering(b"HTTP/1.1 500 No\r\n\r\n", b"x" * 10**6)]
    for number, server in enumerate(servers):
        point_at(ground, server.place, f"manager-{number}", restart=number > 0)
    ground.send({"signal": "pump/1", "value": 1.0})
    ground.until(lambda: all(len(server.asked) > 2 for server in servers))
    ground.measure()
    assert ground.memory < 600 * 2**20, ground.memory
    for server in servers:
        server.close()


@attack(config=SILENT)
def a_receiver_repeats_what_it_was_sent(ground: Ground) -> None:
    server = Answering(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n", b"")
    point_at(ground, f"someone:{SECRET}@{server.place}", "manager")
    ground.send({"signal": "pump/1", "value": 1.0})
    ground.until(lambda: any(one["last_error"] for one in ground.ask("GET", "/api/v1/status").json()["sinks"]))
    sent = b64encode(f"someone:{SECRET}".encode())
    assert any(sent in request for request in server.asked), "that was no attack"
    for text in (ground.ask("GET", "/api/v1/status").text, ground.monitor.log.read_text()):
        assert SECRET not in text
        assert sent.decode() not in text
    server.close()


@attack(config=f"[events]\nenabled = false\n{SILENT}")
def a_proxy_refuses_large_requests_in_a_mass_outage(ground: Ground) -> None:
    receiver = Receiver(largest=10_000, hated=("pump/7 ",))
    point_at(ground, receiver.place)
    names = [f"pump/{number} x" for number in range(MANY)]
    ground.send(*({"signal": name, "value": 1.0} for name in names))
    good = [name for name in names if not name.startswith("pump/7 ")]
    ground.until(lambda: min(told_of(receiver)[name] for name in good) >= 2)
    began = time.monotonic()
    ground.send({"signal": "pump/new", "value": 1.0})
    ground.until(lambda: told_of(receiver)["pump/new"])
    assert time.monotonic() - began < 15
    receiver.close()

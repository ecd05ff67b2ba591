"""Connections that ask for nothing, or never come to the end of it."""

import resource
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack

MANY = 1500
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def allow_files(count: int) -> None:
    """Let this process have so many connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def open_files(ground: Ground) -> int:
    return len(list(Path(f"/proc/{ground.monitor.pid}/fd").iterdir()))


def connect(ground: Ground, address: str, text: bytes) -> socket.socket | None:
    """A connection from this address that has sent so much; None if it was turned away."""
    with suppress(OSError):
        connection = socket.create_connection(("127.0.0.1", ground.monitor.port), 5, (address, 0))
        connection.sendall(text)
        return connection
    return None


def hold(ground: Ground, stack: ExitStack, text: bytes, seconds: float, addresses: int = 4) -> None:
    """Open connections, and others in the place of those that were ended, for so long."""
    allow_files(MANY + 1000)
    held: list[socket.socket] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        connection = connect(ground, f"127.0.0.{2 + number % addresses}", text)
        if connection is not None:
            held.append(stack.enter_context(connection))
        if len(held) > MANY:
            held.pop(0).close()
    assert number > MANY, "that was no attack"


@attack()
def half_sent_headers(ground: Ground) -> None:
    before, logged = open_files(ground), ground.log_bytes
    with ExitStack() as stack:
        hold(ground, stack, HALF, 20)
        assert ground.ask("GET", "/healthz").status_code == 200
        assert open_files(ground) < before + 1010
    ground.measure()
    assert ground.sender.longest < 5, ground.sender.longest
    assert ground.log_bytes - logged < 100_000, ground.log_bytes - logged
    assert ground.memory < 2**30


@attack()
def connections_that_say_nothing_are_ended(ground: Ground) -> None:
    allow_files(1000)
    with ExitStack() as stack:
        idle = [stack.enter_context(one) for _ in range(20) if (one := connect(ground, "127.0.0.9", b""))]
        began = time.monotonic()
        for one in idle:
            one.settimeout(60)
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
        assert time.monotonic() - began < 40


@attack(config="[server]\nmax_connections = 100000\nmax_connections_per_address = 100000\n", files=256)
def no_files_are_left_for_connections(ground: Ground) -> None:
    with ExitStack() as stack:
        hold(ground, stack, HALF, 20)
        ground.until(lambda: answers(ground))
    assert ground.log_bytes < 100_000, ground.log_bytes


def answers(ground: Ground) -> bool:
    with suppress(httpx.HTTPError):
        return ground.ask("GET", "/healthz", timeout=5).status_code == 200
    return False


def hold_streams(ground: Ground, stack: ExitStack, addresses: int, headers: str = "") -> int:
    """Open live streams, some hundreds from each address; how many the monitor lets be open."""
    allow_files(MANY + 1000)
    asked = f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()
    streams = [
        stack.enter_context(one)
        for address in range(addresses)
        for _ in range(MANY // addresses)
        if (one := connect(ground, f"127.0.0.{10 + address}", asked))
    ]
    accepted = 0
    for one in streams:
        one.settimeout(30)
        with suppress(OSError):
            accepted += b" 200 " in one.recv(20)
    return accepted


@attack()
def live_streams_that_are_held(ground: Ground) -> None:
    with ExitStack() as stack:
        held = hold_streams(ground, stack, 12)
        assert 20 < held <= 500, held
        for _ in range(20):
            assert ground.ask("GET", "/healthz", timeout=10).status_code == 200
            assert ground.ask("GET", "/api/v1/signals", timeout=10).status_code == 200
        assert ground.sender.longest < 10, ground.sender.longest
    with ExitStack() as stack:  # and then others can have some
        ground.until(lambda: hold_streams(ground, stack, 1) > 0)


@attack(tokens=True)
def live_streams_of_one_token_behind_a_proxy(ground: Ground) -> None:
    token = f"Authorization: {ground.headers['Authorization']}\r\nX-Forwarded-For: 203.0.113.9\r\n"
    with ExitStack() as stack:
        held = hold_streams(ground, stack, 1, token)
        assert 20 < held <= 100, held
        assert ground.ask("GET", "/healthz", timeout=10).status_code == 200
        assert ground.sender.longest < 10, ground.sender.longest


@attack()
def files_of_the_page_that_are_asked_for_and_held(ground: Ground) -> None:
    allow_files(MANY + 1000)
    asked = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with ExitStack() as stack:
        held = [
            stack.enter_context(one)
            for number in range(MANY)
            if (one := connect(ground, f"127.0.0.{10 + number % 4}", asked))
        ]
        for _ in range(20):
            assert ground.ask("GET", "/healthz", timeout=10).status_code == 200
        last, began = held[-1], time.monotonic()
        last.settimeout(60)
        with suppress(ConnectionResetError):
            while last.recv(2**20):
                pass
        assert time.monotonic() - began < 40
        assert ground.sender.longest < 10, ground.sender.longest


@attack(tokens=True)
def bodies_that_come_drop_by_drop(ground: Ground) -> None:
    token = ground.headers["Authorization"]
    head = (
        "POST /api/v1/observations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: {token}\r\nContent-Length: 8000000\r\n\r\n"
    ).encode() + b" " * 7_000_000
    allow_files(1000)
    with ExitStack() as stack:
        slow = [stack.enter_context(one) for _ in range(40) if (one := connect(ground, "127.0.0.9", head))]
        assert slow
        ground.until(lambda: ground.ask("GET", "/healthz").status_code == 200)
        ground.measure()
    assert ground.memory < 400 * 2**20, ground.memory
    ground.check_alive()  # by then it has noticed that they left
    assert ground.log_bytes < 5000, "who leaves is no error"
    assert ground.sender.longest < 5, ground.sender.longest


@attack()
def garbage_instead_of_http(ground: Ground) -> None:
    before = ground.log_bytes
    for number in range(2000):
        connection = connect(ground, "127.0.0.9", b"\x00" * 50 + b"\r\n\r\n" if number % 2 else b"GET / HTTP/9\r\n\r\n")
        if connection is not None:
            connection.close()
    assert ground.log_bytes - before < 5000


@attack(config="[server]\nrequests_per_second = 10\nburst = 20\n", tokens=True)
def wrong_tokens_do_not_starve_the_probes(ground: Ground) -> None:
    wrong = {"Authorization": "Bearer tocsin_" + "a" * 43}
    with httpx.Client(base_url=ground.monitor.address) as client:
        replies = {client.get("/api/v1/signals", headers=wrong).status_code for _ in range(200)}
        assert replies == {401, 429}
        assert {client.get("/healthz").status_code for _ in range(50)} == {200}
        assert {client.get("/readyz").status_code for _ in range(50)} == {200}

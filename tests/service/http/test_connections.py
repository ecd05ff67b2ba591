import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.service.helpers import free_port
from tocsin_monitor.config import ServerSettings
from tocsin_monitor.http import connections
from tocsin_monitor.http.connections import ConnectionSlot, ConnectionSlots
from tocsin_monitor.http.server import HttpServer, listen
from tocsin_monitor.metrics import Metrics

ASKED = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
DEADLINE = 30.0


def entered(places: ConnectionSlots, address: str, dropped: list[str], name: str) -> ConnectionSlot | None:
    place = places.enter(address)
    if place is not None:
        place.drop = lambda: dropped.append(name)
    return place


def test_who_waits_longest_makes_room() -> None:
    places, dropped = ConnectionSlots(3, 3), []
    first, *_ = [entered(places, f"10.0.0.{i}", dropped, str(i)) for i in range(3)]
    assert first is not None
    first.work()
    assert entered(places, "10.0.0.9", dropped, "9") is not None
    assert dropped == ["1"]
    first.wait()  # it is the one that waits the shortest now
    assert entered(places, "10.0.0.9", dropped, "10") is not None
    assert dropped == ["1", "2"]
    assert len(places) == 3


def test_requests_that_are_being_answered_are_not_given_up() -> None:
    places, dropped = ConnectionSlots(2, 2), []
    working = [entered(places, "10.0.0.1", dropped, str(i)) for i in range(2)]
    for place in working:
        assert place is not None
        place.work()
    assert places.enter("10.0.0.2") is None
    assert dropped == []
    assert working[0] is not None
    working[0].leave()
    working[0].leave()  # once is enough
    assert places.enter("10.0.0.2") is not None
    assert places.enter("10.0.0.3") is not None  # in the place of the one before
    assert len(places) == 2


def test_one_address_keeps_out_only_itself() -> None:
    places, dropped = ConnectionSlots(10, 2), []
    other = entered(places, "10.0.0.2", dropped, "other")
    for number in range(5):
        assert entered(places, "10.0.0.1", dropped, str(number)) is not None
    assert dropped == ["0", "1", "2"]
    assert other is not None
    assert len(places) == 3


def test_replies_are_sent_without_waiting_for_acknowledgements() -> None:
    """Both parts of a reply are sent at once: the second must not wait until the client has acknowledged the first."""
    with (
        listen(ServerSettings(port=free_port())) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that says 204 to everything."""
    settings = ServerSettings(port=free_port())
    server = HttpServer(hello, settings, Metrics())
    serving = asyncio.create_task(server.serve(sockets=[listen(settings)]))
    reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await serving


async def replied(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(DEADLINE):
        return await reader.readuntil(b"\r\n\r\n")


def test_a_connection_may_wait_for_its_next_request_longer_than_a_request_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)

    async def test() -> None:
        async with connected() as (reader, writer):
            for _ in range(2):
                writer.write(ASKED)
                assert b"204" in await replied(reader)
                await asyncio.sleep(1.0)
            writer.write(ASKED)
            assert b"204" in await replied(reader)

    asyncio.run(test())


@pytest.mark.parametrize("requests", [0, 1, 2])
def test_headers_that_never_end_end_the_connection(monkeypatch: pytest.MonkeyPatch, requests: int) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)

    async def test() -> None:
        async with connected() as (reader, writer):
            for _ in range(requests):
                writer.write(ASKED)
                assert b"204" in await replied(reader)
            writer.write(ASKED[:-4])
            async with asyncio.timeout(DEADLINE):
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readuntil(b"\r\n\r\n")

    asyncio.run(test())


def test_a_connection_that_waits_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OPEN_IDLE_SECONDS", 0.2)

    async def test() -> None:
        async with connected() as (reader, writer):
            writer.write(ASKED)
            assert b"204" in await replied(reader)
            async with asyncio.timeout(DEADLINE):
                assert await reader.read() == b""

    asyncio.run(test())

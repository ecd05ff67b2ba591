"""The live stream, over a socket as browsers see it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from tocsin_monitor import hub as hub_module
from tocsin_monitor.http import auth, create_app, stream
from tocsin_monitor.tokens import hash_token, make_token

from .conftest import Client, error_of
from .fake import FakeMonitor

URL = "/api/v1/stream"


@asynccontextmanager
async def serving(monitor: FakeMonitor) -> AsyncIterator[httpx.AsyncClient]:
    config = uvicorn.Config(create_app(monitor), log_config=None, lifespan="off")  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    # Without signals: they belong to the process that runs the tests.
    server.config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    ticking = asyncio.create_task(server.main_loop())
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            yield client
    finally:
        monitor.hub.close()
        server.should_exit = True
        await ticking
        await server.shutdown(sockets=[listening])


def run(monitor: FakeMonitor, main: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30), serving(monitor) as client:
            await main(client)

    asyncio.run(limited())


async def next_event(lines: AsyncIterator[str]) -> dict[str, str]:
    event: dict[str, str] = {}
    async for line in lines:
        if not line and "event" in event:
            return event
        name, _, value = line.partition(": ")
        if name:
            event[name] = value
    raise EOFError


async def subscribed(monitor: FakeMonitor, count: int = 1) -> None:
    while monitor.hub.subscribers != count:
        await asyncio.sleep(0.005)


def test_events_are_streamed_and_taken_up_again(monitor: FakeMonitor) -> None:
    async def main(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", URL, params={"signals": ["a", "b"]}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert response.headers["cache-control"] == "no-store"
            lines = response.aiter_lines()
            await subscribed(monitor)
            monitor.hub.publish("verdict", {"signal": "a", "p": float("nan")})
            monitor.hub.publish("verdict", {"signal": "c", "p": 1})
            monitor.hub.publish("incident", {"id": 1})
            first, second = await next_event(lines), await next_event(lines)
        assert (first["event"], first["data"]) == ("verdict", '{"signal":"a","p":null}')
        assert (second["event"], second["data"]) == ("incident", '{"id":1}')
        await subscribed(monitor, 0)
        monitor.hub.publish("status", {"n": 3})
        for given in ({"headers": {"Last-Event-ID": second["id"]}}, {"params": {"after": second["id"]}}):
            async with client.stream("GET", URL, **given) as response:  # type: ignore[arg-type]
                assert (await next_event(response.aiter_lines()))["data"] == '{"n":3}'
        async with client.stream("GET", URL, headers={"Last-Event-ID": "other-7"}) as response:
            assert (await next_event(response.aiter_lines()))["event"] == "reset"

    run(monitor, main)


def test_the_stream_ends_with_the_token(monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REFRESH", -1.0)
    monkeypatch.setattr(stream, "HEARTBEAT", 0.05)
    token = make_token()
    with monitor.store.transaction() as writer:
        writer.add_token("a", "read", hash_token(token), 0)

    async def main(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", URL, headers={"Authorization": f"Bearer {token}"}) as response:
            lines = response.aiter_lines()
            await subscribed(monitor)
            assert any([line.startswith(":") async for line in _first(lines, 6)])  # heartbeats
            with monitor.store.transaction() as writer:
                writer.remove_token("a")
                writer.add_token("b", "read", "x", 0)
            with pytest.raises(EOFError):
                await next_event(lines)

    run(monitor, main)


async def _first(lines: AsyncIterator[str], count: int) -> AsyncIterator[str]:
    for _ in range(count):
        yield await anext(lines)


def test_a_client_that_reads_nothing_is_dropped(monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SLOWEST", 0.2)

    async def main(client: httpx.AsyncClient) -> None:
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port, limit=1024)
        writer.write(f"GET {URL} HTTP/1.1\r\nHost: {client.base_url.host}\r\n\r\n".encode())
        await reader.readline()
        await subscribed(monitor)
        for _ in range(400):
            monitor.hub.publish("status", {"much": "x" * 100_000})
        await subscribed(monitor, 0)
        writer.close()

    run(monitor, main)


@pytest.mark.slow
def test_closing_the_hub_ends_the_streams(monitor: FakeMonitor) -> None:
    async def main(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", URL) as response:
            await subscribed(monitor)
            monitor.hub.close()
            with pytest.raises(EOFError):
                await next_event(response.aiter_lines())

    run(monitor, main)


def test_too_many_streams_and_signals_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MOST_SUBSCRIBERS", 0)
    response = client.get(URL)
    assert (response.status_code, response.headers["retry-after"]) == (503, "30")
    error_of(response)
    many: Any = {"signals": [f"s{i}" for i in range(101)]}
    assert client.get(URL, params=many).status_code == 422
    assert client.get(URL, params={"after": "x" * 101}).status_code == 422

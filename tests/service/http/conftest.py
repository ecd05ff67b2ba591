import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tocsin_monitor.http import create_app

from .fake import FakeMonitor

Make = Callable[..., FakeMonitor]
HERE = "http://localhost:8710"
_routes: list[Any] = []


def routes_of(app: FastAPI) -> list[Any]:
    """Those of the first application that asks."""
    _routes[:] = _routes or app.router.routes
    return _routes


class Client:
    """Asks the application without a network in between, one request after the other."""

    def __init__(self, monitor: FakeMonitor, token: str | None = None) -> None:
        self.app = create_app(monitor)  # type: ignore[arg-type]
        # They are the same for every monitor, and fastapi takes long to prepare them for the first request.
        self.app.router.routes = routes_of(self.app)
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, *, headers: dict[str, str] | None = None, **given: Any) -> httpx.Response:
        async def asking() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                return await client.request(method, path, headers={**self.headers, **(headers or {})}, **given)

        return asyncio.run(asking())

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("POST", path, **given)

    def put(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("PUT", path, **given)

    def delete(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("DELETE", path, **given)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes monitors with these settings of the server."""
    made: list[FakeMonitor] = []

    def monitor(**server: Any) -> FakeMonitor:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(FakeMonitor(folder, **server))
        return made[-1]

    yield monitor
    for one in made:
        one.store.close()


@pytest.fixture
def monitor(make: Make) -> FakeMonitor:
    return make()


@pytest.fixture
def client(monitor: FakeMonitor) -> Client:
    return Client(monitor)


def error_of(response: httpx.Response) -> dict[str, str]:
    """The error that a reply tells of; every one has this form and these headers."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert set(response.json()) == {"error"}
    error: dict[str, str] = response.json()["error"]
    assert set(error) <= {"message", "field"}
    assert error["message"]
    return error

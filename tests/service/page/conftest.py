"""A browser for the page's tests, and a monitor that only pretends."""

from collections.abc import Callable, Iterator

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.fake_server import FakeMonitor, fill  # noqa: E402


@pytest.fixture
def monitor() -> Iterator[FakeMonitor]:
    fake = FakeMonitor()
    fill(fake)
    yield fake
    fake.stop()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of: a test that provokes complaints empties it."""
    return []


@pytest.fixture
def opened(
    browser: sync_api.Browser, monitor: FakeMonitor, complaints: list[str]
) -> Iterator[Callable[..., sync_api.Page]]:
    """Opens the page at an address; at the end there must be no error and no violation of the policy."""
    contexts = []

    def open_page(address: str = "#/", width: int = 1280, **options: object) -> sync_api.Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(f"{monitor.url}/{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []

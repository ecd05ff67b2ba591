"""A browser for the page's tests, and a monitor that only pretends."""

from collections.abc import Callable, Iterator

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.fake_server import SECONDS, FakeMonitor, PageServer, fill  # noqa: E402

PATIENCE = 1000 * SECONDS
sync_api.expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def server() -> Iterator[PageServer]:
    made = PageServer()
    yield made
    made.stop()


@pytest.fixture
def monitor(server: PageServer) -> Iterator[FakeMonitor]:
    fake = FakeMonitor(server)
    fill(fake)
    yield fake
    fake.cut()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of: a test that provokes complaints empties it."""
    return []


@pytest.fixture
def opened(
    browser: sync_api.Browser, tab: sync_api.Page, monitor: FakeMonitor, complaints: list[str]
) -> Iterator[Callable[..., sync_api.Page]]:
    """Opens the page at an address; at the end there must be no error and no violation of the policy.

    A test's first page is the tab that tests share, unless it needs options of its own.
    """
    pages = []
    heard = {
        "console": lambda message: complaints.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: complaints.append(str(error)),
        "dialog": lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()),
    }

    def open_page(address: str = "#/", width: int = 1280, **options: object) -> sync_api.Page:
        page = browser.new_context(**options).new_page() if options or pages else tab
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 800})
        page.set_default_timeout(PATIENCE)
        for event, listener in heard.items():
            page.on(event, listener)
        page.goto(f"{monitor.url}/{address}")
        return page

    yield open_page
    for page in pages:
        for event, listener in heard.items():
            page.remove_listener(event, listener)
    if tab in pages:
        tab.evaluate("localStorage.clear(); sessionStorage.clear()")
        tab.goto("about:blank")
    assert complaints == []

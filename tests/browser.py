"""A real browser."""

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def started_browser() -> "Iterator[tuple[Browser, asyncio.AbstractEventLoop]]":
    """One for each worker, and the loop of events that playwright runs for it in this thread."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield started, loop
        asyncio._set_running_loop(loop)
        started.close()


@pytest.fixture(scope="session")
def tab(started_browser: "tuple[Browser, asyncio.AbstractEventLoop]") -> "Page":
    """One that tests share, and leave as they found it: to open another takes longer than to load a page."""
    started, loop = started_browser
    asyncio._set_running_loop(loop)
    made = started.new_context().new_page()
    asyncio._set_running_loop(None)
    return made


@pytest.fixture
def browser(started_browser: "tuple[Browser, asyncio.AbstractEventLoop]") -> "Iterator[Browser]":
    """The browser, for one test. Playwright's loop counts as running only meanwhile: other tests run loops, too."""
    started, loop = started_browser
    asyncio._set_running_loop(loop)
    kept = started.contexts
    yield started
    for context in set(started.contexts).difference(kept):
        context.close()
    asyncio._set_running_loop(None)

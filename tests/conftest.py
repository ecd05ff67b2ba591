"""Settings for all tests, and the browser that some share."""

import gc

import pytest
from hypothesis import settings

from tests.browser import browser, started_browser, tab

__all__ = ["browser", "started_browser", "tab"]

# No deadline: the first call of a kernel may compile it. The same examples every time: a failure is the change's.
settings.register_profile("full", deadline=None, derandomize=True, max_examples=150)
settings.register_profile("short", settings.get_profile("full"), max_examples=20)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples where the tests that are marked `full` are left out."""
    settings.load_profile("short" if "not full" in config.getoption("markexpr") else "full")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs a browser or PostgreSQL is slow."""
    for item in items:
        needed = {*getattr(item, "fixturenames", ())}
        database = item.callspec.params.get("store_url") if hasattr(item, "callspec") else None
        if needed & {"browser", "postgres"} or database == "postgresql":
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: the garbage collector need not look through millions of objects for it."""
    gc.collect()
    gc.freeze()

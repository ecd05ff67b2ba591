"""Settings for all tests, and the browser that some share."""

from hypothesis import settings

from tests.browser import browser, started_browser

__all__ = ["browser", "started_browser"]

# No deadline: the first call of a kernel may compile it. The same examples every time: a failure is the change's.
settings.register_profile("tocsin", deadline=None, derandomize=True)
settings.load_profile("tocsin")

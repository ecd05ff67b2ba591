"""What the tests of reports share."""

from tests.browser import browser as browser

"""What the tests of the service share."""

from tests.browser import browser as browser

"""Which cases of a test `make test` runs, and which only `make test-full` does."""

from typing import Any

import pytest


def full(*values: Any) -> Any:
    """A case, of one or more values, that is marked `full`."""
    return pytest.param(*values, marks=pytest.mark.full)

"""Stores that do not wait for the disk: what they lose by that, only a power failure would show."""

from collections.abc import Iterator

import pytest

from tocsin_monitor.store import connections


@pytest.fixture(autouse=True, scope="session")
def durable() -> Iterator[object]:
    """Gives what it replaces."""
    with pytest.MonkeyPatch.context() as patched:
        usual = connections._PRAGMAS["synchronous"]
        patched.setitem(connections._PRAGMAS, "synchronous", "OFF")
        yield usual

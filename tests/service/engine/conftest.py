"""Detectors that are soon warm: how long one waits is no matter of the engine."""

from collections.abc import Iterator

import pytest

from tests.service.servers import postgres, store_url
from tocsin.constants import changed

__all__ = ["postgres", "store_url"]


@pytest.fixture(autouse=True, scope="package")
def _soon_warm() -> Iterator[None]:
    with changed(least=5):
        yield

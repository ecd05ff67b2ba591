"""A store in each of the databases."""

from collections.abc import Iterator

import pytest

from tests.service.servers import postgres, store_url
from tocsin_monitor.store import Store

__all__ = ["postgres", "store", "store_url"]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store.open(store_url)
    yield store
    store.close()

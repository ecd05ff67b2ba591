"""Texts from outside are such that every database takes them."""

import psycopg
import pytest

from tests.service.postgres import Postgres
from tocsin_monitor.store import Store, StoreError


@pytest.mark.parametrize(("text", "kept"), [("a\0b", "a\ufffdb"), ("half \ud800 of one", "half ? of one")])
def test_texts_from_outside_are_cleaned(store: Store, text: str, kept: str) -> None:
    with store.transaction() as writer:
        writer.add_signal("a", ["value"], {}, created=1, unit=text)
        writer.put_cursor("file", text)
    with store.reading() as reader:
        stored = reader.signal("a")
        assert stored is not None
        assert stored.unit == kept
        assert reader.cursor("file") == kept


def test_a_database_that_cannot_hold_all_names_is_refused(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match=r"'western' has the encoding LATIN1, and the monitor needs UTF8"):
        Store.open(postgres.url.replace("/postgres", "/western"))

"""A database that hangs is given up, and nobody waits for it who only asks how the monitor is."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import create_engine

from tests.service.postgres import Postgres
from tocsin_monitor.http.monitor_access import Figures
from tocsin_monitor.store import Store, StoreError, connections
from tocsin_monitor.store.connections import Watchdog


@pytest.fixture
def impatient(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, str]]:
    """A store in PostgreSQL that gives up soon."""
    monkeypatch.setattr(connections, "_HANGS", 3.0)
    monkeypatch.setattr(connections, "_TIMEOUTS", {"lock_timeout": 1, "statement_timeout": 2})
    url = postgres.new_database()
    store = Store.open(url)
    yield store, url
    store.close()


def test_a_server_that_does_not_answer_is_given_up(impatient: tuple[Store, str], postgres: Postgres) -> None:
    store, _ = impatient
    with store.own():
        with postgres.hanging():
            began = time.monotonic()
            with pytest.raises(StoreError), store.transaction() as writer:
                writer.put_cursor("a", "1")
            assert time.monotonic() - began < 30
        store.regain()
        with store.transaction() as writer:
            writer.put_cursor("a", "2")


def test_locks_and_statements_that_take_too_long(impatient: tuple[Store, str]) -> None:
    store, url = impatient
    with psycopg.connect(url.replace("+psycopg", "")) as other:
        other.execute("LOCK TABLE cursors IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="lock timeout"), store.transaction() as writer:
            writer.put_cursor("a", "1")
    with pytest.raises(StoreError, match="statement timeout"), store.reading() as reader:
        reader.connection.exec_driver_sql("SELECT pg_sleep(60)")


def test_who_asks_for_numbers_does_not_wait_for_a_store_that_hangs(
    impatient: tuple[Store, str], postgres: Postgres
) -> None:
    store, _ = impatient

    async def ask() -> None:
        figures = Figures(store)
        before = await figures.newest()
        assert before.store_bytes > 0
        with postgres.hanging():
            began = time.monotonic()
            assert [await figures.newest(), await figures.newest()] == [before, before]
            assert time.monotonic() - began < 30

    asyncio.run(ask())


@pytest.mark.slow
def test_a_limit_that_is_kept_cuts_nothing(postgres: Postgres) -> None:
    watchdog = Watchdog()
    with create_engine(postgres.url).connect() as connection:
        file = connection.connection.fileno()  # type: ignore[attr-defined]
        with watchdog.limit(file, 60.0):
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        watchdog.cut_all()
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        with watchdog.limit(file, 60.0):
            watchdog.cut_all()
        with pytest.raises(Exception, match="connection"):
            connection.exec_driver_sql("SELECT 1")

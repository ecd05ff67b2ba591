"""The store as a whole: its files, its transactions, its owner, and a database that goes away."""

import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cases import full
from tests.service.postgres import Postgres
from tests.service.store.helpers import add_signal, observation
from tocsin_monitor.errors import OwnedError
from tocsin_monitor.store import Store, StoreError, connections, locks


def names(store: Store) -> list[str]:
    with store.reading() as reader:
        return [row.name for row in reader.signals()]


def add(store: Store, *given: str) -> None:
    with store.transaction() as writer:
        for name in given:
            add_signal(writer, name)


def fail_with(store: Store, error: Exception) -> None:
    with store.transaction() as writer:
        add_signal(writer, "never")
        raise error


def test_files_are_for_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "some" / "folder" / "tocsin.db"
    store = Store.open(f"sqlite:///{file}")
    with store.own():
        add(store, "a")
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in file.parent.iterdir()}
    store.close()
    assert modes == dict.fromkeys(["tocsin.db", "tocsin.db-wal", "tocsin.db-shm", "tocsin.db.lock"], 0o600)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (file.parent, file.parent.parent)] == [0o700] * 2


def test_every_connection_of_sqlite_is_durable(
    tmp_path: Path, durable: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._PRAGMAS, "synchronous", durable)
    store = Store.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "wal_autocheckpoint": 16_000}
    with store.transaction() as writer, store.reading() as reader:
        for one in (writer, reader):
            for pragma, value in expected.items():
                assert one.connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
            assert one.connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 1000
    store.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://ada:secret@host/x", "no url: secret"])
def test_other_databases_are_refused_without_telling_the_password(url: str) -> None:
    with pytest.raises(StoreError, match="must be sqlite:///FILE or postgresql") as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.db"
    file.write_bytes(b"something else " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(f"sqlite:///{file}")
    with pytest.raises(StoreError, match="cannot be created or opened: Not a directory"):
        Store.open(f"sqlite:///{file}/tocsin.db")


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    with pytest.raises(KeyError):
        fail_with(store, KeyError("x"))
    assert names(store) == []
    add(store, "a", "b")
    assert names(store) == ["a", "b"]


def test_a_reader_sees_one_moment(store: Store) -> None:
    add(store, "a")
    with store.reading() as reader:
        assert len(reader.signals()) == 1
        add(store, "b")
        assert len(reader.signals()) == 1
    assert names(store) == ["a", "b"]


def test_a_reader_sees_nothing_that_is_not_committed(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        assert names(store) == []


def test_many_threads_write_one_after_the_other(store_url: str) -> None:
    """Through two stores, as the monitor and a command of another process would."""
    stores = [Store.open(store_url), Store.open(store_url)]

    def count(number: int) -> None:
        for _ in range(20):
            with stores[number % 2].transaction() as writer:
                if number % 2:  # reads first and writes then
                    position = int(writer.cursor("odd") or 0)
                    writer.put_cursor("odd", str(position + 1))
                else:
                    writer.put_cursor("even", str(int(writer.cursor("even") or 0) + 1))

    threads = [threading.Thread(target=count, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with stores[0].reading() as reader:
        assert (reader.cursor("odd"), reader.cursor("even")) == ("40", "40")
    for store in stores:
        store.close()


def test_size(store: Store) -> None:
    before = store.size_bytes()
    with store.transaction() as writer:
        writer.add_observations([observation(1, time) for time in range(5000)])
    assert 5000 * 50 < store.size_bytes() - before < 5000 * 1000


class TestOwner:
    def test_only_one_monitor_has_the_store(self, store_url: str, store: Store) -> None:
        other = Store.open(store_url)
        pattern = re.escape(f"process {os.getpid()} on ")
        with store.own():
            add(store, "a")
            with pytest.raises(StoreError, match=f"in use by another monitor \\({pattern}"), other.own():
                pass
            add(other, "b")  # as a command does
        with other.own():
            add(other, "c")
            with pytest.raises(StoreError, match="in use"), store.own():
                pass
        with store.own():
            assert names(store) == ["a", "b", "c"]
        other.close()

    def test_a_lock_that_cannot_be_taken_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "tocsin.db.lock").mkdir()
        store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
        with pytest.raises(StoreError, match=r"tocsin\.db\.lock cannot be created or opened: Is a dir"), store.own():
            pass
        store.close()

    @pytest.mark.slow
    def test_a_killed_owner_leaves_the_store_free(self, store_url: str, store: Store) -> None:
        program = (
            "import sys, time\nfrom tocsin_monitor.store import Store\nstore = Store.open(sys.argv[1])\n"
            "with store.own():\n    print('owned', flush=True)\n    time.sleep(60)\n"
        )
        owner = subprocess.Popen([sys.executable, "-c", program, store_url], stdout=subprocess.PIPE, text=True)
        with owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "owned\n"
            with pytest.raises(StoreError, match="in use by another monitor"), store.own():
                pass
            owner.kill()
        with ExitStack() as stack:
            for left in range(100, -1, -1):  # the server notices a moment later
                try:
                    stack.enter_context(store.own())
                    break
                except StoreError:
                    assert left
                    threading.Event().wait(0.05)
            add(store, "a")


class TestLostServer:
    """PostgreSQL goes away: the transaction fails, and those after it work as soon as the server is back."""

    @pytest.fixture
    def store(self, postgres: Postgres) -> Iterator[Store]:
        store = Store.open(postgres.new_database())
        yield store
        store.close()

    @pytest.mark.parametrize("owned", [False, True])
    @pytest.mark.parametrize("how", ["kill", full("stop")])
    def test_in_a_transaction(self, postgres: Postgres, store: Store, how: str, owned: bool) -> None:
        def write_while_it_goes() -> None:
            with store.transaction() as writer:
                add_signal(writer, "never")
                getattr(postgres, how)()
                writer.add_observations([observation(1, 1)])

        with ExitStack() as stack:
            if owned:
                stack.enter_context(store.own())
            add(store, "a")
            with pytest.raises(StoreError, match="the store failed: "):
                write_while_it_goes()
            for _ in range(2):
                with pytest.raises(StoreError, match="the store failed: connection"):
                    store.regain() if owned else add(store, "never")
                with pytest.raises(StoreError, match="the store failed: connection"):
                    names(store)
            postgres.start()
            store.regain()
            add(store, "b")
            assert names(store) == ["a", "b"]

    def test_between_transactions(self, postgres: Postgres, store: Store) -> None:
        add(store, "a")
        postgres.restart()
        assert names(store) == ["a"]
        add(store, "b")
        assert names(store) == ["a", "b"]

    def test_in_a_reading(self, postgres: Postgres, store: Store) -> None:
        add(store, "a")

        def read_while_it_goes() -> None:
            with store.reading() as reader:
                reader.signals()
                postgres.restart()
                reader.signals()

        with pytest.raises(StoreError, match="the store failed"):
            read_while_it_goes()
        assert names(store) == ["a"]

    def test_an_owner_that_lost_the_store_writes_nothing_before_it_regains_it(
        self, postgres: Postgres, store: Store
    ) -> None:
        other = Store.open(str(store._engine.url))
        with store.own():
            assert not store.lost
            postgres.restart()
            with pytest.raises(StoreError, match="the store failed"):
                add(store, "never")
            assert store.lost
            with other.own():
                with pytest.raises(OwnedError, match="in use by another monitor"):
                    store.regain()
                add(other, "a")
            # It is free again, but what the first one remembers is from before the other one wrote.
            with pytest.raises(StoreError, match="the lock of the store was lost"):
                add(store, "never")
            with pytest.raises(StoreError, match="the lock of the store was lost"):
                store.check_owned()
            store.regain()
            add(store, "b")
            with pytest.raises(OwnedError, match="in use by another monitor"), other.own():
                pass
        assert names(other) == ["a", "b"]
        other.close()


class TestSignsOfLife:
    """A monitor on standby throws out an owner that shows none, and no other."""

    @pytest.fixture
    def pair(self, postgres: Postgres) -> Iterator[tuple[Store, Store]]:
        url = postgres.new_database()
        stores = Store.open(url), Store.open(url)
        yield stores
        for store in stores:
            store.close()

    @pytest.mark.full
    def test_an_owner_that_has_nothing_to_write_keeps_the_store(
        self, pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(locks, "QUIET", 3 * locks.BEAT)
        store, other = pair
        assert other.owner() is None
        with store.own():
            until = time.monotonic() + 6 * locks.BEAT
            while time.monotonic() < until:
                owner = other.owner()
                assert owner is not None
                assert f"process {os.getpid()} on " in owner.name
                assert not owner.quiet
                threading.Event().wait(0.2)
            assert not store.lost

    def test_an_owner_whose_statement_takes_long_keeps_the_store(
        self, pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(locks, "QUIET_IN_STATEMENT", 0.5)
        store, other = pair

        def write() -> None:
            with store.transaction() as writer:
                writer.connection.exec_driver_sql("SELECT pg_sleep(3)")
                add_signal(writer, "a")

        with store.own():
            writing = threading.Thread(target=write)
            writing.start()
            while writing.is_alive():
                other.owner()
                threading.Event().wait(0.1)
            assert not store.lost
            assert names(other) == ["a"]

    @pytest.mark.parametrize("when", ["between transactions", "in a transaction", "in a COPY"])
    def test_an_owner_without_a_sign_of_life_is_thrown_out_and_cannot_write(
        self, pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        monkeypatch.setattr(locks, "QUIET", 1.5)
        monkeypatch.setattr(locks, "QUIET_IN_STATEMENT", 1.5)
        monkeypatch.setattr(Store, "_beat", lambda self: None)
        store, other = pair

        def wait_for_the_throw() -> None:
            owner, until = other.owner(), time.monotonic() + 60
            assert owner is not None
            while other.owner() is not None:
                assert time.monotonic() < until
                threading.Event().wait(0.1)
            with other.own():
                add(other, "a")

        def write() -> None:
            with store.transaction() as writer:
                add_signal(writer, "never")
                if when == "in a transaction":
                    wait_for_the_throw()
                elif when == "in a COPY":
                    cursor = writer.connection.connection.cursor()
                    with cursor.copy("COPY cursors (source, position) FROM STDIN") as copy:  # type: ignore[attr-defined]
                        copy.write_row(("never", "1"))
                        wait_for_the_throw()
                        copy.write_row(("never", "2"))

        with store.own():
            if when == "between transactions":
                wait_for_the_throw()
            with pytest.raises(StoreError):
                write()
            assert store.lost
            store.regain()
            assert names(store) == ["a"]
            with store.reading() as reader:
                assert reader.cursor("never") is None

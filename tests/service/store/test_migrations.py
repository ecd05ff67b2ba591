"""From one version of the tables to the next."""

import threading

import pytest
from sqlalchemy import Connection, Engine, inspect

from tests.service.store.helpers import add_signal, incident
from tocsin_monitor.store import Store, StoreError, migrations
from tocsin_monitor.store.connections import connect
from tocsin_monitor.store.migrations import migrate, newest_version, version_of

OURS, NEWEST = migrations.MIGRATIONS, newest_version()
#: The columns that the incidents of version 1 lack.
ADDED = (
    *("seen", "began_earliest", "began_latest", "given_back", "alike", "advice", "occurrence", "first_alike"),
    *("holds", "label_of", "suppressed"),
)
#: The columns that later versions lack.
LATER = (
    ("signals", "rules"),
    ("incidents", "below_minimum"),
    *(("maintenance", column) for column in ("schedule", "duration", "time_zone")),
    ("incidents", "feature_p"),
    ("incidents", "suspects"),
)


def later(monkeypatch: pytest.MonkeyPatch, *more: migrations.Migration) -> None:
    """Have more versions of the tables than there are."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (*OURS, *more))


def add_colour(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE signals ADD COLUMN colour TEXT")
    connection.exec_driver_sql("UPDATE signals SET colour = 'red'")


def fail_halfway(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE half (x INTEGER)")
    connection.exec_driver_sql("DROP TABLE cursors")
    connection.exec_driver_sql("SELECT * FROM there_is_no_such_table")


@pytest.fixture
def engine(store_url: str) -> Engine:
    engine = connect(store_url)
    yield engine
    engine.dispose()


def version(engine: Engine) -> int:
    with engine.connect() as connection:
        return version_of(connection)


def tables(engine: Engine) -> dict[str, set[str]]:
    with engine.connect() as connection:
        found = inspect(connection)
        return {name: {column["name"] for column in found.get_columns(name)} for name in found.get_table_names()}


def test_an_empty_store_gets_all_tables(engine: Engine) -> None:
    assert version(engine) == 0
    migrate(engine)
    assert version(engine) == newest_version()
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}


def test_tables_of_version_1_become_those_of_a_new_store(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        number = writer.put_incident(incident(add_signal(writer, "a").id, 3))
        writer.connection.exec_driver_sql("DROP INDEX incidents_alike")
        for column in ADDED:
            writer.connection.exec_driver_sql(f"ALTER TABLE incidents DROP COLUMN {column}")
        for table, column in LATER:
            writer.connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
        writer.connection.exec_driver_sql("UPDATE schema_version SET version = 1")
    store.close()
    store = Store.open(store_url)
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}
    with store.reading() as reader:
        row = reader.incident(number)
    store.close()
    assert row is not None
    assert (row.start, row.seen, row.occurrence, row.holds) == (3, 0, 1, False)


def test_signals_keep_the_alarm_rate_of_the_old_default(store_url: str) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        for name, settings in (("a", {"gap": 3}), ("b", {"alarm_rate": "1/day", "interval": 60.0})):
            writer.add_signal(name, ["value"], settings, silent_after=None, created=1)
        damaged = writer.add_signal("c", ["value"], {}, silent_after=None, created=1)
        writer.connection.exec_driver_sql(f"UPDATE signals SET settings = '{{' WHERE id = {damaged.id}")
        writer.connection.exec_driver_sql(f"UPDATE schema_version SET version = {NEWEST - 1}")
    store.close()
    store = Store.open(store_url)
    with store.reading() as reader:
        rows = {row.name: row for row in reader.signals()}
    store.close()
    assert rows["a"].settings == {"gap": 3, "alarm_rate": 0.01}
    assert rows["b"].settings == {"alarm_rate": "1/day", "interval": 60.0}
    assert rows["c"].damage is not None


def test_a_current_store_stays_as_it_is(store_url: str) -> None:
    for expected in ([], ["a"]):
        store = Store.open(store_url)
        with store.transaction() as writer:
            assert [row.name for row in writer.signals()] == expected
            if not expected:
                add_signal(writer, "a")
        store.close()


def test_an_older_store_is_migrated_step_by_step(
    store_url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        add_signal(writer, "a")
    store.close()
    later(monkeypatch, add_colour)
    migrate(engine)
    assert version(engine) == NEWEST + 1
    seen: list[int] = []
    later(monkeypatch, add_colour, lambda connection: seen.append(version_of(connection)))
    Store.open(store_url).close()
    assert (version(engine), seen) == (NEWEST + 2, [NEWEST + 1])
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT name, colour FROM signals").all() == [("a", "red")]


def test_a_migration_that_fails_leaves_the_tables_as_they_were(
    store_url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(engine)
    before = tables(engine)
    later(monkeypatch, add_colour, fail_halfway)
    with pytest.raises(StoreError, match="there_is_no_such_table"):
        Store.open(store_url)
    assert version(engine) == NEWEST
    assert tables(engine) == before


@pytest.mark.parametrize("found", [NEWEST + 1, 12, -1])
def test_a_store_of_another_version_is_refused(store_url: str, engine: Engine, found: int) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE schema_version SET version = {found}")
    with pytest.raises(StoreError) as caught:
        Store.open(store_url)
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
    assert str(caught.value) == (
        f"the store {where} has tables of version {found}, and this release reads versions 1 to {NEWEST}: "
        "use the tocsin that wrote it, or an empty store (storage.folder or storage.url)"
    )
    assert version(engine) == found


def test_the_versions_that_can_be_read_are_told(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, add_colour, add_colour)
    Store.open(store_url).close()
    later(monkeypatch, add_colour)
    expected = f"tables of version {NEWEST + 2}, and this release reads versions 1 to {NEWEST + 1}"
    with pytest.raises(StoreError, match=expected):
        Store.open(store_url)


def test_a_store_that_does_not_know_its_version_is_refused(store_url: str, engine: Engine) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM schema_version")
    with pytest.raises(StoreError, match="the version of its tables is missing"):
        Store.open(store_url)


def test_two_may_open_a_new_database_at_once(store_url: str) -> None:
    barrier, failures = threading.Barrier(4), []

    def open_it() -> None:
        barrier.wait()
        try:
            Store.open(store_url).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

"""Backups: complete, of one moment, and only ever put where nothing is."""

import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from tests.service.store.helpers import NAN, add_signal, incident, observation, tell
from tests.service.store.test_migrations import NEWEST, later
from tocsin_monitor.observations import Status
from tocsin_monitor.store import ReferenceRow, Store, StoreError, schema
from tocsin_monitor.store.backup import backup, restore

SQLITE_MAGIC = b"SQLite format 3\x00"


def fill(store: Store) -> None:
    """Some of everything."""
    with store.transaction() as writer:
        one, two = add_signal(writer, "a"), add_signal(writer, "b/ü", features=3)
        special = [-0.0, 5e-324, float("inf"), float("-inf"), NAN, 1e308]
        writer.add_observations(
            observation(one.id, time, number, p=number, alarm=True, status=Status.LATE)
            for time, number in enumerate(special)
        )
        writer.add_observations([observation(two.id, time, *special[:3]) for time in range(7000)])
        writer.put_state(one.id, None, 5, bytes(range(256)))
        writer.put_reference(ReferenceRow(two.id, 0, 9, 2, 4, "Ada"), [0, 1], [tuple(special[:3]), tuple(special[3:])])
        number = writer.put_incident(incident(two.id, 5))
        writer.change_incident(number, label="fault", excluded=True, note="x\ny")
        tell(writer, "mail", number, 3)
        writer.add_maintenance("*", 1, 2, "because", "Ada")
        writer.add_token("t", "admin", "hash", 3)
        writer.put_cursor("file", "12")


def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.reading() as reader:
        return {
            name: [
                tuple(value.hex() if isinstance(value, float) else value for value in row)
                for row in reader.connection.execute(select(table).order_by(*table.primary_key.columns))
            ]
            for name, table in schema.metadata.tables.items()
        }


@pytest.fixture
def backup_file(tmp_path: Path) -> Path:
    """A backup of a store with some of everything."""
    url = f"sqlite:///{tmp_path / 'made' / 'tocsin.db'}"
    store = Store.open(url)
    fill(store)
    store.close()
    backup(url, tmp_path / "made.backup")
    return tmp_path / "made.backup"


@pytest.fixture(params=["sqlite", "postgresql"])
def target_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'target' / 'tocsin.db'}"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.mark.slow
def test_a_backup_is_restored_into_any_database(store_url: str, store: Store, target_url: str, tmp_path: Path) -> None:
    fill(store)
    saved, restored = [], []
    file = tmp_path / "a backup?.db"
    backup(store_url, file, lambda done, total: saved.append((done, total)))
    assert file.read_bytes().startswith(SQLITE_MAGIC)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.glob("a backup*")) == [file]
    restore(file, target_url, lambda done, total: restored.append((done, total)))
    assert list(tmp_path.glob("a backup*")) == [file]
    for progress in (saved, restored):
        assert progress == sorted(progress)
        assert progress[-1][0] == progress[-1][1] > 0

    target = Store.open(target_url)
    expected = contents(store)
    assert len(expected["observations"]) == 7006
    assert contents(target) == expected
    with target.transaction() as writer:  # numbers go on
        assert add_signal(writer, "c").id == 3
        assert writer.put_incident(incident(3, 8)) == 2
        writer.add_token("u", "read", "other", 3)
    target.close()


@pytest.mark.slow
def test_a_backup_is_of_one_moment_while_another_thread_writes(store_url: str, store: Store, tmp_path: Path) -> None:
    """Each transaction adds an observation and says how many there are: in a backup both must agree."""
    stop, written = threading.Event(), [0]
    with store.transaction() as writer:
        signal = add_signal(writer, "a").id
        writer.add_observations([observation(signal, -time) for time in range(1, 60_000)])
        writer.put_cursor("count", "0")

    def write() -> None:
        while not stop.is_set():
            with store.transaction() as writer:
                writer.add_observations([observation(signal, written[0])])
                written[0] += 1
                writer.put_cursor("count", str(written[0]))

    calls = []

    def wait_for_writes(done: int, total: int) -> None:
        """Between two pieces of the copy something is always written."""
        calls.append(done)
        if len(calls) == 100:
            stop.set()  # it begins anew with each write, and would never come to an end
        seen = written[0]
        while written[0] < seen + 3 and thread.is_alive():
            stop.wait(0.001)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        backup(store_url, tmp_path / "backup", wait_for_writes)
    finally:
        stop.set()
        thread.join()
    assert 1 < len(calls) < 100
    copy = sqlite3.connect(tmp_path / "backup")
    (count,) = copy.execute("SELECT position FROM cursors").fetchone()
    (stored,) = copy.execute("SELECT count(*) FROM observations WHERE time >= 0").fetchone()
    copy.close()
    assert int(count) == stored < written[0]


@pytest.mark.slow
def test_what_a_removed_signal_left_is_not_restored(
    store_url: str, store: Store, target_url: str, tmp_path: Path
) -> None:
    """Its number may be given again there."""
    with store.transaction() as writer:
        add_signal(writer, "a")
        writer.add_observations([observation(1, 1), observation(2, 1)])
    backup(store_url, tmp_path / "backup")
    restore(tmp_path / "backup", target_url)
    target = Store.open(target_url)
    with target.reading() as reader:
        assert sorted(reader.observations_at([(1, 1), (2, 1)])) == [(1, 1)]
    target.close()


@pytest.mark.slow
def test_only_an_empty_store_takes_a_backup(backup_file: Path, target_url: str) -> None:
    store = Store.open(target_url)
    with store.transaction() as writer:
        writer.add_token("mine", "read", "my hash", 3)
    before = contents(store)
    with pytest.raises(StoreError, match=r"only be restored into an empty store, but this one has .*tokens"):
        restore(backup_file, target_url)
    assert contents(store) == before
    store.close()


@pytest.mark.slow
def test_a_store_in_use_takes_no_backup(backup_file: Path, target_url: str) -> None:
    store = Store.open(target_url)
    with store.own(), pytest.raises(StoreError, match="in use by another monitor"):
        restore(backup_file, target_url)
    store.close()


@pytest.mark.slow
def test_a_restore_that_fails_leaves_the_store_empty(backup_file: Path, target_url: str) -> None:
    def fail(done: int, total: int) -> None:
        if done > 5000:
            raise KeyError(done)

    with pytest.raises(KeyError):
        restore(backup_file, target_url, fail)
    restore(backup_file, target_url)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "overwritten", "empty", "foreign", "missing"])
def test_a_damaged_backup_is_refused(backup_file: Path, tmp_path: Path, damage: str) -> None:
    whole = backup_file.read_bytes()
    if damage == "cut":
        backup_file.write_bytes(whole[: len(whole) // 2])
    elif damage == "overwritten":
        backup_file.write_bytes(whole[:8192] + bytes(65536) + whole[8192 + 65536 :])
    elif damage == "empty":
        backup_file.write_bytes(b"")
    elif damage == "foreign":
        backup_file.write_text("time,value\n1,2\n" * 500)
    else:
        backup_file.unlink()
    url = f"sqlite:///{tmp_path / 'target' / 'tocsin.db'}"
    expected = "no such backup" if damage == "missing" else "damaged|no tables of a store"
    with pytest.raises(StoreError, match=expected) as caught:
        restore(backup_file, url)
    assert str(backup_file) in str(caught.value)
    assert not (tmp_path / "target").exists()


@pytest.mark.slow
def test_a_backup_of_another_version(
    backup_file: Path, target_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE signals SET name = name || '!'")

    before = backup_file.read_bytes()
    later(monkeypatch, rename)
    restore(backup_file, target_url)
    assert backup_file.read_bytes() == before
    store = Store.open(target_url)
    with store.reading() as reader:
        assert [row.name for row in reader.signals()] == ["a!", "b/ü!"]
    store.close()
    backup(target_url, tmp_path / "newer")
    later(monkeypatch)
    expected = f"newer has tables of version {NEWEST + 1}, and this release restores backups of versions 1 to {NEWEST}"
    with pytest.raises(StoreError, match=expected):
        restore(tmp_path / "newer", f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(StoreError, match=f"version {NEWEST + 1}, but this release works with version {NEWEST}"):
        backup(target_url, tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
def test_backups_are_never_overwritten_and_stores_never_made(backup_file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'made' / 'tocsin.db'}"
    with pytest.raises(StoreError, match=r"made.backup already exists"):
        backup(url, backup_file)
    with pytest.raises(StoreError, match=r"there is no store .*none.db"):
        backup(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "new")
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        backup(url, tmp_path / "nowhere" / "new")
    assert not (tmp_path / "none.db").exists()

"""Stores are not changed under a monitor that works on them, and damage is told at once."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.store.helpers import add_signal
from tests.service.store.test_migrations import NEWEST, add_colour, later
from tocsin_monitor.store import DamagedError, Store, StoreError
from tocsin_monitor.store.backup import restore
from tocsin_monitor.store.connections import connect


def written_before(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a store, and then have one more version of the tables."""
    store = Store.open(url)
    with store.transaction() as writer:
        add_signal(writer, "a")
    store.close()
    later(monkeypatch, add_colour)


def test_an_older_store_that_is_in_use_is_not_touched(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written_before(store_url, monkeypatch)
    owner = Store(connect(store_url))
    with owner.own(), pytest.raises(StoreError, match="in use by another monitor"):
        Store.open(store_url)
    owner.close()
    Store.open(store_url).close()


def test_an_older_store_is_copied_before_it_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'tocsin.db'}"
    written_before(url, monkeypatch)
    Store.open(url).close()
    copy = tmp_path / f"tocsin.db.version-{NEWEST}"
    with sqlite3.connect(copy) as database:
        assert database.execute("SELECT version FROM schema_version").fetchone() == (NEWEST,)
    database.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    monkeypatch.undo()
    restored = f"sqlite:///{tmp_path / 'other.db'}"
    restore(copy, restored)
    store = Store.open(restored)
    with store.reading() as reader:
        assert [row.name for row in reader.signals()] == ["a"]
    store.close()


def damaged(folder: Path) -> Path:
    file = folder / "tocsin.db"
    store = Store.open(f"sqlite:///{file}")
    with store.transaction() as writer:
        for number in range(500):
            add_signal(writer, f"signal/{number}")
    store.close()
    with file.open("r+b") as raw:
        raw.seek(0, os.SEEK_END)
        size = raw.tell()
        raw.seek(size // 2)
        raw.write(b"\xff" * (size // 4))
    return file


@pytest.mark.slow
def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = damaged(tmp_path)
    with pytest.raises(DamagedError, match=r"is damaged.*tocsin restore.*\.recover"):
        Store.open(f"sqlite:///{file}", check=True)


@pytest.mark.slow
def test_a_monitor_with_a_damaged_file_ends_with_code_1(tmp_path: Path) -> None:
    damaged(tmp_path)
    command = [sys.executable, "-m", "tocsin", "serve", "--port", "0"]
    environment = {**os.environ, "TOCSIN_STORAGE__FOLDER": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    assert "tocsin restore" in done.stderr
    assert "Traceback" not in done.stderr

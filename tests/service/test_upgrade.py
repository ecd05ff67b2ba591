"""Upgrades: a monitor with newer tables brings a store up to date, and everything goes on."""

import time
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.service.postgres import Postgres
from tests.service.process import MonitorProcess
from tests.service.servers import postgres as postgres
from tests.service.test_standby import CONFIG, ready, says, until
from tocsin_monitor.store import Store
from tocsin_monitor.store.connections import connect, disposing
from tocsin_monitor.store.migrations import newest_version, version_of

#: A monitor of a made-up later release, whose tables have one more version.
LATER = """
from tocsin_monitor.store import migrations
migrations.MIGRATIONS += (lambda connection: connection.exec_driver_sql("UPDATE signals SET unit = 'bar'"),)
from tocsin.cli import app
app(prog_name="tocsin")
"""
pytestmark = pytest.mark.slow


class LaterMonitor(MonitorProcess):
    program = ("-c", LATER)


def version_at(url: str) -> int:
    with disposing(connect(url, make=False)) as engine, engine.connect() as connection:
        return version_of(connection)


@pytest.mark.full
def test_everything_goes_on_after_an_upgrade(tmp_path: Path) -> None:
    config = '[detector]\npreset = "light"\nforecaster = "last-value"\n'
    start = time.time_ns() // 10**9 - 10**5
    sent = [{"signal": "pump", "time": start + 60 * number, "value": number % 7} for number in range(60)]
    with MonitorProcess(tmp_path, config) as monitor:
        monitor.start()
        httpx.post(f"{monitor.address}/api/v1/observations", json=sent[:40], timeout=60).raise_for_status()
        monitor.stop()
    with LaterMonitor(tmp_path, config) as monitor:
        monitor.start()
        reply = httpx.post(f"{monitor.address}/api/v1/observations", json=sent[40:], timeout=60)
        assert {one["status"] for one in reply.raise_for_status().json()["outcomes"]} == {"scored"}
        (signal,) = httpx.get(f"{monitor.address}/api/v1/signals").json()["signals"]
        assert (signal["name"], signal["observations"], signal["unit"]) == ("pump", 60, "bar")
        assert f"tocsin.db.version-{newest_version()} has the old version" in monitor.log.read_text()
    assert version_at(f"sqlite:///{tmp_path}/data/tocsin.db") == newest_version() + 1


@pytest.mark.full
def test_one_on_standby_leaves_older_tables_alone_until_it_leads(tmp_path: Path, postgres: Postgres) -> None:
    """A rolling upgrade: the new version waits while the old one works, and takes over when that is stopped."""
    url = postgres.new_database()
    leading = Store.open(url)
    with LaterMonitor(tmp_path, CONFIG.format(url=url)) as monitor:
        with leading.own():
            monitor.start(wait=False)
            until(lambda: "standby" in says(monitor))
            assert version_at(url) == newest_version()
        monitor.wait_until_ready()
        assert ready(monitor)
        assert version_at(url) == newest_version() + 1
    leading.close()


@pytest.mark.full
@pytest.mark.parametrize("standby", [False, True])
def test_a_store_of_a_newer_version_is_refused(tmp_path: Path, postgres: Postgres, standby: bool) -> None:
    url = postgres.new_database()
    Store.open(url).close()
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("UPDATE schema_version SET version = version + 1")
    config = CONFIG.format(url=url).replace("standby = true", f"standby = {str(standby).lower()}")
    with MonitorProcess(tmp_path, config) as monitor:
        with pytest.raises(RuntimeError, match="the monitor ended"):
            monitor.start()
        assert "use the tocsin that wrote it" in monitor.log.read_text()
        assert "Traceback" not in monitor.log.read_text()

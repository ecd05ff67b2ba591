"""Stores that earlier versions wrote: the monitor brings them up to date, and everything goes on."""

import lzma
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from tests.service.old_stores import making
from tests.service.postgres import Postgres
from tests.service.process import MonitorProcess
from tests.service.servers import postgres as postgres
from tests.service.test_standby import ready, says, until
from tocsin.detection import Detector
from tocsin.service.store import Store
from tocsin.service.store.facts import look_at
from tocsin.service.store.migrations import newest_version

STORES = Path(making.__file__).parent
VERSIONS = (8, 9, 10)
SETTINGS = {"alarm_rate": 0.05, "preset": "light", "forecaster": "last-value", "views": ["error", "level"]}
# The fault that goes on in the store is over by then.
LAST = making.SENT + 90
pytestmark = pytest.mark.slow


def unpack_sqlite(version: int, folder: Path) -> str:
    file = folder / "data" / "tocsin.db"
    file.parent.mkdir()
    file.write_bytes(lzma.decompress((STORES / f"version-{version}.sqlite.xz").read_bytes()))
    return f"sqlite:///{file}"


def unpack_postgresql(version: int, server: Postgres) -> Iterator[str]:
    name, admin = f"old_{version}", server.url.replace("+psycopg", "")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = admin.removesuffix("/postgres") + f"/{name}"
    dump = lzma.decompress((STORES / f"version-{version}.postgresql.xz").read_bytes())
    subprocess.run(["psql", "--quiet", "--set=ON_ERROR_STOP=1", url], input=dump, check=True, capture_output=True)
    try:
        yield url.replace("postgresql://", "postgresql+psycopg://")
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, version: int, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that an earlier version wrote."""
    if request.param == "sqlite":
        yield unpack_sqlite(version, tmp_path)
    else:
        yield from unpack_postgresql(version, request.getfixturevalue("postgres"))


def config_for(url: str, more: str = "") -> str:
    return making.CONFIG.replace("[storage]", f'[storage]\nurl = "{url}"\n{more}')


def stored(url: str) -> tuple[dict[str, dict[int, float]], list[tuple[object, ...]]]:
    """The p of each observation by signal and time in seconds, and the incidents."""
    store = Store.open(url)
    try:
        with store.reading() as reader:
            rows = reader.signals()
            verdicts = {
                row.name: {one.time // 10**9: one.judged.p for one in reader.observations(row.id, limit=10**6)}
                for row in rows
            }
            names = {row.id: row.name for row in rows}
            incidents = [(names[one.signal], one.start, one.end, one.ended) for one in reader.incidents(limit=100)]
            return verdicts, sorted(incidents, key=str)
    finally:
        store.close()


def never_interrupted() -> tuple[dict[str, dict[int, float]], list[tuple[object, ...]]]:
    verdicts, incidents = {}, []
    times = making.START + 60 * np.arange(LAST)
    for name in making.SIGNALS:
        detector = Detector(["value"], **SETTINGS)
        values = np.array(making.observed(name, LAST))
        found = detector.run(values, (times * 10**9).view("datetime64[ns]")).verdicts
        verdicts[name] = dict(zip(times.tolist(), found.p[:, 0].tolist(), strict=True))
        incidents += [
            (name, int(one.start.astype(int)), int(one.end.astype(int)), one.ended) for one in detector.incidents
        ]
    return verdicts, sorted(incidents, key=str)


@pytest.mark.parametrize("version", VERSIONS)
def test_signals_incidents_and_detectors_go_on_in_a_store_of_an_earlier_version(
    old: str, version: int, tmp_path: Path
) -> None:
    assert look_at(old).tables == version
    with MonitorProcess(tmp_path, config_for(old)) as monitor:
        monitor.start()
        before = httpx.get(f"{monitor.address}/api/v1/incidents").json()["incidents"]
        (going_on,) = (one for one in before if one["open"])
        for first in range(making.SENT, LAST, 30):
            reply = httpx.post(
                f"{monitor.address}/api/v1/observations", json=making.batch(first, first + 30), timeout=120
            )
            assert {one["status"] for one in reply.raise_for_status().json()["outcomes"]} == {"scored"}
        after = httpx.get(f"{monitor.address}/api/v1/incidents").json()["incidents"]
        ended = next(one for one in after if one["id"] == going_on["id"])
        monitor.stop()
        log = monitor.log.read_text()
    assert "learns anew" not in log
    assert "Traceback" not in log
    assert (ended["open"], ended["start"], ended["ended"]) == (False, going_on["start"], "returned")
    verdicts, incidents = stored(old)
    expected, expected_incidents = never_interrupted()
    for name in making.SIGNALS:
        assert list(verdicts[name]) == list(expected[name])
        np.testing.assert_array_equal(list(verdicts[name].values()), list(expected[name].values()))
    assert incidents == expected_incidents
    assert look_at(old).tables == newest_version()


def test_one_on_standby_leaves_older_tables_alone_until_it_leads(tmp_path: Path, postgres: Postgres) -> None:
    """A rolling upgrade: the new version waits while the old one works, and takes over when that is stopped."""
    (version, *_) = VERSIONS
    for url in unpack_postgresql(version, postgres):
        leading = Store.reach(url)
        with MonitorProcess(tmp_path, config_for(url, "standby = true\n")) as monitor:
            with leading.own():
                monitor.start(wait=False)
                until(lambda: "standby" in says(monitor))
                assert look_at(url).tables == version
            monitor.wait_until_ready()
            assert ready(monitor)
            assert len(httpx.get(f"{monitor.address}/api/v1/signals").json()["signals"]) == len(making.SIGNALS)
            assert look_at(url).tables == newest_version()
        leading.close()


@pytest.mark.parametrize("standby", [False, True])
def test_a_store_of_a_newer_version_is_refused(tmp_path: Path, postgres: Postgres, standby: bool) -> None:
    for url in unpack_postgresql(VERSIONS[-1], postgres):
        Store.open(url).close()
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("UPDATE schema_version SET version = version + 1")
        with MonitorProcess(tmp_path, config_for(url, f"standby = {str(standby).lower()}\n")) as monitor:
            with pytest.raises(RuntimeError, match="the monitor ended"):
                monitor.start()
            assert "a newer tocsin wrote it, so use that one" in monitor.log.read_text()
            assert "Traceback" not in monitor.log.read_text()

"""Stores that earlier versions wrote: the monitor brings them up to date, and everything goes on."""

import lzma
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from tests.cases import full
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
VERSIONS = (8, 9, 10, 11)
# Those of the signals in the stores, but for the view level, which is gone.
SETTINGS = {"alarm_rate": 0.05, "preset": "light", "forecaster": "last-value", "views": ["error"]}
# The fault that goes on in the store is over by then, and detectors that learned anew have found something themselves.
LAST = making.SENT + 180
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


@pytest.fixture(params=["sqlite", full("postgresql")])
def old(request: pytest.FixtureRequest, version: int, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that an earlier version wrote."""
    if request.param == "sqlite":
        yield unpack_sqlite(version, tmp_path)
    else:
        yield from unpack_postgresql(version, request.getfixturevalue("postgres"))


def config_for(url: str, more: str = "") -> str:
    return making.CONFIG.replace("[storage]", f'[storage]\nurl = "{url}"\n{more}')


def stored(url: str) -> dict[str, dict[int, float]]:
    """The p of each observation by signal and time in seconds."""
    store = Store.open(url)
    try:
        with store.reading() as reader:
            return {
                row.name: {one.time // 10**9: one.judged.p for one in reader.observations(row.id, limit=10**6)}
                for row in reader.signals()
            }
    finally:
        store.close()


def never_interrupted() -> dict[str, dict[int, float]]:
    """What detectors of this version say that saw everything."""
    times = making.START + 60 * np.arange(LAST)
    verdicts = {}
    for name in making.SIGNALS:
        values = np.array(making.observed(name, LAST))
        found = Detector(["value"], **SETTINGS).run(values, (times * 10**9).view("datetime64[ns]")).verdicts
        verdicts[name] = dict(zip(times.tolist(), found.p[:, 0].tolist(), strict=True))
    return verdicts


@pytest.mark.parametrize("version", [VERSIONS[0], *map(full, VERSIONS[1:])])
def test_detectors_learn_anew_from_a_store_of_an_earlier_version_and_everything_else_goes_on(
    old: str, version: int, tmp_path: Path
) -> None:
    assert look_at(old).tables == version
    with MonitorProcess(tmp_path, config_for(old)) as monitor:
        monitor.start()
        signals = httpx.get(f"{monitor.address}/api/v1/signals").json()["signals"]
        assert [(one["name"], one["observations"]) for one in signals] == [
            (name, making.SENT) for name in making.SIGNALS
        ]
        before = httpx.get(f"{monitor.address}/api/v1/incidents").json()["incidents"]
        for first in range(making.SENT, LAST, 30):
            reply = httpx.post(
                f"{monitor.address}/api/v1/observations", json=making.batch(first, first + 30), timeout=120
            )
            assert {one["status"] for one in reply.raise_for_status().json()["outcomes"]} == {"scored"}
        after = httpx.get(f"{monitor.address}/api/v1/incidents").json()["incidents"]
        monitor.stop()
        log = monitor.log.read_text()
    for name in making.SIGNALS:
        assert f"the stored state of {name!r} cannot be used, so its detector learns anew: " in log
    assert log.count("must have format") == len(making.SIGNALS)
    assert "Traceback" not in log
    assert "set aside" not in log
    # The fault that was going on ended with the detector that had found it.
    assert [one["open"] for one in before] == [False] * len(before)
    assert [one["ended"] for one in before].count("relearned") == 1
    assert [one for one in after if one["id"] <= before[0]["id"]] == before
    assert len(after) > len(before)
    verdicts = stored(old)
    for name, expected in never_interrupted().items():
        assert list(verdicts[name]) == list(expected)
        found, wanted = (list(one.values())[making.SENT :] for one in (verdicts[name], expected))
        np.testing.assert_array_equal(found, wanted)
    assert look_at(old).tables == newest_version()


@pytest.mark.full
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


@pytest.mark.parametrize("standby", [False, full(True)])
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

"""Two monitors on one database: one leads, the other waits, and takes over when the first one is gone."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.service.postgres import Postgres
from tests.service.process import MonitorProcess
from tests.service.servers import postgres as postgres
from tocsin_monitor.store import Store

CONFIG = """
[storage]
url = "{url}"
standby = true
[detector]
preset = "light"
forecaster = "last-value"
"""
pytestmark = pytest.mark.slow
# Recent, since what is old is removed from the store.
START = time.time_ns() // 10**9 - 10**6
# What a takeover may take on a machine that runs other tests too; `benchmarks/takeover.py` measures it.
TAKEOVER = 60.0


class Pair:
    """Two monitors, of which the first one leads."""

    def __init__(self, folder: Path, url: str, more: str = "") -> None:
        self.url = url
        self.folders = [folder / name for name in ("first", "second")]
        for one in self.folders:
            one.mkdir()
        self.first, self.second = (MonitorProcess(one, CONFIG.format(url=url) + more) for one in self.folders)

    def start(self) -> None:
        self.first.start()
        self.second.start(wait=False)
        until(lambda: "standby" in says(self.second))

    def stored(self) -> list[int]:
        store = Store.open(self.url)
        try:
            with store.reading() as reader:
                row = reader.signal("pump")
                return [] if row is None else [one.time for one in reader.observations(row.id, limit=10**6)]
        finally:
            store.close()


@pytest.fixture
def pair(tmp_path: Path, postgres: Postgres) -> Iterator[Pair]:
    pair = Pair(tmp_path, postgres.new_database())
    with pair.first, pair.second:
        pair.start()
        yield pair


def until(condition: Callable[[], bool], seconds: float = 300.0) -> float:
    """How long it took until the condition held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)
    return time.monotonic() - began


def says(monitor: MonitorProcess, path: str = "/readyz") -> str:
    try:
        return httpx.get(f"{monitor.address}{path}", timeout=5).text
    except httpx.HTTPError:
        return ""


def ready(monitor: MonitorProcess) -> bool:
    return "ready" in says(monitor) and "error" not in says(monitor)


def send(monitor: MonitorProcess, number: int) -> httpx.Response:
    one = {"signal": "pump", "time": START + number, "value": float(number % 7)}
    return httpx.post(f"{monitor.address}/api/v1/observations", json=[one], timeout=30)


def accepted(monitor: MonitorProcess, number: int) -> bool:
    try:
        return send(monitor, number).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.full
def test_one_on_standby_says_so_and_takes_nothing(pair: Pair) -> None:
    second = pair.second
    assert httpx.get(f"{second.address}/healthz").status_code == 200
    not_ready = httpx.get(f"{second.address}/readyz")
    assert not_ready.status_code == 503
    assert f"standby: process {pair.first.pid} on " in not_ready.json()["error"]["message"]
    for refused in (send(second, 0), httpx.get(f"{second.address}/api/v1/signals"), httpx.get(f"{second.address}/")):
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert "standby" in refused.json()["error"]["message"]
    assert "\ntocsin_leader 0.0" in says(second, "/metrics")
    assert "\ntocsin_leader 1.0" in says(pair.first, "/metrics")
    assert send(pair.first, 0).status_code == 200
    second.stop()
    assert "Traceback" not in second.log.read_text()


@pytest.mark.full
def test_it_takes_over_from_one_that_is_killed_and_goes_back_to_standby_when_asked_to(pair: Pair) -> None:
    first, second = pair.first, pair.second
    assert all(send(first, number).status_code == 200 for number in range(5))
    template = {"match": "door", "unit": "cm"}
    httpx.post(f"{first.address}/api/v1/templates", json=template, timeout=30).raise_for_status()
    first.kill()
    assert until(lambda: accepted(second, 5)) < TAKEOVER
    # Stored templates are in force where the other one was.
    door = [{"signal": "door", "value": 1.0}]
    httpx.post(f"{second.address}/api/v1/observations", json=door, timeout=30).raise_for_status()
    assert httpx.get(f"{second.address}/api/v1/signals/door", timeout=30).json()["unit"] == "cm"
    first.start(wait=False)
    until(lambda: "standby" in says(first))
    # In order, as for an upgrade.
    second.stop()
    assert until(lambda: accepted(first, 6)) < TAKEOVER
    assert len(pair.stored()) == 7
    for monitor in (first, second):
        assert "Traceback" not in monitor.log.read_text()


@pytest.mark.full
def test_one_that_was_paused_writes_nothing_once_another_one_leads(pair: Pair) -> None:
    first, second = pair.first, pair.second
    assert send(first, 0).status_code == 200
    first.pause()
    try:
        # Nobody answers: this request waits for the paused process.
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{first.address}/api/v1/observations",
                json=[{"signal": "pump", "time": START + 99, "value": 9.0}],
                timeout=0.5,
            )
        assert until(lambda: accepted(second, 1)) < TAKEOVER
        before = pair.stored()
        assert len(before) == 2
    finally:
        first.go_on()
    until(lambda: "standby" in says(first))
    assert f"process {second.pid} on " in says(first)
    assert pair.stored() == before
    assert ready(second)


@pytest.mark.full
def test_sources_run_only_where_one_leads_and_go_on_where_the_other_one_was(tmp_path: Path, postgres: Postgres) -> None:
    file = tmp_path / "pump.csv"

    def append(first: int, last: int) -> None:
        with file.open("a") as lines:
            lines.writelines(f"{START + number},{number % 7}\n" for number in range(first, last))

    file.write_text("time,value\n")
    append(0, 50)
    source = f'[[sources.files]]\nname = "files"\npath = "{file}"\ntime = "time"\nvalue = ["value"]\n'
    pair = Pair(tmp_path, postgres.new_database(), source)
    with pair.first, pair.second:
        pair.start()
        until(lambda: len(pair.stored()) == 50)
        assert 'tocsin_observations_total{source="files"' not in says(pair.second, "/metrics")
        pair.first.kill()
        append(50, 80)
        until(lambda: len(pair.stored()) == 80)
        assert 'tocsin_observations_total{source="files",status="scored"} 30.0' in says(pair.second, "/metrics")
        assert 'status="duplicate"' not in says(pair.second, "/metrics")


@pytest.mark.full
def test_a_session_that_the_database_ends_is_taken_over_or_taken_again(pair: Pair) -> None:
    assert send(pair.first, 0).status_code == 200
    with psycopg.connect(pair.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s",
            (f"process {pair.first.pid} on %",),
        )
    assert until(lambda: accepted(pair.first, 1) or accepted(pair.second, 1)) < TAKEOVER
    until(lambda: [ready(pair.first), ready(pair.second)].count(True) == 1)
    until(lambda: "standby" in says(pair.first) or "standby" in says(pair.second))
    assert len(pair.stored()) == 2


@pytest.mark.full
def test_a_database_that_is_restarted_has_one_leader_again(tmp_path: Path, postgres: Postgres) -> None:
    pair = Pair(tmp_path, postgres.new_database())
    with pair.first, pair.second:
        pair.start()
        assert send(pair.first, 0).status_code == 200
        postgres.restart()
        until(lambda: accepted(pair.first, 1) or accepted(pair.second, 1))
        until(lambda: "standby" in says(pair.first) or "standby" in says(pair.second))
        assert len(pair.stored()) == 2


def test_without_a_shared_database_there_is_no_standby(tmp_path: Path) -> None:
    with MonitorProcess(tmp_path, "[storage]\nstandby = true\n") as monitor:
        with pytest.raises(RuntimeError, match="the monitor ended"):
            monitor.start()
        assert "standby needs a database that two monitors can share" in monitor.log.read_text()

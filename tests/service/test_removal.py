"""Signals that are removed from a monitor that runs and is killed: what pagers and people see of them."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.engine.helpers import until
from tests.service.process import MonitorProcess
from tests.service.sinks import channel as servers
from tests.service.sinks.channel import Channel
from tests.service.sinks.test_channels import KEY

pytestmark = pytest.mark.slow

CONFIG = """
[events]
hold = 0
[detector]
forecaster = "last-value"
views = ["error"]
[[templates]]
match = "*"
silent_after = 0.5
[[sinks.pagerduty]]
name = "pager"
url = "{url}"
routing_key = "{key}"
"""


@pytest.fixture
def pager() -> Iterator[Channel]:
    made = Channel(servers.pagerduty, 202)
    yield made
    made.close()


@pytest.fixture
def monitor(tmp_path: Path, pager: Channel) -> Iterator[MonitorProcess]:
    with MonitorProcess(tmp_path, CONFIG.format(url=pager.url, key=KEY)) as made:
        yield made


def client_of(monitor: MonitorProcess, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{monitor.address}/api/v1", headers=headers, timeout=60)


def told(pager: Channel) -> list[tuple[str, str]]:
    return [(asked.json["event_action"], asked.json["dedup_key"]) for asked in list(pager.taken)]


def exported(monitor: MonitorProcess) -> list[dict[str, Any]]:
    """The incidents as `tocsin export` writes them."""
    target, data = monitor.folder / "incidents.csv", monitor.folder / "data"
    command = [sys.executable, "-m", "tocsin", "export", "--incidents", str(target), "--data", str(data)]
    subprocess.run(command, check=True, capture_output=True)
    with target.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.full
def test_a_decommissioned_sensor_ends_its_page_and_leaves_nothing(monitor: MonitorProcess, pager: Channel) -> None:
    admin, limited = monitor.make_token(), monitor.make_token("operate", "--match", "hall/*")
    monitor.start()
    with client_of(monitor, admin) as client, client_of(monitor, limited) as other:
        client.put("/signals/hall/fan", json={"silent_after": 1e6}).raise_for_status()
        client.post("/observations", json={"signal": "hall/pump", "value": 1.0}).raise_for_status()
        until(lambda: told(pager) and client.get("/status").json()["outbox"]["pager"] == 0)
        (incident,) = client.get("/incidents").json()["incidents"]
        # The pager is down when the signal is removed, and while the monitor is killed.
        pager.answers = [503] * 1000
        client.delete("/signals/hall/pump").raise_for_status()
        for _ in range(2):
            for caller in (client, other):
                assert [one["name"] for one in caller.get("/signals").json()["signals"]] == ["hall/fan"]
                for path in (
                    "/signals/hall/pump",
                    "/signals/hall/pump/-/observations",
                    "/incidents?signal=hall/pump",
                    "/events?signal=hall/pump",
                ):
                    assert caller.get(path).status_code == 404, path
                (listed,) = caller.get("/incidents").json()["incidents"]
                assert (listed["signal"], listed["open"], listed["ended"]) == ("hall/pump", False, "removed")
                (event,) = caller.get("/events").json()["events"]
                assert (event["open"], event["title"]) == (False, "hall/pump is silent")
                (member,) = caller.get(f"/events/{event['id']}").raise_for_status().json()["members"]
                assert member == listed
                assert caller.get("/annotations").json()["annotations"] == []
                refused = caller.post(f"/incidents/{incident['id']}/acknowledge", json={})
                assert (refused.status_code, "was removed" in refused.text) == (404, True)
            assert client.get("/status").json()["signals"] == 1
            assert exported(monitor) == []
            monitor.kill()
            monitor.start()
        # Its name is free for another one at once.
        client.put("/signals/hall/pump", json={"features": ["a", "b"], "silent_after": 1e6}).raise_for_status()
        assert client.get("/incidents?signal=hall/pump").json()["incidents"] == []
        pager.answers = []
        until(lambda: len(told(pager)) == 2)
        until(lambda: client.get("/incidents").json()["incidents"] == [])
        assert client.get(f"/incidents/{incident['id']}").status_code == 404
        assert client.get("/events").json()["events"] == []
        assert client.get("/signals/hall/pump").json()["features"] == ["a", "b"]
    (trigger, began), (resolve, ended) = told(pager)
    assert (trigger, resolve, ended) == ("trigger", "resolve", began)
    assert pager.refused == []

"""A machine breaks and is mended: what operators see of it, from the broker to the page."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import paho.mqtt.client as paho
import pytest
from playwright.sync_api import Browser, expect

from tests.service.helpers import Alertmanager, Mosquitto
from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver

pytestmark = pytest.mark.slow

SECOND = 10**9
TOPIC = "plant/pump-1/vibration"
CONFIG = """
[server]
external_url = "https://tocsin.example"
[events]
hold = 0  # days pass within seconds here: what was over before the fault must not be one with it
[detector]
alarm_rate = 0.02
views = ["error"]
[[templates]]
match = "plant/*"
unit = "mm/s"
silent_after = "1h"
[[sources.mqtt]]
name = "plant"
port = {mosquitto}
topics = ["plant/+/vibration"]
value = ["reading.rms"]
time = "at"
[[sinks.alertmanager]]
name = "alertmanager"
url = "{alertmanager}"
refresh = "2s"
[[sinks.webhook]]
name = "hook"
url = "{webhook}"
"""


class Machine:
    """A pump with a sensor: one observation a second of a clock that runs as fast as we like, the same every time."""

    def __init__(self, port: int) -> None:
        self._random = np.random.default_rng(3)
        self.now = time.time_ns() - 7200 * SECOND
        self._turn = 0
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, "pump-1", protocol=paho.MQTTv5)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def work(self, seconds: int, fault: float = 0.0) -> None:
        sent = []
        for _ in range(seconds):
            self.now += SECOND
            self._turn += 1
            rms = 2 + 0.5 * np.sin(2 * np.pi * self._turn / 60) + 0.1 * self._random.normal() + fault
            message = json.dumps({"at": self.now, "reading": {"rms": rms}})
            sent.append(self._client.publish(TOPIC, message, qos=1))
        for one in sent:
            one.wait_for_publish(30)

    def stop(self) -> None:
        self._client.loop_stop()
        self._client.disconnect()


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        time.sleep(0.1)
    return found


def test_a_fault_is_told_everywhere_and_so_is_its_end(tmp_path: Path, browser: Browser) -> None:
    page = browser.new_page()
    hook, behind = Receiver(), Receiver()  # one hears from the monitor, the other one from Alertmanager
    with (
        Mosquitto(tmp_path / "mosquitto") as broker,
        Alertmanager(tmp_path / "alertmanager", sends_to=f"http://{behind.place}") as manager,
    ):
        config = CONFIG.format(mosquitto=broker.port, alertmanager=manager.url, webhook=f"http://{hook.place}")
        with MonitorProcess(tmp_path, config) as monitor, httpx.Client() as people:
            token = monitor.make_token()
            page.add_init_script(f"localStorage.setItem('tocsin-token', '{token}')")
            people.base_url, people.headers["Authorization"] = f"{monitor.address}/api/v1", f"Bearer {token}"
            monitor.start()
            machine = Machine(broker.port)
            page.goto(monitor.address)
            machine.work(600)

            def stored() -> int:
                answer = people.get(f"/signals/{TOPIC}").json()
                return int(answer.get("observations", 0))

            until(lambda: stored() == 600)
            expect(page.get_by_text(TOPIC).first).to_be_visible()

            broke = machine.now
            machine.work(8, fault=4.0)
            row = page.locator("a", has_text=TOPIC).first
            expect(page.locator("body")).to_contain_text("incident", ignore_case=True)
            fault = until(lambda: incident_since(people, broke))
            assert fault["open"]
            number = str(fault["id"])
            alert = until(lambda: alerts_of(manager, number))[0]
            assert alert["labels"]["signal"] == TOPIC
            assert alert["generatorURL"] == f"https://tocsin.example/#/incidents/{number}"
            (told,) = until(lambda: told_by(hook, number, "firing"))
            assert told["labels"]["signal"] == TOPIC
            assert "ended" not in told["annotations"]

            machine.work(60)
            until(lambda: not alerts_of(manager, number))
            (over,) = until(lambda: told_by(hook, number, "resolved"))
            assert over["fingerprint"] == told["fingerprint"]
            assert over["annotations"]["ended"] == "returned"
            assert over["annotations"]["summary"] == f"{TOPIC}: resolved, back to normal"
            until(lambda: ends_told_by(behind, number))
            row.click()
            expect(page.locator("canvas").first).to_be_visible()
            page.screenshot(path=tmp_path / "signal.png")
            machine.stop()
            fault = people.get(f"/incidents/{number}").json()
            assert (fault["open"], fault["ended"]) == (False, "returned")
            assert fault["direction"] == "above"
            assert "above the forecast" in fault["explanation"]
            assert fault["explanation"] == told["annotations"]["explanation"]
            time.sleep(3)  # for what must not come, repeated every 2 s
            assert ends_told_by(hook, number) == ends_told_by(behind, number) == ["returned"]
    hook.close()
    behind.close()


def incident_since(people: httpx.Client, start: int) -> dict[str, Any] | None:
    """The first incident that began after this moment."""
    found = people.get("/incidents", params={"signal": TOPIC}).json()["incidents"]
    began = [one for one in found if np.datetime64(one["start"].removesuffix("Z")) > np.datetime64(start, "ns")]
    return began[-1] if began else None


def told_by(hook: Receiver, number: str, status: str) -> list[dict[str, Any]]:
    alerts = [alert for payload in list(hook.taken) for alert in payload["alerts"]]
    return [one for one in alerts if (one["labels"]["incident"], one["status"]) == (number, status)]


def ends_told_by(hook: Receiver, number: str) -> list[str]:
    """Why the incident ended, each time that this was told. An alert that became critical was no end."""
    ends = [one["annotations"].get("ended") for one in told_by(hook, number, "resolved")]
    return [ended for ended in ends if ended]


def alerts_of(manager: Alertmanager, number: str) -> list[dict[str, Any]]:
    alerts = httpx.get(f"{manager.url}/api/v2/alerts").json()
    return [one for one in alerts if (one["labels"]["incident"], one["status"]["state"]) == (number, "active")]

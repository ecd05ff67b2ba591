"""Many signals that stop at once, and history that is imported: what a person is told, by a monitor of its own."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.flood import flood

from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver

pytestmark = pytest.mark.slow

SECOND = 10**9
OCTETS = {"Content-Type": "application/octet-stream"}
CONFIG = """
[detector]
alarm_rate = 0.02
views = ["error"]
[events]
hold = 1
[[templates]]
match = "*"
silent_after = "3s"
[[sinks.webhook]]
name = "pager"
url = "http://{place}"
"""


@pytest.mark.full
def test_signals_that_stop_are_one_message_and_one_acknowledgement(tmp_path: Path) -> None:
    began, over, _ = flood(tmp_path, 60)
    assert (began, over) == (1, 1)


def until(condition: Any, seconds: float = 300.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        time.sleep(0.1)
    return found


def history(signals: int, length: int = 1200) -> str:
    """Lines of signals that all break now and then, the last of them until the end."""
    random, now = np.random.default_rng(5), time.time_ns()
    rows = []
    for signal in range(signals):
        values = np.sin(np.arange(length) / 8) + 0.1 * random.normal(size=length)
        values[700:720] += 9
        values[-5:] += 9
        for step, value in enumerate(values):
            moment = (now - (length - step) * SECOND) // 10**6
            rows.append({"time": moment, "id": f"hall/{signal}", "value": round(float(value), 4)})
    return "\n".join(map(json.dumps, rows))


@pytest.mark.full
def test_imported_history_tells_nobody_and_what_comes_after_it_does(tmp_path: Path) -> None:
    """By the command, and by an upload; a silence of another signal shows that messages do go out."""
    receiver = Receiver()
    with MonitorProcess(tmp_path, CONFIG.format(place=receiver.place)) as monitor, httpx.Client(timeout=120) as client:
        client.base_url = f"{monitor.address}/api/v1"
        monitor.start()
        body = {"file": "past.jsonl", "id": "id", "time": "time", "value": ["value"]}
        reply = client.post("/imports", params=body, content=history(3), headers=OCTETS)
        reply.raise_for_status()
        until(lambda: [one["stage"] for one in client.get("/imports").json()["imports"]] == ["done"] * 3)
        found = client.get("/incidents", params={"limit": 1000}).json()["incidents"]
        assert len(found) >= 3
        assert {(one["ended"], one["event"]) for one in found} == {("imported", None)}
        assert client.get("/events").json()["events"] == []
        client.post("/observations", json={"signal": "yard/gate", "value": 1.0}).raise_for_status()
        until(lambda: receiver.taken)
        (told,) = receiver.taken
        assert told["commonLabels"]["signal"] == "yard/gate"
        event = told["event"]
        assert (event["title"], event["count"], event["signals"]) == ("yard/gate is silent", 1, 1)
        assert [one["signal"] for one in event["members"]] == ["yard/gate"]
        until(lambda: sum(client.get("/status").json()["outbox"].values()) == 0)
        assert len(receiver.taken) == 1
    receiver.close()

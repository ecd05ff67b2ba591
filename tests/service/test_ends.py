"""How long incidents last and why they end, as people see it of a monitor that runs and is killed."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.engine.helpers import until
from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver
from tocsin.detection import Detector

pytestmark = pytest.mark.slow

SECOND = 10**9
BEFORE = 2500
SETTINGS = {"alarm_rate": 0.003, "forecaster": "exponential-smoothing", "window": 1000}
CONFIG = """
[engine]
snapshot_every = 400
[detector]
alarm_rate = 0.003
forecaster = "exponential-smoothing"
window = 1000
[[sinks.webhook]]
name = "hook"
url = "http://{place}"
"""
START = time.time_ns() - 7200 * SECOND


@pytest.fixture
def hook() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def monitor(tmp_path: Path, hook: Receiver) -> Iterator[MonitorProcess]:
    with MonitorProcess(tmp_path, CONFIG.format(place=hook.place)) as made:
        made.start()
        yield made


def send(monitor: MonitorProcess, name: str, values: np.ndarray, first: int = 0) -> list[dict[str, Any]]:
    batch = [
        {"signal": name, "time": START + (first + at) * SECOND, "value": value}
        for at, value in enumerate(values.tolist())
    ]
    reply = httpx.post(f"{monitor.address}/api/v1/observations", json=batch, timeout=60)
    return list(reply.raise_for_status().json()["outcomes"])


def signal_of(monitor: MonitorProcess, name: str) -> dict[str, Any]:
    return dict(httpx.get(f"{monitor.address}/api/v1/signals/{name}").raise_for_status().json())


def incidents_of(monitor: MonitorProcess, name: str) -> list[dict[str, Any]]:
    """Those that began with what comes after the quiet time, the oldest first."""
    reply = httpx.get(f"{monitor.address}/api/v1/incidents", params={"signal": name}).raise_for_status()
    began = np.datetime64(START + BEFORE * SECOND, "ns")
    return [one for one in reply.json()["incidents"][::-1] if np.datetime64(one["start"].removesuffix("Z")) >= began]


def label(monitor: MonitorProcess, number: int, text: str) -> dict[str, Any]:
    reply = httpx.post(f"{monitor.address}/api/v1/incidents/{number}/label", json={"label": text})
    return dict(reply.raise_for_status().json())


def told(hook: Receiver, number: int) -> list[tuple[str, str | None]]:
    """What was told of an incident: whether it began or ended, and why."""
    alerts = [alert for payload in list(hook.taken) for alert in payload["alerts"]]
    return [
        (alert["status"], alert["annotations"].get("ended"))
        for alert in alerts
        if alert["labels"]["incident"] == str(number)
    ]


def until_told(hook: Receiver, number: int, count: int) -> list[tuple[str, str | None]]:
    end = time.monotonic() + 30
    while len(told(hook, number)) < count:
        assert time.monotonic() < end, "it was not told"
        time.sleep(0.05)
    time.sleep(1.5)  # for what must not come
    return told(hook, number)


@pytest.mark.full
def test_a_step_is_open_until_it_is_over(monitor: MonitorProcess, hook: Receiver) -> None:
    values = np.random.default_rng(1).normal(size=BEFORE + 460)
    values[BEFORE : BEFORE + 300] += 22
    send(monitor, "step", values[:BEFORE])
    number = None
    for at in range(BEFORE, BEFORE + 300, 20):
        send(monitor, "step", values[at : at + 20], at)
        (incident,) = incidents_of(monitor, "step")
        number = number or incident["id"]
        assert (incident["id"], incident["open"], incident["ended"]) == (number, True, None)
        assert signal_of(monitor, "step")["incident"] == number
    send(monitor, "step", values[BEFORE + 300 :], BEFORE + 300)
    incident = incidents_of(monitor, "step")[0]
    assert (incident["id"], incident["open"], incident["ended"]) == (number, False, "returned")
    assert 300 <= incident["duration"] <= 400
    assert signal_of(monitor, "step")["incident"] is None
    assert until_told(hook, incident["id"], 2) == [("firing", None), ("resolved", "returned")]


@pytest.mark.full
def test_equal_faults_are_incidents_of_about_the_same_severity(monitor: MonitorProcess, hook: Receiver) -> None:
    values = np.random.default_rng(3).normal(size=BEFORE + 1200)
    for start in (0, 300, 600):
        values[BEFORE + start : BEFORE + start + 60] += 8
    for at in range(0, len(values), 100):
        send(monitor, "thrice", values[at : at + 100], at)
    severe = sorted(incidents_of(monitor, "thrice"), key=lambda one: -one["severity"])[:3]
    starts = sorted(np.datetime64(one["start"].removesuffix("Z"), "ns").astype(np.int64) for one in severe)
    assert [(start - START) // SECOND - BEFORE for start in starts] == [0, 300, 600]
    assert min(one["severity"] for one in severe) > 0.5 * severe[0]["severity"]
    for one in severe:
        assert until_told(hook, one["id"], 2) == [("firing", None), ("resolved", "returned")]


@pytest.mark.full
def test_a_false_alarm_ends_and_stays_so_after_kills(monitor: MonitorProcess, hook: Receiver) -> None:
    values = np.random.default_rng(4).normal(size=BEFORE + 700)
    values[BEFORE:] += 8
    at = BEFORE + 40
    send(monitor, "moved", values[:at])
    (incident,) = incidents_of(monitor, "moved")
    assert label(monitor, incident["id"], "fault")["open"]
    over = label(monitor, incident["id"], "false alarm")
    assert (over["open"], over["ended"], over["label"]) == (False, "labelled", "false alarm")
    # What was sent right before a kill is sent again: nobody could note that it had arrived.
    until(lambda: not sum(httpx.get(f"{monitor.address}/api/v1/status").json()["outbox"].values()))
    monitor.kill()
    monitor.start()
    assert label(monitor, incident["id"], "false alarm")["closed"] == over["closed"]
    outcomes = []
    for first in range(at, len(values), 150):
        outcomes += send(monitor, "moved", values[first : first + 150], first)
        if first < at + 300:
            monitor.kill()
            monitor.start()
    detector = Detector(["value"], **SETTINGS)
    times = (START + np.arange(len(values)) * SECOND).view("datetime64[ns]")
    detector.run(values[:at], times[:at])
    assert detector.accept()
    verdicts = detector.run(values[at:], times[at:]).verdicts
    np.testing.assert_array_equal([outcome["p"] for outcome in outcomes], verdicts.p[:, 0])
    np.testing.assert_array_equal([outcome["alarm"] for outcome in outcomes], verdicts.alarm[:, 0])
    assert not signal_of(monitor, "moved")["incident"]
    ended = [(one["duration"], one["ended"]) for one in incidents_of(monitor, "moved")[1:]]
    known = [(one.duration, one.ended) for one in detector.incidents if one.first > BEFORE]
    assert ended == known
    assert until_told(hook, incident["id"], 2) == [("firing", None), ("resolved", "labelled")]


@pytest.mark.full
def test_what_stays_is_taken_for_normal_and_told_so(monitor: MonitorProcess, hook: Receiver) -> None:
    settings = {"detector": {**SETTINGS, "accept_after": 200}}
    httpx.put(f"{monitor.address}/api/v1/signals/stays", json=settings).raise_for_status()
    values = np.random.default_rng(0).normal(size=BEFORE + 700)
    values[BEFORE:] += 8
    send(monitor, "stays", values)
    incident = incidents_of(monitor, "stays")[0]
    assert (incident["open"], incident["ended"]) == (False, "accepted")
    assert until_told(hook, incident["id"], 2) == [("firing", None), ("resolved", "accepted")]
    summary = next(
        alert["annotations"]["summary"]
        for payload in hook.taken
        for alert in payload["alerts"]
        if alert["annotations"].get("ended") == "accepted"
    )
    assert summary == "stays: changed for good, and accepted as the new normal"

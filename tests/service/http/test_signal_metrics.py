"""Signals as metrics and incidents as annotations, over HTTP."""

import shutil
import subprocess
import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.service.http.conftest import Client, error_of
from tests.service.http.fake import FakeMonitor
from tests.service.http.test_security import URL, give_token
from tocsin_monitor.store import StoreReader

NASTY = 'plant/"pump" \\ ü'


def metrics(client: Client, query: str = "") -> dict[tuple[str, ...], float]:
    """The samples by name and labels."""
    response = client.get(f"/metrics/signals{query}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (
            sample.name.removeprefix("tocsin_signal_"),
            *(sample.labels[name] for name in ("signal", "feature", "state") if name in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@pytest.fixture
def filled(client: Client, monitor: FakeMonitor) -> Client:
    given: list[dict[str, Any]] = [
        {"signal": NASTY, "time": "2026-01-01T00:00:00Z", "value": 3.0},
        {"signal": "plant/two", "time": "2026-01-01T00:00:00Z", "value": {"x": 1.5, "y": None}},
        {"signal": "other", "time": "2026-01-01T00:00:00Z", "value": 7.0},
    ]
    assert client.post(f"{URL}/observations", json=given).status_code == 200
    client.put(f"{URL}/signals/empty", json={})
    statuses = monitor.engine.statuses
    statuses[NASTY] = replace(statuses[NASTY], warm=True, incident=monitor.engine.open_incident(NASTY))
    statuses["other"] = replace(statuses["other"], silent=True)
    return client


def test_the_newest_verdict_of_each_signal(filled: Client) -> None:
    found = metrics(filled)
    assert found["value", NASTY, "feature 1"] == 3.0
    assert found["forecast", NASTY, "feature 1"] == 1.0
    assert found["low", NASTY, "feature 1"] == float("-inf")
    assert found["high", NASTY, "feature 1"] == 2.5
    assert found["p", NASTY] == 0.25
    assert (found["incident_open", NASTY], found["incident_open", "other"]) == (1.0, 0.0)
    assert found["last_time_seconds", "other"] == 1767225600
    assert found["value", "plant/two", "x"] == 1.5
    assert ("value", "plant/two", "y") not in found  # it is missing
    assert found["state", NASTY, "watched"] == found["state", "other", "silent"] == 1.0
    assert found["state", "empty", "warming up"] == 1.0
    assert found["state", "empty", "watched"] == 0.0
    assert ("p", "empty") not in found
    assert found["left_out",] == 0.0


def test_signals_are_chosen_and_bounded(filled: Client) -> None:
    def names(query: str) -> set[str]:
        return {key[1] for key in metrics(filled, query) if key[0] == "state"}

    assert names("?match=plant/*") == {NASTY, "plant/two"}
    assert names("?match=plant/two&match=o*") == {"plant/two", "other"}
    assert names("?match=nothing") == set()
    assert names("?limit=2") == {"empty", "other"}
    assert metrics(filled, "?limit=1")["left_out",] == 3.0
    assert error_of(filled.get("/metrics/signals?limit=2001"))["field"] == "limit"


def test_a_token_is_needed_and_its_limits_hold(filled: Client, monitor: FakeMonitor) -> None:
    allowed = Client(monitor, give_token(monitor, "read", patterns=("plant/two",)))
    sender = Client(monitor, give_token(monitor, "ingest"))
    assert Client(monitor).get("/metrics/signals").status_code == 401
    assert sender.get("/metrics/signals").status_code == 403
    assert {key[1] for key in metrics(allowed) if key[0] == "state"} == {"plant/two"}
    assert allowed.get(f"{URL}/annotations").json() == {"annotations": []}
    assert sender.get(f"{URL}/annotations").status_code == 403


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_reads_it(filled: Client) -> None:
    text = filled.get("/metrics/signals").text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_incidents_as_annotations(filled: Client, monitor: FakeMonitor) -> None:
    now = time.time()
    second = monitor.engine.open_incident("other")
    monitor.engine.close_incident(second)
    told = filled.get(f"{URL}/annotations").json()["annotations"]
    assert [one["title"] for one in told] == ["other", NASTY]
    assert told[0]["tags"] == ["tocsin", "alarm", "info", "returned"]
    assert told[1]["tags"][-1] == "open"
    assert told[0]["text"].startswith("other: b: has not moved")
    assert abs(told[0]["time"] / 1000 - now) < 3600
    # Grafana gives milliseconds.
    first, last = round((now - 3600) * 1000), round((now + 3600) * 1000)
    assert len(filled.get(f"{URL}/annotations?from={first}&to={last}&match=o*").json()["annotations"]) == 1
    assert filled.get(f"{URL}/annotations?to={first}").json()["annotations"] == []
    assert len(filled.get(f"{URL}/annotations?limit=1").json()["annotations"]) == 1


def test_annotations_take_one_question_to_the_store(
    filled: Client, monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = [], StoreReader.incidents

    def counted(self: StoreReader, **given: Any) -> Any:
        asked.append(given)
        return ask(self, **given)

    monkeypatch.setattr(StoreReader, "incidents", counted)
    long_ago = round((time.time() - 3600) * 1000)
    assert filled.get(f"{URL}/annotations?to={long_ago}").json()["annotations"] == []
    assert len(asked) == 1, "it must not page through all incidents since then"

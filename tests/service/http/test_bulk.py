"""The same for many signals at once, and the overview of all of them."""

import json
import time
from typing import Any

import pytest

from tocsin_monitor.errors import NotReadyError

from .conftest import Client, error_of
from .fake import FakeMonitor
from .test_security import URL, give_token

NOW = time.time()


@pytest.fixture
def clients(monitor: FakeMonitor) -> dict[str, Client]:
    """An administrator, an operator of pumps, and somebody who configures them."""
    made = {
        "admin": Client(monitor, give_token(monitor)),
        "operator": Client(monitor, give_token(monitor, "operate", patterns=("pump/*",))),
        "writer": Client(monitor, give_token(monitor, "write", patterns=("pump/*",))),
    }
    for name in ("pump/1", "pump/2", "pump/3", "door"):
        assert made["admin"].put(f"{URL}/signals/{name}", json={}).status_code == 201
    for name in ("pump/1", "pump/3", "door"):
        monitor.engine.open_incident(name)
    return made


def access_log(clients: dict[str, Client], count: int) -> list[tuple[str, str, dict[str, Any]]]:
    deeds = clients["admin"].get(f"{URL}/access-log?limit={count}").json()["access_log"]
    return [(one["action"], one["target"], json.loads(one["details"])) for one in reversed(deeds)]


@pytest.mark.slow
def test_a_pattern_finds_open_incidents_that_concern_the_caller(clients: dict[str, Client]) -> None:
    reply = clients["operator"].post(f"{URL}/bulk/incidents", json={"pattern": "*", "acknowledge": {"note": "seen"}})
    assert reply.json() == {
        "done": 2,
        "failed": 0,
        "items": [
            {"signal": "pump/1", "incident": 1, "error": None},
            {"signal": "pump/3", "incident": 2, "error": None},
        ],
    }
    found = {one["signal"]: one for one in clients["admin"].get(f"{URL}/incidents").json()["incidents"]}
    assert {name: one["note"] for name, one in found.items()} == {"pump/1": "seen", "pump/3": "seen", "door": None}
    assert found["door"]["acknowledged"] is None
    said = {"acknowledge": {"note": "seen"}}
    assert access_log(clients, 2) == [
        ("POST", "/incidents/1/acknowledge", said),
        ("POST", "/incidents/2/acknowledge", said),
    ]


def test_names_that_cannot_be_fail_by_themselves(clients: dict[str, Client]) -> None:
    wanted = {"signals": ["pump/1", "door", "pump/9", "pump/2"], "snooze": {"seconds": 60}}
    reply = clients["operator"].post(f"{URL}/bulk/incidents", json=wanted).json()
    assert (reply["done"], reply["failed"]) == (1, 2)
    errors = {one["signal"]: one["error"] for one in reply["items"]}
    assert errors["pump/1"] is None
    assert "this token is for pump/* only" in errors["door"]
    assert errors["pump/9"] == "there is no signal 'pump/9'"
    assert "pump/2" not in errors  # it has no open incident
    assert clients["admin"].get(f"{URL}/incidents/3").json()["snoozed_until"] is None
    assert clients["admin"].get(f"{URL}/incidents/1").json()["snoozed_until"] is not None


def test_labels_of_many(clients: dict[str, Client]) -> None:
    said = {"label": "expected", "exclude": None, "note": None}
    reply = clients["admin"].post(f"{URL}/bulk/incidents", json={"pattern": "pump/*", "label": said}).json()
    assert reply["done"] == 2
    labels = [one["label"] for one in clients["admin"].get(f"{URL}/incidents").json()["incidents"]]
    assert labels == [None, "expected", "expected"]


def test_signals_are_reset_and_configured(clients: dict[str, Client]) -> None:
    reply = clients["writer"].post(f"{URL}/bulk/signals", json={"pattern": "*", "settings": {"unit": "bar"}}).json()
    assert reply["done"] == 3
    units = {one["name"]: one["unit"] for one in clients["admin"].get(f"{URL}/signals").json()["signals"]}
    assert units == {"door": None, "pump/1": "bar", "pump/2": "bar", "pump/3": "bar"}
    reply = clients["writer"].post(f"{URL}/bulk/signals", json={"signals": ["pump/2"], "reset": True}).json()
    assert reply == {"done": 1, "failed": 0, "items": [{"signal": "pump/2", "incident": None, "error": None}]}
    denied = clients["operator"].post(f"{URL}/bulk/signals", json={"signals": ["pump/2"], "reset": True})
    assert denied.status_code == 403


def test_windows_for_names_that_no_pattern_describes(clients: dict[str, Client]) -> None:
    wanted = {"signals": ["pump/1", "pump/3", "door"], "start": NOW, "end": NOW + 60, "reason": "new seals"}
    reply = clients["operator"].post(f"{URL}/bulk/maintenance", json=wanted).json()
    assert (reply["done"], reply["failed"]) == (2, 1)
    windows = clients["admin"].get(f"{URL}/maintenance").json()["maintenance"]
    assert [(one["pattern"], one["reason"]) for one in windows] == [("pump/1", "new seals"), ("pump/3", "new seals")]
    far = {**wanted, "end": NOW + 40 * 86400}
    assert "at most 30 days" in error_of(clients["operator"].post(f"{URL}/bulk/maintenance", json=far))["message"]


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("incidents", {"acknowledge": {}}, "give either signals or pattern"),
        ("incidents", {"signals": ["a"], "pattern": "a", "acknowledge": {}}, "give either signals or pattern"),
        ("incidents", {"pattern": "*"}, "give one of acknowledge, snooze and label"),
        ("incidents", {"signals": ["a"] * 1001, "acknowledge": {}}, "at most 1000"),
        ("signals", {"pattern": "*"}, "give one of reset, settings and template"),
        ("signals", {"pattern": "*", "reset": False}, "reset"),
    ],
)
def test_what_is_wrong_is_said(client: Client, path: str, given: dict[str, Any], said: str) -> None:
    response = client.post(f"{URL}/bulk/{path}", json=given)
    assert response.status_code == 422
    assert said in error_of(response)["message"]


def test_too_many_are_refused_before_anything_is_done(client: Client, monitor: FakeMonitor) -> None:
    with monitor.store.transaction() as writer:
        for number in range(201):
            monitor.engine._add(writer, f"s/{number}", ("value",))
    response = client.post(f"{URL}/bulk/signals", json={"pattern": "s/*", "reset": True})
    assert "at most 200 signals can be changed at once, got 201" in error_of(response)["message"]


def test_the_overview_has_what_concerns_the_caller_as_columns(clients: dict[str, Client]) -> None:
    items = [{"signal": "pump/1", "time": NOW + step, "value": step} for step in range(5)]
    clients["writer"].post(f"{URL}/observations", json=items)
    seen = clients["operator"].get(f"{URL}/overview").json()
    assert seen["name"] == ["pump/1", "pump/2", "pump/3"]
    assert {len(column) for column in seen.values()} == {3}
    assert seen["pace"] == [1.0, None, None]
    assert seen["value"][0] == [4.0]
    recent = clients["operator"].get(f"{URL}/recent?signals=pump/1&signals=door&signals=pump/9").json()["recent"]
    assert [point[1] for point in recent.pop("pump/1")] == [0, 1, 2, 3, 4]
    assert recent == {}
    assert clients["operator"].get(f"{URL}/recent").status_code == 422


def test_what_the_engine_does_not_accept_fails_by_itself(
    clients: dict[str, Client], monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge = monitor.engine.acknowledge

    def suspended(number: int, *given: Any) -> Any:
        if number == 2:
            raise NotReadyError("the monitor accepts no changes now")
        return acknowledge(number, *given)

    monkeypatch.setattr(monitor.engine, "acknowledge", suspended)
    reply = clients["admin"].post(f"{URL}/bulk/incidents", json={"pattern": "*", "acknowledge": {}})
    assert reply.status_code == 200
    assert [(one["incident"], one["error"]) for one in reply.json()["items"]] == [
        (1, None), (2, "the monitor accepts no changes now"), (3, None),
    ]  # fmt: skip


def test_signals_are_removed_as_the_preview_named_them(clients: dict[str, Client]) -> None:
    admin = clients["admin"]
    chosen = {"pattern": "pump/*"}
    shown = admin.post(f"{URL}/bulk/removal/preview", json=chosen).json()["signals"]
    assert [one["signal"] for one in shown] == ["pump/1", "pump/2", "pump/3"]
    for role in ("operator", "writer"):
        assert clients[role].post(f"{URL}/bulk/removal/preview", json=chosen).status_code == 403
        assert clients[role].post(f"{URL}/bulk/removal", json={**chosen, "count": 3}).status_code == 403
    refused = admin.post(f"{URL}/bulk/removal", json={**chosen, "count": 4})
    assert "there are 3 signals now, got 4" in error_of(refused)["message"]
    assert len(admin.get(f"{URL}/signals").json()["signals"]) == 4
    done = admin.post(f"{URL}/bulk/removal", json={**chosen, "count": 3}).json()
    assert (done["done"], done["failed"]) == (3, 0)
    assert [one["name"] for one in admin.get(f"{URL}/signals").json()["signals"]] == ["door"]
    assert [(deed, target) for deed, target, _ in access_log(clients, 3)] == [
        ("DELETE", f"/signals/pump/{number}") for number in (1, 2, 3)
    ]

"""Tokens that are limited to signals of some names, and the trail of who did what."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tocsin_monitor.hub import StreamMessage
from tocsin_monitor.store import writer as writer_module
from tocsin_monitor.tokens import is_within

from .conftest import HERE, Client, error_of
from .fake import FakeMonitor
from .test_security import URL, give_token

NOW = time.time()


@pytest.fixture
def clients(monitor: FakeMonitor) -> dict[str, Client]:
    """An administrator, and somebody whose pumps these are."""
    made = {
        "admin": Client(monitor, give_token(monitor)),
        "pumps": Client(monitor, give_token(monitor, "write", patterns=("pump/*", "tank"))),
    }
    for name in ("pump/1", "pump/2", "tank", "door"):
        assert made["admin"].put(f"{URL}/signals/{name}", json={}).status_code == 201
    for name in ("pump/1", "door"):
        number = monitor.engine.open_incident(name)
        monitor.engine.statuses[name] = replace(monitor.engine.statuses[name], incident=number)
    return made


def test_only_signals_of_its_names_are_seen(clients: dict[str, Client]) -> None:
    pumps = clients["pumps"]
    assert [one["name"] for one in pumps.get(f"{URL}/signals").json()["signals"]] == ["pump/1", "pump/2", "tank"]
    assert [one["signal"] for one in pumps.get(f"{URL}/incidents").json()["incidents"]] == ["pump/1"]
    assert pumps.get(f"{URL}/incidents/1").status_code == 200
    status = pumps.get(f"{URL}/status").json()
    assert (status["signals"], status["open_incidents"], status["sources"], status["sinks"]) == (3, 1, [], [])
    assert clients["admin"].get(f"{URL}/status").json()["signals"] == 4
    assert pumps.get(f"{URL}/me").json()["match"] == ["pump/*", "tank"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "given", "status"),
    [
        ("GET", "/signals/door", {}, 403),
        ("GET", "/signals/nowhere", {}, 403),
        ("GET", "/signals/door/-/history", {}, 403),
        ("GET", "/signals/door/-/details", {}, 403),
        ("GET", "/signals/door/-/reference", {}, 403),
        ("PUT", "/signals/door", {"json": {"unit": "x"}}, 403),
        ("PUT", "/signals/door/2", {"json": {}}, 403),
        ("POST", "/signals/door/-/reset", {}, 403),
        ("PUT", "/signals/door/-/reference", {"json": {"start": NOW - 9, "end": NOW}}, 403),
        ("DELETE", "/signals/door/-/reference", {}, 403),
        ("GET", "/stream?signals=door", {}, 403),
        ("GET", "/incidents?signal=door", {}, 404),
        ("GET", "/incidents/2", {}, 404),
        ("POST", "/incidents/2/acknowledge", {}, 404),
        ("DELETE", "/incidents/2/acknowledge", {}, 404),
        ("POST", "/incidents/2/snooze", {"json": {"seconds": 60}}, 404),
        ("DELETE", "/incidents/2/snooze", {}, 404),
        ("POST", "/incidents/2/label", {"json": {"label": "fault"}}, 404),
        ("POST", "/maintenance", {"json": {"pattern": "*", "start": NOW, "end": NOW + 60}}, 403),
        ("DELETE", "/maintenance/1", {}, 404),
    ],
)
def test_what_is_not_its_own_is_refused(
    clients: dict[str, Client], method: str, path: str, given: dict[str, Any], status: int
) -> None:
    window = {"pattern": "*", "start": NOW, "end": NOW + 60}
    assert clients["admin"].post(f"{URL}/maintenance", json=window).status_code == 201
    response = clients["pumps"].ask(method, f"{URL}{path}", **given)
    assert (response.status_code, bool(error_of(response))) == (status, True)
    assert clients["pumps"].get(f"{URL}/maintenance").json() == {"maintenance": []}


def test_observations_of_others_are_refused_one_by_one(clients: dict[str, Client]) -> None:
    sent = [{"signal": name, "value": 1.0} for name in ("pump/1", "door", "pump/new")]
    outcomes = clients["pumps"].post(f"{URL}/observations", json=sent).json()["outcomes"]
    assert [one["status"] for one in outcomes] == ["scored", "refused", "scored"]
    assert "does not allow signals with this name" in outcomes[1]["message"]
    assert clients["pumps"].post(f"{URL}/incidents/1/acknowledge").json()["acknowledged_by"].startswith("write-")
    window = {"pattern": "pump/1*", "start": NOW, "end": NOW + 60}
    assert clients["pumps"].post(f"{URL}/maintenance", json=window).status_code == 201
    assert clients["pumps"].delete(f"{URL}/maintenance/1").status_code == 204


@pytest.mark.parametrize(
    ("pattern", "within"),
    [
        ("pump/*", True), ("pump/1", True), ("pump/?", True), ("pump/*/x*", True), ("line ?", True), ("line 2", True),
        ("*", False), ("pump*", False), ("?ump/1", False), ("line *", False), ("line 22", False), ("pump/[1]", False),
    ],
)  # fmt: skip
def test_patterns_within_patterns(pattern: str, within: bool) -> None:
    assert is_within(pattern, ["pump/*", "line ?"]) is within


def test_events_about_others_are_left_out() -> None:
    def seen(kind: str, data: dict[str, Any]) -> dict[str, Any] | None:
        event = StreamMessage(1, "a-1", kind, data).limited_to(lambda name: name.startswith("pump/"))
        return None if event is None else event.data

    assert seen("verdicts", {"signals": {"pump/1": 1, "door": 2}}) == {"signals": {"pump/1": 1}}
    assert seen("verdicts", {"signals": {"door": 2}}) is None
    assert seen("incident", {"signal": "door", "id": 1}) is None
    assert seen("signal", {"name": "door", "change": "removed"}) is None
    assert seen("verdict", {"signal": "pump/1"}) == {"signal": "pump/1"}
    assert seen("status", {"ready": True}) == {"ready": True}
    assert seen("reset", {}) == {}


def test_tokens_with_limits_are_made_and_listed(client: Client) -> None:
    made = client.post(f"{URL}/tokens", json={"name": "boss", "role": "admin"})
    client.headers = {"Authorization": f"Bearer {made.json()['token']}"}
    wrong = client.post(f"{URL}/tokens", json={"name": "x", "role": "admin", "match": ["a*"]})
    assert "cannot be limited" in error_of(wrong)["message"]
    made = client.post(f"{URL}/tokens", json={"name": "gate", "role": "ingest", "match": ["pump/*"]})
    assert made.json()["match"] == ["pump/*"]
    assert [one["match"] for one in client.get(f"{URL}/tokens").json()["tokens"]] == [[], ["pump/*"]]


@pytest.mark.parametrize("days", [29.9, 30.1])
def test_what_is_hidden_comes_back_within_thirty_days(clients: dict[str, Client], days: float) -> None:
    end = time.time() + days * 86400
    asked = [
        clients["admin"].post(f"{URL}/maintenance", json={"pattern": "*", "start": NOW, "end": end}),
        clients["admin"].post(f"{URL}/incidents/1/snooze", json={"until": end}),
        clients["admin"].post(f"{URL}/incidents/1/snooze", json={"seconds": days * 86400}),
    ]
    if days < 30:
        assert [one.is_success for one in asked] == [True] * 3
    else:
        assert ["at most 30 days ahead" in error_of(one)["message"] for one in asked] == [True] * 3


def trail(client: Client, **query: Any) -> list[tuple[str, str, str, str]]:
    found = client.get(f"{URL}/access-log", params=query).json()["access_log"]
    return [(one["who"].split("-")[0], one["action"], one["target"], one["details"]) for one in found]


def test_who_did_what_is_kept(clients: dict[str, Client], monitor: FakeMonitor) -> None:
    pumps, admin = clients["pumps"], clients["admin"]
    before = len(trail(admin))
    pumps.post(f"{URL}/observations", json={"signal": "pump/1", "value": 1.0})
    pumps.get(f"{URL}/signals")
    pumps.post(f"{URL}/incidents/1/label", json={"label": "fault", "note": "seal"})
    pumps.post(f"{URL}/incidents/99/acknowledge")
    pumps.delete(f"{URL}/signals/pump/1")
    admin.delete(f"{URL}/signals/pump/1")
    found = trail(admin)
    assert len(found) == before + 2
    assert found[:2] == [
        ("admin", "DELETE", "/signals/pump/1", ""),
        ("write", "POST", "/incidents/1/label", '{"label":"fault","note":"seal"}'),
    ]
    name = admin.get(f"{URL}/access-log").json()["access_log"][1]["who"]
    assert len(trail(admin, who=name)) == 1
    assert trail(admin, limit=1) == found[:1]
    first = admin.get(f"{URL}/access-log", params={"limit": 1}).json()["access_log"][0]["id"]
    assert trail(admin, before=first) == found[1:]


def test_long_requests_are_cut_and_the_trail_stays_bounded(
    clients: dict[str, Client], monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOST_LOGGED", 5)
    monkeypatch.setattr(writer_module, "_LOG_PIECE", 1)
    admin = clients["admin"]
    for _ in range(9):
        assert admin.post(f"{URL}/incidents/1/label", json={"label": "fault", "note": "x" * 1999}).is_success
    found = trail(admin)
    assert len(found) == 5
    assert {len(details) for *_, details in found} == {500}


def test_a_deed_is_of_its_own_request_only(clients: dict[str, Client], monitor: FakeMonitor) -> None:
    before = len(trail(clients["admin"]))

    async def both() -> None:
        transport = httpx.ASGITransport(clients["admin"].app)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as asking:
            await asyncio.gather(
                *(
                    asking.post(f"{URL}/incidents/1/acknowledge", json={"note": name}, headers=client.headers)
                    for name, client in clients.items()
                    for _ in range(5)
                )
            )

    asyncio.run(both())
    found = trail(clients["admin"])[:10]
    assert len(trail(clients["admin"])) == before + 10
    assert {(who, details) for who, *_, details in found} == {
        ("admin", '{"note":"admin"}'),
        ("write", '{"note":"pumps"}'),
    }

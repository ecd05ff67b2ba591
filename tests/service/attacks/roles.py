"""Tokens that try more than they are for."""

from typing import Any

import httpx

from tests.service.attacks.door import bearer
from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack

SENT = {"signal": "pump/1", "value": 1.0}


def made_by_http(ground: Ground, role: str, *patterns: str) -> dict[str, str]:
    body = {"name": role, "role": role, "match": list(patterns)}
    reply = ground.ask("POST", "/api/v1/tokens", json=body)
    assert reply.status_code == 201, reply.text
    return bearer(reply.json()["token"])


def statuses(ground: Ground, headers: dict[str, str], *asked: tuple[str, str, Any]) -> set[int]:
    address = f"{ground.monitor.address}/api/v1"
    return {
        httpx.request(method, address + path, json=body, headers=headers).status_code
        if body is not None
        else httpx.request(method, address + path, headers=headers).status_code
        for method, path, body in asked
    }


def try_roles(ground: Ground) -> None:
    ground.send(SENT, {"signal": "door", "value": 1.0})
    changes = [
        ("PUT", "/signals/pump/1", {"unit": "bar"}),
        ("POST", "/signals/pump/1/-/reset", None),
        ("DELETE", "/signals/pump/1", None),
        ("POST", "/tokens", {"name": "x", "role": "admin"}),
        ("GET", "/access-log", None),
    ]
    looks = [
        ("GET", path, None) for path in ("/signals", "/incidents", "/status", "/events", "/stream", "/signals/pump/1")
    ]
    gateway = made_by_http(ground, "ingest", "pump/*")
    seen = statuses(ground, gateway, *changes, *looks, ("POST", "/incidents/1/acknowledge", None))
    assert seen == {403}, seen
    reply = ground.ask("POST", "/api/v1/observations", json=[SENT, {"signal": "door", "value": 2.0}], headers=gateway)
    assert [one["status"] for one in reply.json()["outcomes"]] == ["scored", "refused"]
    operator = made_by_http(ground, "operate")
    assert statuses(ground, operator, *changes, ("POST", "/observations", SENT)) == {403}
    assert statuses(ground, operator, *looks[:3]) == {200}
    end = "2100-01-01T00:00:00Z"
    forever = {"pattern": "*", "start": "2026-01-01T00:00:00Z", "end": end}
    assert statuses(ground, operator, ("POST", "/maintenance", forever)) == {422}
    trail = ground.ask("GET", "/api/v1/access-log").json()["access_log"]
    assert [(one["who"], one["action"], one["target"]) for one in trail[:2]] == [("admin", "POST", "/tokens")] * 2


@attack(tokens=True)
def tokens_try_more_than_their_role(ground: Ground) -> None:
    try_roles(ground)


@attack(tokens=True, postgresql=True)
def tokens_try_more_than_their_role_on_postgresql(ground: Ground) -> None:
    try_roles(ground)

"""Tokens that try more than they are for."""

import time
from collections.abc import Callable
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


SILENT = """
[[templates]]
match = "plant/*"
silent_after = "2s"
"""


@attack(config=SILENT, tokens=True)
def a_limited_token_hides_what_others_will_suffer(ground: Ground) -> None:
    try_to_hide(ground)


@attack(config=SILENT, tokens=True)
def a_limited_token_hides_what_others_will_suffer_after_a_restart(ground: Ground) -> None:
    try_to_hide(ground, then=lambda: ground.restart(kill=True))


def try_to_hide(ground: Ground, then: Callable[[], None] = lambda: None) -> None:
    limited = made_by_http(ground, "operate", "plant/line/a*")

    def events(name: str) -> list[dict[str, Any]]:
        """The events of a signal; the victim sends on meanwhile, until it is to be silent."""
        if name != "plant/line/victim":
            ground.send({"signal": "plant/line/victim", "value": 1.0})
        found: list[dict[str, Any]] = ground.ask("GET", f"/api/v1/events?signal={name}").json()["events"]
        return found

    ground.send({"signal": "plant/line/a1", "value": 1.0}, {"signal": "plant/line/a2", "value": 1.0})
    (own,) = ground.until(lambda: events("plant/line/a1"))
    for act, body in (("snooze", {"seconds": 86400}), ("acknowledge", {}), ("label", {"label": "expected"})):
        address = f"/api/v1/events/{own['id']}/{act}"
        reply = ground.ask("POST", address, json=body, headers=limited)
        assert reply.status_code == 200, (act, reply.text)
    then()
    (theirs,) = ground.until(lambda: events("plant/line/victim"))
    assert theirs["id"] != own["id"]
    assert (theirs["acknowledged"], theirs["snoozed_until"], theirs["label"]) == (None, None, None)
    for act, body in (("snooze", {"seconds": 86400}), ("acknowledge", {}), ("label", {"label": "expected"})):
        for kind in ("events", "incidents"):
            number = theirs["id"] if kind == "events" else theirs["first"]["incident"]
            reply = ground.ask("POST", f"/api/v1/{kind}/{number}/{act}", json=body, headers=limited)
            assert reply.status_code in (403, 404), (kind, act, reply.text)
    forever = {"pattern": "plant/line/*", "start": "2026-01-01T00:00:00Z", "end": time.time() + 3600}
    assert ground.ask("POST", "/api/v1/maintenance", json=forever, headers=limited).status_code == 403
    bulk = {"pattern": "plant/*", "acknowledge": {}}
    done = ground.ask("POST", "/api/v1/bulk/incidents", json=bulk, headers=limited).json()
    assert "victim" not in str(done)
    (theirs,) = events("plant/line/victim")
    assert theirs["acknowledged"] is None


@attack(tokens=True)
def a_limited_token_asks_which_other_signals_there_are(ground: Ground) -> None:
    ground.send({"signal": "mine/1", "value": 1.0}, {"signal": "theirs/1", "value": 1.0})
    writer = made_by_http(ground, "write", "mine/*")

    def told(name: str) -> list[Any]:
        """What is said about a signal, but for its name."""
        found = []
        for path in (
            f"/incidents?signal={name}", f"/events?signal={name}", f"/stream?signals={name}", f"/recent?signals={name}",
            f"/annotations?match={name}", f"/metrics/signals?match={name}", f"/signals/{name}",
            f"/signals?search={name}", f"/signals/{name}/-/history", f"/signals/{name}/-/details",
            f"/signals/{name}/-/trial", f"/signals/{name}/-/detectable",
        ):  # fmt: skip
            reply = ground.ask("GET", f"/api/v1{path}", headers=writer)
            found.append((path, reply.status_code, reply.text))
        for path, body in (
            ("/bulk/incidents", {"signals": [name], "acknowledge": {}}),
            ("/bulk/signals", {"signals": [name], "settings": {"unit": "x"}}),
            ("/trials", {"signals": [name], "detector": {}}),
            ("/observations", {"signal": name, "value": 1.0}),
            (f"/signals/{name}/-/clock", {}),
            (f"/signals/{name}/-/detectable", {}),
        ):
            reply = ground.ask("POST", f"/api/v1{path}", json=body, headers=writer)
            found.append((path, reply.status_code, reply.text))
        return [(path.replace(name, ""), status, text.replace(name, "")) for path, status, text in found]

    for there, absent in zip(told("theirs/1"), told("theirs/2"), strict=True):
        assert there == absent, (there, absent)

"""Settings of signals that no detector can have, or none should."""

import os

import httpx

from tests.fuzzing import ANYTHING, hostile_settings
from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack
from tocsin_monitor.rules import RULES

QUICKLY = "[server]\nrequests_per_second = 100000\nburst = 100000\n"


@attack(config=QUICKLY)
def settings_at_and_beyond_their_bounds(ground: Ground) -> None:
    accepted = 0
    with httpx.Client(base_url=f"{ground.monitor.address}/api/v1", timeout=70) as client:
        for given in hostile_settings():
            reply = client.put("/signals/hostile", json={"detector": given})
            assert reply.status_code in (200, 201, 422), (given, reply.text)
            if reply.status_code == 201:
                accepted += 1
                sent = client.post("/observations", json={"signal": "hostile", "value": 1.0})
                assert sent.json()["outcomes"][0]["status"] == "scored", (given, sent.text)
                assert client.delete("/signals/hostile").status_code == 204
    assert accepted > 80
    check_undisturbed(ground)


@attack(config=QUICKLY)
def hostile_settings_by_every_other_way_in(ground: Ground) -> None:
    ground.send({"signal": "tried", "value": 1.0})
    with httpx.Client(base_url=f"{ground.monitor.address}/api/v1", timeout=70) as client:
        for given in list(hostile_settings())[::17]:
            for path, body in (
                ("/signals/tried/-/trial", {"detector": given}),
                ("/trials", {"signals": ["tried"], "detector": given}),
                ("/templates", {"match": "hostile/*", "detector": given}),
                ("/bulk/signals", {"signals": ["tried"], "settings": {"detector": given}}),
            ):
                reply = client.post(path, json=body)
                assert reply.status_code in (200, 202, 422), (path, given, reply.text)
            if reply.is_success:
                client.put("/signals/tried", json={"detector": {}})
        for value in ANYTHING:
            for name in ("features", "silent_after", "unit", *RULES):
                reply = client.put("/signals/odd", json={name: value})
                assert reply.status_code in (200, 201, 422), (name, value, reply.text)
            for name in ("features", "silent_after", "unit", "every", "aggregate"):
                reply = client.post("/templates", json={"match": "odd/*", name: value})
                assert reply.status_code in (200, 422), (name, value, reply.text)
                (outcome,) = ground.send({"signal": "odd/1", "value": 1.0})
                assert outcome["status"] in ("scored", "part", "refused"), outcome
                client.delete("/signals/odd/1")
    check_undisturbed(ground)


def check_undisturbed(ground: Ground) -> None:
    """Nobody else noticed, and nothing was rebuilt."""
    assert ground.ask("GET", "/api/v1/status").json()["quarantined"] == []
    assert "rebuilding" not in ground.monitor.log.read_text()
    assert ground.sender.longest < 20, ground.sender.longest


@attack()
def paths_in_the_options_of_forecasters(ground: Ground) -> None:
    pipe = ground.monitor.folder / "pipe"
    os.mkfifo(pipe)
    ground.send({"signal": "named", "value": 1.0})
    told = set()
    for path in ("/etc/hostname", "/nowhere", "", "~nobody/x", "\0", str(pipe), "/dev/zero", "..", 7, ["/etc"], True):
        for forecaster in ({}, {"forecaster": "embedded"}, {"forecaster": "chronos"}):
            option = "model" if forecaster.get("forecaster") == "chronos" else "weights"
            given = {**forecaster, "forecaster_options": {option: path}}
            for method, target, body in (
                ("PUT", "/signals/new", {"detector": given}),
                ("PUT", "/signals/named", {"detector": given}),
                ("POST", "/signals/named/-/trial", {"detector": given}),
                ("POST", "/templates", {"match": "x/*", "detector": given}),
            ):
                reply = ground.ask(method, f"/api/v1{target}", json=body, timeout=10)
                assert reply.status_code == 422, (given, reply.text)
                told.add(reply.json()["error"]["message"].partition(", got")[0])
    assert len(told) == 2, told  # the same, whatever there is
    assert ground.ask("GET", "/api/v1/signals/new").status_code == 404
    check_undisturbed(ground)

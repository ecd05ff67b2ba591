"""Templates over HTTP, with the real engine: stored, tried, applied one by one, and in the access log."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from tests.service.engine.helpers import QUICK, Rig, settings_of, until
from tests.service.engine.test_trials import strange
from tests.service.http.conftest import Client, error_of
from tocsin.evaluation import detectable
from tocsin.evaluation.detectability import SIZES
from tocsin_monitor.engine import detectability
from tocsin_monitor.http.monitor_access import Figures
from tocsin_monitor.rules import RULES
from tocsin_monitor.tokens import hash_token, make_token

URL = "/api/v1"
FILE = {"match": "pump/*", "unit": "bar", "detector": {"gap": 4}}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, settings_of(templates=[FILE]))
    for number, name in enumerate(("pump/1", "pump/2", "door")):
        made.feed(name, strange(600, seed=number))
    yield made
    made.close()


@pytest.fixture
def clients(made: Rig) -> dict[str, Client]:
    monitor: Any = SimpleNamespace(
        settings=made.settings, store=made.store, engine=made.engine, hub=made.hub, metrics=made.metrics,
        figures=Figures(made.store), read_turns=asyncio.Semaphore(2), sources=[], sinks=[], started=time.time_ns(),
    )  # fmt: skip
    given: dict[str, Client] = {}
    for name, role, patterns in (
        ("ada", "admin", ()), ("bob", "write", ()), ("cy", "write", ("door",)), ("dan", "write", ("pump/2", "door")),
        ("eve", "read", ()),
    ):  # fmt: skip
        token = make_token()
        with made.store.transaction() as writer:
            writer.add_token(name, role, hash_token(token), 0, None, patterns)
        given[name] = Client(monitor, token)
    return given


def access_log(clients: dict[str, Client]) -> list[tuple[str, str, str, Any]]:
    deeds = clients["ada"].get(f"{URL}/access-log").json()["access_log"]
    return [(one["who"], one["action"], one["target"], one["details"]) for one in reversed(deeds)]


def finished(client: Client, begun: dict[str, Any]) -> dict[str, Any]:
    def now() -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"{URL}/trials/{begun['number']}").json()
        return found

    until(lambda: now()["stage"] != "running")
    return now()


@pytest.mark.slow
def test_a_template_is_stored_listed_applied_and_removed(made: Rig, clients: dict[str, Client]) -> None:
    ada = clients["ada"]
    of_file = {"match": "pump/*", "features": None, "silent_after": None, "unit": "bar", "every": None}
    of_file |= {"aggregate": "mean", "peers": False, "detector": {"gap": 4}, **dict.fromkeys(RULES)}
    more = {"stored": False, "file": None, "changed": None, "changed_by": None, "problem": None}
    assert ada.get(f"{URL}/templates").json() == {"templates": [{**of_file, **more}]}
    new = {"match": "pump/*", "silent_after": "10min", "detector": {"gap": 5}}
    reply = ada.post(f"{URL}/templates", json=new)
    assert (reply.status_code, reply.json()) == (200, {"signals": ["pump/1", "pump/2"], "own": []})
    (listed,) = clients["bob"].get(f"{URL}/templates").json()["templates"]
    assert (listed["stored"], listed["file"], listed["changed_by"]) == (True, of_file, "ada")
    assert (listed["silent_after"], listed["unit"], listed["detector"]) == (600.0, None, {"gap": 5})
    assert made.state.signals["pump/1"].row.settings["gap"] == 4
    reply = ada.post(f"{URL}/bulk/signals", json={"signals": ["pump/1", "pump/2"], "template": True})
    assert reply.json()["done"] == 2
    row = made.state.signals["pump/2"].row
    assert (row.settings, row.silent_after, row.unit) == ({**QUICK, "gap": 5}, 600.0, None)
    assert ada.delete(f"{URL}/templates/{quote('pump/*', safe='')}").json()["signals"] == ["pump/1", "pump/2"]
    assert ada.get(f"{URL}/templates").json() == {"templates": [{**of_file, **more}]}
    assert ada.delete(f"{URL}/templates/pump/*").status_code == 404
    told = json.dumps({"template": True}, separators=(",", ":"))
    (_, action, target, details), *others = access_log(clients)
    assert (action, target, json.loads(details)) == ("POST", "/templates", new)
    assert others == [
        ("ada", "PUT", "/signals/pump/1", told),
        ("ada", "PUT", "/signals/pump/2", told),
        ("ada", "DELETE", "/templates/pump/*", ""),
    ]


def test_only_administrators_change_templates(clients: dict[str, Client]) -> None:
    assert clients["bob"].post(f"{URL}/templates", json=FILE).status_code == 403
    assert clients["bob"].delete(f"{URL}/templates/pump/*").status_code == 403


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "match: field required"),
    ({"match": "a", "colour": "red"}, "colour: extra inputs are not permitted"),
    ({"match": "a", "silent_after": "soon"}, "silent_after: "),
    ({"match": "a", "silent_after": True}, "silent_after: must be seconds or text such as '5min', got True"),
    ({"match": "a", "aggregate": "median"}, "aggregate: input should be 'mean', 'last', 'max', 'sum' or 'count'"),
    ({"match": "a", "every": 60, "detector": {"interval": 5}}, "every sets the interval"),
    ({"match": "a", "detector": {"alarm_rate": 7}}, "detector: alarm_rate must be"),
    ({"match": "a", "detector": {"gapp": 7}}, "detector: a detector has no setting gapp; it has"),
]


@pytest.mark.slow
def test_what_is_wrong_is_said(clients: dict[str, Client]) -> None:
    for given, said in WRONG:
        for path, body in (("templates", given), ("trials", {"pattern": "*", "template": given})):
            reply = clients["ada"].post(f"{URL}/{path}", json=body)
            assert (reply.status_code, said in error_of(reply)["message"]) == (422, True), (path, given)


@pytest.mark.slow
def test_trials_of_many_are_for_who_began_them_and_for_their_signals(made: Rig, clients: dict[str, Client]) -> None:
    wanted = {"pattern": "*", "detector": {"alarm_rate": 0.01}}
    begun = clients["bob"].post(f"{URL}/trials", json=wanted)
    assert begun.status_code == 202
    found = finished(clients["bob"], begun.json())
    assert (found["stage"], found["signals"], found["tried"], found["complete"]) == ("done", 3, 3, True)
    assert found["raised"] == len(made.incidents())
    assert found["incidents"] == sum(one["incidents"] for one in found["found"]) < found["raised"]
    path = f"{URL}/trials/{found['number']}"
    assert clients["ada"].get(path).status_code == clients["cy"].delete(path).status_code == 404
    assert clients["bob"].delete(path).status_code == 204
    limited = finished(clients["cy"], clients["cy"].post(f"{URL}/trials", json=wanted).json())
    assert [one["signal"] for one in limited["found"]] == ["door"]
    new = {"match": "pump/*", "detector": {"alarm_rate": 0.01}}
    tried = finished(
        clients["ada"], clients["ada"].post(f"{URL}/trials", json={"pattern": "*", "template": new}).json()
    )
    assert (tried["signals"], {one["signal"] for one in tried["found"]}) == (2, {"pump/1", "pump/2"})
    assert len(access_log(clients)) == 0  # nothing changed
    for given, said in (({}, "give either detector or template"), ({"detector": {}, "template": new}, "give either")):
        assert said in error_of(clients["ada"].post(f"{URL}/trials", json={"pattern": "*", **given}))["message"]


@pytest.mark.slow
def test_settings_of_many_change_only_what_is_given(made: Rig, clients: dict[str, Client]) -> None:
    assert clients["bob"].put(f"{URL}/signals/pump/2", json={"detector": {"gap": 9}}).status_code == 200
    change = {"pattern": "*", "settings": {"detector": {"alarm_rate": 0.05}, "silent_after": 30}}
    assert clients["bob"].post(f"{URL}/bulk/signals", json=change).json()["done"] == 3
    rows = {name: signal.row for name, signal in made.state.signals.items()}
    assert {name: row.settings["gap"] for name, row in rows.items()} == {"pump/1": 4, "pump/2": 9, "door": 3}
    assert {row.settings["alarm_rate"] for row in rows.values()} == {0.05}
    assert {name: (row.unit, row.silent_after) for name, row in rows.items()} == {
        "pump/1": ("bar", 30), "pump/2": ("bar", 30), "door": (None, 30),
    }  # fmt: skip


OF_PUMPS = f"{URL}/templates/{quote('pump/*', safe='')}/-/detectable"


def faults_found(client: Client) -> dict[str, Any]:
    until(lambda: client.get(OF_PUMPS).json()["stage"] != "running")
    found: dict[str, Any] = client.get(OF_PUMPS).json()
    return found


@pytest.mark.slow
def test_what_a_templates_signals_find_is_for_those_who_see_the_same_signals(
    made: Rig, clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"cases": 2, "lasts": 20}
    monkeypatch.setattr(detectability, "detectable", lambda *given, **more: detectable(*given, **{**more, **few}))
    none = {"stage": "none", "signals": 0, "chosen": 0, "sentences": [], "tried": [], "message": ""}
    assert clients["bob"].get(OF_PUMPS).json() == none
    begun = clients["bob"].post(OF_PUMPS)
    assert (begun.status_code, begun.json()["signals"], begun.json()["chosen"]) == (202, 2, 2)
    found = faults_found(clients["bob"])
    assert (found["stage"], [one["signal"] for one in found["tried"]]) == ("done", ["pump/1", "pump/2"])
    assert [one["stage"] for one in found["tried"]] == ["done"] * 2
    assert {one["fault"] for one in found["tried"][0]["findings"]} == set(SIZES)
    assert all("in the median of 2 signals" in one for one in found["sentences"])
    assert len(found["sentences"]) == len(SIZES)
    assert clients["eve"].get(OF_PUMPS).json() == clients["ada"].get(OF_PUMPS).json() == found
    # Who is limited sees only what is theirs, and shares no run with others.
    assert clients["dan"].get(OF_PUMPS).json() == clients["cy"].get(OF_PUMPS).json() == none
    assert clients["dan"].post(OF_PUMPS).json()["signals"] == 1
    limited = faults_found(clients["dan"])
    assert [one["signal"] for one in limited["tried"]] == ["pump/2"]
    assert limited["sentences"] == found["tried"][1]["sentences"]
    assert "pump/1" not in json.dumps(limited)
    assert clients["ada"].get(OF_PUMPS).json() == found
    nothing = clients["cy"].post(OF_PUMPS)  # whether there are signals of others is not told
    assert (nothing.status_code, error_of(nothing)["message"]) == (422, "there is no signal to try this on")
    for method, status in (("POST", 403), ("DELETE", 403)):
        assert clients["eve"].ask(method, OF_PUMPS).status_code == status
    assert clients["bob"].delete(OF_PUMPS).status_code == 204
    assert clients["bob"].get(f"{URL}/templates/pump/*/-/detectable").json() == found  # slashes as they are
    for method in ("GET", "POST", "DELETE"):
        unknown = clients["ada"].ask(method, f"{URL}/templates/pump/-/detectable")
        assert (unknown.status_code, error_of(unknown)["message"]) == (404, "there is no template 'pump'")
    assert len(access_log(clients)) == 0  # nothing changed


@pytest.mark.slow
def test_what_can_be_found_in_a_signal_is_ended(clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object, progress: Callable[[int, int], None], **more: object) -> None:
        while True:
            progress(1, 30)
            time.sleep(0.01)

    monkeypatch.setattr(detectability, "detectable", endless)
    path = f"{URL}/signals/pump/1/-/detectable"
    assert clients["bob"].delete(path).status_code == 204  # there is none
    assert clients["bob"].post(path).status_code == 202
    assert clients["bob"].delete(path).status_code == 204
    until(lambda: clients["bob"].get(path).json()["stage"] != "running")
    assert clients["bob"].get(path).json()["stage"] == "cancelled"
    assert clients["cy"].delete(path).status_code == 403

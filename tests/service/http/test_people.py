"""Incidents, maintenance windows, and the state of the monitor itself."""

import math
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.service.store.helpers import incident as incident_row
from tests.service.store.helpers import tell
from tocsin import __version__
from tocsin_monitor.as_json import time_text

from .conftest import Client, error_of
from .fake import FakeMonitor

URL = "/api/v1"


@pytest.fixture
def incident(client: Client, monitor: FakeMonitor) -> str:
    client.post(f"{URL}/observations", json={"signal": "a/b", "value": 1})
    return f"{URL}/incidents/{monitor.engine.open_incident('a/b')}"


def test_incidents_are_listed_newest_first(client: Client, incident: str, monitor: FakeMonitor) -> None:
    second = monitor.engine.open_incident("a/b")

    def numbers(query: str) -> list[int]:
        return [one["id"] for one in client.get(f"{URL}/incidents?{query}").json()["incidents"]]

    assert numbers("") == [2, 1]
    assert numbers(f"before={second}") == [1]
    assert numbers("limit=1") == [2]
    assert numbers("signal=a%2Fb&kind=alarm&open=true") == [2, 1]
    assert numbers("open=false") == numbers("kind=silence") == []
    assert numbers("since=2200-01-01") == [2, 1]  # they go on
    assert numbers("like=1") == [2, 1]
    assert (numbers("suppressed=true"), numbers("suppressed=false")) == ([], [2, 1])
    assert client.get(f"{URL}/incidents?like=77").status_code == 404
    monitor.engine.close_incident(second)
    assert numbers("since=2200-01-01") == [1]
    assert client.get(f"{URL}/incidents/{second}").json()["ended"] == "returned"
    assert client.get(f"{URL}/incidents?signal=x").status_code == 404
    found = client.get(incident).json()
    assert found["features"] == {"a": 1.0, "b": 3.0}
    assert (found["view"], found["return_period"], found["severity"]) == ("movement", 1000.0, 3.0)
    assert found["explanation"] == "b: has not moved for 32 observations"


def test_what_a_budget_withheld_is_counted_and_ranked(client: Client, monitor: FakeMonitor) -> None:
    """By time: every hour, once in 10 observations is rarer than every second, once in 1,000 of them."""
    for signal, step in (("slow", 3600), ("fast", 1)):
        rows = [{"signal": signal, "time": 1767225600 + step * at, "value": 1} for at in range(3)]
        client.post(f"{URL}/observations", json=rows)
    made = [
        ("fast", 1000.0, 3.0),
        ("slow", 10.0, 2.0),
        ("fast", 500.0, 9.0),
        ("fast", 1000.0, 4.0),
        ("slow", None, None),
    ]
    for at, (signal, period, severity) in enumerate(made):
        row = monitor.engine.statuses[signal].id
        facts = incident_row(row, 10**18 + at, rarity=math.log(period or math.nan), severity=severity, open=False)
        with monitor.store.transaction() as writer:
            writer.change_incident(writer.put_incident(facts), withheld=at != 2)

    def numbers(query: str) -> list[int]:
        return [one["id"] for one in client.get(f"{URL}/incidents?{query}").json()["incidents"]]

    def count(query: str) -> int:
        return int(client.get(f"{URL}/incidents/count?{query}").json()["count"])

    assert numbers("withheld=true") == [5, 4, 2, 1]
    assert numbers("withheld=false") == [3]
    assert numbers("withheld=true&order=rarest") == [2, 4, 1, 5]
    assert numbers("order=rarest&limit=3&before=5") == [2, 4, 1]
    assert numbers("order=rarest&signal=fast") == [4, 1, 3]
    assert (count(""), count("withheld=true"), count("withheld=true&signal=fast")) == (5, 4, 2)
    assert (count("withheld=true&open=true"), count("like=1"), count("since=2200-01-01")) == (0, 1, 0)
    assert client.get(f"{URL}/incidents/count?signal=x").status_code == 404
    assert client.get(f"{URL}/incidents?order=severest").status_code == 422


def test_people_acknowledge_snooze_and_label(client: Client, incident: str) -> None:
    seen = client.post(f"{incident}/acknowledge", json={"note": "on it"}).json()
    assert (seen["acknowledged_by"], seen["note"]) == ("local", "on it")
    assert client.post(f"{incident}/acknowledge").json()["note"] == "on it"
    assert client.delete(f"{incident}/acknowledge").json()["acknowledged"] is None
    until = time_text((time.time_ns() // 10**9 + 86400) * 10**9)
    assert client.post(f"{incident}/snooze", json={"until": until}).json()["snoozed_until"] == until
    assert client.post(f"{incident}/snooze", json={"seconds": 60}).json()["snoozed_until"] < "2100"
    assert client.delete(f"{incident}/snooze").json()["snoozed_until"] is None
    labelled = client.post(f"{incident}/label", json={"label": "false alarm", "exclude": True}).json()
    assert (labelled["label"], labelled["excluded"]) == ("false alarm", True)
    kept = client.post(f"{incident}/label", json={"label": "not interesting", "hold": False}).json()
    assert (kept["label"], kept["holds"]) == ("not interesting", False)
    assert client.post(f"{incident}/label", json={"label": None}).json()["excluded"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("snooze", {}, "body"),
        ("snooze", {"seconds": 1, "until": "2100-01-01"}, "body"),
        ("snooze", {"seconds": 0}, "seconds"),
        ("snooze", {"until": "soon"}, "until"),
        ("label", {"label": "boring"}, "label"),
        ("label", {}, "label"),
        ("acknowledge", {"note": "x" * 2001}, "note"),
        ("acknowledge", {"note": "a\0"}, "note"),
    ],
)
def test_what_people_cannot_do_is_told(client: Client, incident: str, path: str, body: object, field: str) -> None:
    response = client.post(f"{incident}/{path}", json=body)
    assert response.status_code == 422
    assert error_of(response)["field"] == field


@pytest.mark.slow
@pytest.mark.parametrize("number", ["99", str(2**63 - 1), "0", "-1", str(2**63), "x", "1.5", "%00"])
def test_incidents_that_are_not_there(client: Client, number: str) -> None:
    for response in (client.get(f"{URL}/incidents/{number}"), client.delete(f"{URL}/incidents/{number}/snooze")):
        assert response.status_code in (404, 422)
        error_of(response)


def test_maintenance_windows_come_and_go(client: Client) -> None:
    window = {"pattern": "a/*", "start": "2026-01-01T00:00:00+01:00", "end": 1767312000, "reason": "new pump"}
    added = client.post(f"{URL}/maintenance", json=window)
    assert added.status_code == 201
    assert added.json()["start"] == "2025-12-31T23:00:00.000Z"
    assert client.get(f"{URL}/maintenance").json()["maintenance"] == [added.json()]
    assert client.delete(f"{URL}/maintenance/{added.json()['id']}").status_code == 204
    assert client.delete(f"{URL}/maintenance/{added.json()['id']}").status_code == 404
    backwards = client.post(f"{URL}/maintenance", json={**window, "end": "2020-01-01"})
    assert "end must be after start" in error_of(backwards)["message"]


def test_recurring_maintenance_is_previewed_and_listed_with_its_next_times(client: Client) -> None:
    window = {"pattern": "a/*", "schedule": "0 22 * * sat", "duration": 7200, "time_zone": "Europe/Vienna"}
    shown = client.post(f"{URL}/maintenance/preview", json=window)
    assert shown.status_code == 200, shown.text
    assert client.get(f"{URL}/maintenance").json() == {"maintenance": []}
    coming = shown.json()["occurrences"]
    for one in coming:
        start, end = (datetime.fromisoformat(one[name]) for name in ("start", "end"))
        local = start.astimezone(ZoneInfo("Europe/Vienna"))
        assert (local.hour, local.minute, local.isoweekday(), (end - start).total_seconds()) == (22, 0, 6, 7200)
    assert len(coming) == 5
    added = client.post(f"{URL}/maintenance", json=window)
    assert added.status_code == 201
    assert (added.json()["end"], added.json()["occurrences"]) == (None, coming)
    assert client.get(f"{URL}/maintenance").json()["maintenance"] == [added.json()]
    limited = {**window, "start": coming[0]["start"], "end": coming[1]["start"]}
    assert client.post(f"{URL}/maintenance", json=limited).json()["occurrences"] == coming[:1]
    for wrong, problem in (
        ({"schedule": "0 22 * *"}, "minute, hour, day"),
        ({"schedule": "0 0 30 2 *"}, "Bad day"),
        ({"time_zone": "Mars/Base"}, "time_zone must be"),
        ({"duration": 10**9}, "less than or equal"),
        ({"duration": None}, "both schedule and duration"),
        ({"schedule": None, "duration": None}, "start and end, or schedule"),
    ):
        for path in ("maintenance", "maintenance/preview"):
            refused = client.post(f"{URL}/{path}", json={**window, **wrong})
            assert refused.status_code == 422
            assert problem in error_of(refused)["message"]


def test_the_monitor_says_how_it_is(client: Client, monitor: FakeMonitor, incident: str) -> None:
    status = client.get(f"{URL}/status").json()
    assert (status["version"], status["ready"], status["signals"], status["open_incidents"]) == (
        __version__,
        True,
        1,
        1,
    )
    assert status["sources"][0]["last_error"] == "it went away"
    assert status["sinks"] == [{"name": "pager", "last_success": None, "last_error": None, "last_error_time": None}]
    assert 0 <= status["uptime"] < 60
    assert status["store_bytes"] > 0


def test_probes(client: Client, monitor: FakeMonitor) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.ask("HEAD", "/healthz").status_code == 200
    monitor.engine.ready = False
    assert client.get("/healthz").status_code == 200
    response = client.get("/readyz")
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    error_of(response)


def test_metrics_are_for_prometheus(client: Client, monitor: FakeMonitor) -> None:
    client.post(f"{URL}/observations", json=[{"signal": "secret name", "value": "x"}])
    client.get(f"{URL}/nowhere")
    text = client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain")
    assert 'tocsin_observations_total{source="http",status="refused"} 1.0' in text.text
    assert 'tocsin_http_requests_total{method="GET",status="404"} 1.0' in text.text
    assert "secret name" not in text.text
    up = next(line for line in text.text.splitlines() if line.startswith("tocsin_up_since_seconds "))
    assert abs(float(up.split()[1]) - time.time()) < 60


def test_sinks_that_were_removed_leave_the_metrics(client: Client, monitor: FakeMonitor, incident: str) -> None:
    with monitor.store.transaction() as writer:
        for sink in ("pager", "gone"):
            tell(writer, sink, 1, time.time_ns())
    text = client.get("/metrics").text
    assert 'tocsin_outbox_waiting{sink="pager"} 1.0' in text
    assert "gone" not in text
    assert client.get(f"{URL}/status").json()["outbox"] == {"pager": 1}


def test_the_page_and_its_files(client: Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    script = client.get("/static/js/main.js") if b"main.js" in page.content else client.get("/static/icon.svg")
    assert script.status_code == 200
    again = client.get("/static/icon.svg", headers={"If-None-Match": client.get("/static/icon.svg").headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "", "..%2f", "%2e%2e/http/app.py", "..%2fhttp%2fapp.py", "js/../../errors.py", "%00", "a%00", "C:%5Cx",
        "//etc/passwd", "....//errors.py", "x" * 9000, "index.html%00.js", "js", "js/", "%ff",
    ],
)  # fmt: skip
def test_only_files_of_the_page_are_served(client: Client, path: str) -> None:
    response = client.get(f"/static/{path}")
    assert response.status_code == 404
    error_of(response)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v1", 404),
        ("GET", "/docs", 404),
        ("GET", "/api/v1/status/", 404),
        ("DELETE", "/api/v1/status", 405),
        ("PATCH", "/api/v1/signals/a", 405),
        ("BREW", "/api/v1/signals", 405),
        ("POST", "/", 405),
    ],
)
def test_addresses_and_methods_that_are_not_there(client: Client, method: str, path: str, status: int) -> None:
    response = client.ask(method, path)
    assert response.status_code == status
    assert (status == 405) == ("allow" in response.headers)
    error_of(response)

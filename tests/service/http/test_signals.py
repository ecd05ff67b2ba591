from dataclasses import replace
from urllib.parse import quote

import pytest

from .conftest import Client, Make, error_of
from .fake import FakeMonitor

URL = "/api/v1/signals"
ODD = [
    "a",
    "a/b",
    "a%2Fb",
    "/a",
    "a/",
    "a b",
    "ä€🔥",
    "a?b#c&d=e",
    "a;b",
    "50% of 3",
    "x/-y",
    "a\\b",
    "'\"<>",
]


def observe(client: Client, name: str, *values: float) -> None:
    items = [{"signal": name, "time": 1767225600 + i, "value": value} for i, value in enumerate(values)]
    assert {one["status"] for one in client.post("/api/v1/observations", json=items).json()["outcomes"]} == {"scored"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_names_may_hold_anything_printable(client: Client, name: str) -> None:
    observe(client, name, 1.0)
    path = f"{URL}/{quote(name, safe='')}"
    assert client.get(path).json()["name"] == name
    assert client.get(f"{path}/-/history").json()["value"] == [[1.0]]
    assert client.get(f"{path}/-/details").json()["window"] == 4
    assert client.post(f"{path}/-/reset").json()["name"] == name
    assert client.get(f"{path}/-/state").content == name.encode()
    assert client.put(path, json={"unit": "bar"}).json()["unit"] == "bar"
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


TRICKS = (
    "", "%00", "a%00b", "%0A", "..%2F..%2Fetc%2Fpasswd", "%2e%2e", "a/-/nonsense", "a/-/", "a/-/-/-/history",
    "a/-/b/-/history", "a/-", "x" * 201, "x" * 20000, "%ff%fe", "%F0%9F", "/-/history", "%20a", "%ED%A0%80",
)  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_tricks_with_addresses_find_nothing(client: Client, method: str) -> None:
    for path in TRICKS:
        given = {"json": {}} if method == "PUT" and path not in ("%2e%2e", "..%2F..%2Fetc%2Fpasswd") else {}
        response = client.ask(method, f"{URL}/{path}", **given)
        assert response.status_code in (404, 405, 415, 422), path
        error_of(response)


def test_signals_are_chosen_by_name_silence_and_incident(client: Client, monitor: FakeMonitor) -> None:
    for name in ("Pump 2", "pump 1", "fan"):
        observe(client, name, 1.0, 2.0)

    def names(query: str) -> list[str]:
        return [one["name"] for one in client.get(f"{URL}?{query}").json()["signals"]]

    assert names("") == ["Pump 2", "fan", "pump 1"]
    assert names("search=PUMP") == ["Pump 2", "pump 1"]
    assert names("silent=true") == []
    assert names("open=false&search=fan") == ["fan"]
    assert client.get(f"{URL}?recent=1").json()["signals"][0]["recent"] == [
        ["2026-01-01T00:00:01.000Z", 2.0, 0.25, False]
    ]


def test_signals_come_by_name_or_the_most_unusual_first(client: Client, monitor: FakeMonitor) -> None:
    for name in ("a", "b", "c", "d", "e", "f"):
        observe(client, name, 1.0)
    statuses = monitor.engine.statuses
    nan = float("nan")
    for name, p, severity, more in (
        ("a", nan, nan, {}), ("b", 0.5, 0.4, {}), ("c", 0.01, 1.0, {}), ("d", 0.01, 2.0, {}),
        ("e", 0.9, 0.1, {"incident": 7}), ("f", 0.001, 3.0, {"incident": 8, "silent": True}),
    ):  # fmt: skip
        statuses[name] = replace(statuses[name], p=p, severity=severity, **more)

    def names(query: str) -> list[str]:
        return [one["name"] for one in client.get(f"{URL}?{query}").json()["signals"]]

    assert names("order=name") == names("") == ["a", "b", "c", "d", "e", "f"]
    assert names("order=unusual") == ["e", "f", "d", "c", "b", "a"]
    assert names("order=unusual&limit=2") == ["e", "f"]
    statuses["a"] = replace(statuses["a"], quarantined="its state cannot be read")
    assert names("order=unusual&limit=1") == ["a"]
    assert client.get(f"{URL}?order=severity").status_code == 422


def test_history_is_cut_where_asked(client: Client) -> None:
    observe(client, "a", *range(10))

    def values(query: str) -> list[float]:
        return client.get(f"{URL}/a/-/history?{query}").json()["value"][0]

    assert values("") == list(range(10))
    assert values("limit=3") == [7, 8, 9]
    assert values("from=2026-01-01T00:00:02Z&limit=3") == [2, 3, 4]
    assert values("from=1767225602&to=1767225603") == [2, 3]
    assert values("to=2026-01-01T00:00:03Z&limit=2") == [2, 3]


def test_history_of_several_features_is_in_columns(client: Client) -> None:
    items = [{"signal": "m", "time": 1767225600 + i, "value": [i, None]} for i in range(3)]
    client.post("/api/v1/observations", json=items)
    history = client.get(f"{URL}/m/-/history").json()
    assert history["value"] == [[0, 1, 2], [None, None, None]]
    assert history["low"] == [[None] * 3] * 2
    client.put(f"{URL}/new", json={"features": ["x", "y"]})
    assert client.get(f"{URL}/new/-/history").json()["value"] == [[], []]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=10001", "limit=x", "from=yesterday", "to=1e400", "from=" + "9" * 5000]
)
def test_history_says_what_is_accepted(client: Client, query: str) -> None:
    observe(client, "a", 1)
    response = client.get(f"{URL}/a/-/history?{query}")
    assert response.status_code == 422
    assert error_of(response)["field"] in ("limit", "from", "to")


def test_a_signal_is_created_and_then_configured(client: Client) -> None:
    assert client.put(f"{URL}/new", json={"unit": "bar", "features": ["x", "y"]}).status_code == 201
    changed = client.put(f"{URL}/new", json={"unit": "Pa"})
    assert changed.status_code == 200
    assert (changed.json()["features"], changed.json()["unit"]) == (["x", "y"], "Pa")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"unknown": 1}, "unknown"),
        ({"silent_after": -1}, "silent_after"),
        ({"silent_after": "x"}, "silent_after"),
        ({"features": []}, "features"),
        ({"features": [""]}, "features.0"),
        ({"unit": "a\0b"}, "unit"),
        ([], "body"),
    ],
)
def test_settings_that_cannot_be_are_refused(client: Client, body: object, field: str) -> None:
    response = client.put(f"{URL}/new", json=body)
    assert response.status_code == 422
    assert error_of(response)["field"] == field


def test_what_a_detector_refuses_is_told(client: Client) -> None:
    response = client.put(f"{URL}/new", json={"detector": {"nonsense": 1}})
    assert response.status_code == 422
    assert "no setting nonsense" in error_of(response)["message"]
    bad = client.put(f"{URL}/new", content=b'{"detector": {"x": [NaN]}}', headers={"Content-Type": "application/json"})
    assert (bad.status_code, error_of(bad)["field"]) == (422, "detector")


def test_a_state_goes_out_and_in(client: Client) -> None:
    observe(client, "a", 1)
    path, kind = f"{URL}/a/-/state", {"Content-Type": "application/octet-stream"}
    state = client.get(path)
    assert state.headers["content-type"] == "application/octet-stream"
    assert client.put(path, content=state.content, headers=kind).json()["name"] == "a"
    assert client.put(path, content=b"nonsense", headers=kind).status_code == 422
    assert client.put(path, json={}).status_code == 415


def test_a_reference_is_put_shown_and_removed(client: Client) -> None:
    observe(client, "a/b", 1, 2, 3)
    path, wanted = f"{URL}/a/b/-/reference", {"start": "2026-01-01T00:00:00.000Z", "end": "2026-01-01T00:00:02.000Z"}
    missing = client.get(path)
    assert (missing.status_code, error_of(missing)["message"]) == (404, "signal 'a/b' has no reference")
    put = client.put(path, json={"start": 1767225600, "end": "2026-01-01T00:00:02"})
    assert put.status_code == 200
    assert {name: put.json()[name] for name in wanted} == wanted
    assert client.get(path).json() == put.json() == client.get(f"{URL}/a/b").json()["reference"]
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert client.get(f"{URL}/a/b").json()["reference"] is None


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"start": "yesterday", "end": 1767225600}, "start", "got 'yesterday'"),
        ({"start": 1767225600, "end": None}, "end", "ISO 8601 time or a Unix time, got None"),
        ({"start": 1767225600}, "end", "required"),
        ({"start": 1767225600, "end": 1767225601, "signal": "b"}, "signal", "not permitted"),
    ],
)
def test_a_reference_needs_two_times(client: Client, body: object, field: str, told: str) -> None:
    observe(client, "a", 1)
    response = client.put(f"{URL}/a/-/reference", json=body)
    assert response.status_code == 422
    error = error_of(response)
    assert (error["field"], told in error["message"]) == (field, True), error


def test_a_reference_of_no_signal(client: Client) -> None:
    response = client.put(f"{URL}/a/-/reference", json={"start": 1767225600, "end": 1767225601})
    assert (response.status_code, error_of(response)["message"]) == (404, "there is no signal 'a'")
    assert client.get(f"{URL}/a/-/reference").status_code == 404


def test_while_the_monitor_starts_no_signal_is_said_to_be_missing(make: Make) -> None:
    monitor = make()
    monitor.engine.ready, monitor.engine.progress = False, "reading what is stored: 1 of 2 signals"
    client = Client(monitor)
    for path in (URL, f"{URL}/a", f"{URL}/a/-/reference"):
        response = client.get(path)
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert "1 of 2" in error_of(response)["message"]


def test_a_history_for_a_chart_keeps_what_stands_out(client: Client) -> None:
    observe(client, "a", *(1.0 if i != 555 else 50.0 for i in range(900)))
    whole = client.get(f"{URL}/a/-/history?points=1000").json()
    assert (len(whole["times"]), whole["thinned"]) == (900, False)
    few = client.get(f"{URL}/a/-/history?points=200").json()
    assert few["thinned"]
    assert len(few["times"]) <= 200
    assert max(few["value"][0]) == 50.0
    part = client.get(f"{URL}/a/-/history?points=200&from=1767225600&to=1767225609").json()
    assert (len(part["times"]), part["thinned"]) == (10, False)
    for wrong in (199, 10_001):
        assert error_of(client.get(f"{URL}/a/-/history?points={wrong}"))["field"] == "points"

import asyncio
import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin_monitor.errors import NotReadyError, OverloadedError, StoreError
from tocsin_monitor.http import bodies, observations
from tocsin_monitor.http.bodies import observation_of, read_body
from tocsin_monitor.http.errors import HttpError

from .conftest import HERE, Client, Make, error_of
from .fake import FakeMonitor

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tocsin_monitor.observations import Outcome

URL = "/api/v1/observations"
T0 = "2026-01-01T00:00:00Z"
NDJSON = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}


def test_one_many_and_lines_give_the_same_outcomes(make: Make) -> None:
    items = [{"signal": "a", "time": 1767225600 + i, "value": i} for i in range(3)]
    one = [Client(monitor := make()).post(URL, json=item).json()["outcomes"][0] for item in items[:1]]
    many = Client(make()).post(URL, json=items).json()["outcomes"]
    lines = Client(make()).post(URL, content="\n".join(map(json.dumps, items)), headers=NDJSON)
    assert one == many[:1]
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == many
    assert many[1] == {
        "signal": "a", "time": "2026-01-01T00:00:01.000Z", "status": "scored", "p": 0.25,
        "severity": -math.log10(0.2), "alarm": False, "forecast": 1.0, "low": None, "high": 2.5, "warm": True,
        "incident": None, "message": None,
    }  # fmt: skip
    assert monitor.engine.submitted[0].source == "http"


def test_values_of_all_forms_reach_the_engine(client: Client, monitor: FakeMonitor) -> None:
    values: list[Any] = [1, 2.5, None, [1, None], {"x": 1, "y": None}]
    client.post(URL, json=[{"signal": f"s{i}", "time": T0, "value": value} for i, value in enumerate(values)])
    taken = monitor.engine.submitted[0].observations
    assert [repr(one.values) for one in taken] == ["(1.0,)", "(2.5,)", "(nan,)", "(1.0, nan)", "(1.0, nan)"]
    assert [one.features for one in taken] == [None, None, None, None, ("x", "y")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"signal": "a", "value": "1"}, "a value must be a number, null"),
        ({"signal": "a", "value": True}, "a value must be a number, null"),
        ({"signal": "a", "value": [True]}, "a value must be a number, null"),
        ({"signal": "a", "value": [[1]]}, "a value must be a number, null"),
        ({"signal": "a", "value": []}, "1 to 64 values"),
        ({"signal": "a", "value": [0] * 65}, "1 to 64 values"),
        ({"signal": "a", "value": {}}, "1 to 64 values"),
        ({"signal": "a", "value": 10**400}, "must be finite"),
        ({"signal": "a"}, "needs value"),
        ({"value": 1}, "needs signal"),
        ({"signal": "", "value": 1}, "1 to 200 printable"),
        ({"signal": 5, "value": 1}, "1 to 200 printable"),
        ({"signal": "a\n", "value": 1}, "1 to 200 printable"),
        ({"signal": "a", "value": 1, "timestamp": 5}, "but no timestamp"),
        ({"signal": "a", "value": 1, "time": "yesterday"}, "a time must be"),
        ({"signal": "a", "value": 1, "time": True}, "a time must be"),
        ({"signal": "a", "value": 1, "time": 10**30}, "a time must be"),
        ([], "an observation must be an object"),
        (None, "an observation must be an object"),
        (5, "an observation must be an object"),
    ],
)
def test_what_cannot_be_taken_is_refused_and_the_others_go_on(
    client: Client, monitor: FakeMonitor, item: Any, told: str
) -> None:
    good = {"signal": "good", "time": T0, "value": 1}
    response = client.post(URL, json=[item, good, item])
    assert response.status_code == 200
    outcomes = response.json()["outcomes"]
    assert [one["status"] for one in outcomes] == ["refused", "scored", "refused"]
    assert told in outcomes[0]["message"]
    assert len(monitor.engine.submitted[0].observations) == 1


def test_an_infinite_number_is_refused(client: Client) -> None:
    response = client.post(URL, content=b'{"signal": "a", "value": 1e999}', headers=JSON)
    assert "must be finite" in response.json()["outcomes"][0]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "told"),
    [
        (b"", JSON, "the body is not valid JSON"),
        (b'[{"signal": "a",\n "value": }]', JSON, "line 2 column 11"),
        (b'{"signal": "a", "value": NaN}', JSON, "write null for a missing value"),
        (b'{"signal": "a", "value": -Infinity}', JSON, "write null for a missing value"),
        (b"\xff\xfe", JSON, "the body is not valid JSON"),
        (b"[" * 100_000, JSON, "the body is not valid JSON"),
        (b'"\\ud800"', JSON, "the body is not valid JSON"),
        (b"5", JSON, "an observation (a JSON object) or an array"),
        (b'{"signal": "a", "value": 1}\n{"signal"', NDJSON, "line 2 is not valid JSON"),
    ],
)
def test_of_a_malformed_body_nothing_is_taken(
    client: Client, monitor: FakeMonitor, body: bytes, headers: dict[str, str], told: str
) -> None:
    response = client.post(URL, content=body, headers=headers)
    assert response.status_code == 422
    assert told in error_of(response)["message"]
    assert monitor.engine.submitted == []


def test_keys_given_twice_are_fine(client: Client) -> None:
    response = client.post(URL, content=b'{"signal": "a", "value": 1, "value": 2}', headers=JSON)
    assert response.json()["outcomes"][0]["status"] == "scored"


def test_no_observations_are_no_outcomes(client: Client, monitor: FakeMonitor) -> None:
    assert client.post(URL, json=[]).json() == {"outcomes": []}
    assert client.post(URL, content=b"\n\n", headers=NDJSON).text == ""
    assert monitor.engine.submitted == []


def test_a_duplicate_gets_the_verdict_that_stands(client: Client) -> None:
    client.post(URL, json={"signal": "a", "time": T0, "value": 200})
    outcome = client.post(URL, json={"signal": "a", "time": T0, "value": 1}).json()["outcomes"][0]
    assert (outcome["status"], outcome["alarm"]) == ("duplicate", True)


@pytest.mark.parametrize(
    ("refusal", "status", "after"),
    [(OverloadedError(1.5), 429, "2"), (NotReadyError("reading what is stored"), 503, "5")],
)
def test_who_comes_too_early_is_told_when_to_come_back(
    client: Client, monitor: FakeMonitor, refusal: Exception, status: int, after: str
) -> None:
    monitor.engine.refusal = refusal
    response = client.post(URL, json={"signal": "a", "value": 1})
    assert (response.status_code, response.headers["retry-after"]) == (status, after)
    assert error_of(response)["message"] == str(refusal)


def test_what_the_store_says_stays_in_the_log(client: Client, monitor: FakeMonitor) -> None:
    monitor.engine.refusal = StoreError("postgresql://user:password@host is away")
    response = client.post(URL, json={"signal": "a", "value": 1})
    assert response.status_code == 503
    assert "password" not in response.text


def test_a_failure_tells_nothing_of_its_cause(client: Client, monitor: FakeMonitor) -> None:
    monitor.engine.refusal = KeyError("something inside")
    response = client.post(URL, json={"signal": "a", "value": 1})
    assert response.status_code == 500
    assert "inside" not in error_of(response)["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/octet-stream"])
def test_bodies_of_other_types_are_not_taken(client: Client, kind: str) -> None:
    response = client.post(URL, content=b"{}", headers={"Content-Type": kind})
    assert response.status_code == 415
    assert "application/json" in error_of(response)["message"]


def test_compressed_bodies_are_not_taken(client: Client) -> None:
    response = client.post(URL, content=b"{}", headers={**JSON, "Content-Encoding": "gzip"})
    assert response.status_code == 415


def test_too_many_at_once_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "MOST_OBSERVATIONS", 2)
    response = client.post(URL, json=[{"signal": "a", "value": 1}] * 3)
    assert response.status_code == 413
    assert "at most 2 observations" in error_of(response)["message"]


def test_a_client_that_goes_away_does_not_stop_the_engine(monitor: FakeMonitor) -> None:
    monitor.engine.held = []

    async def going_away() -> "Future[list[Outcome]]":
        transport = httpx.ASGITransport(Client(monitor).app)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            asking = asyncio.create_task(client.post(URL, json={"signal": "a", "value": 1}))
            while not monitor.engine.held:
                await asyncio.sleep(0.001)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.sleep(0.01)
            return monitor.engine.held[0]

    future = asyncio.run(going_away())
    assert not future.cancelled()
    assert future.set_running_or_notify_cancel()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["signal", "time", "value", "x"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(json_values)
def test_any_item_is_an_observation_or_a_refusal(item: Any) -> None:
    try:
        taken = observation_of(item)
    except ValueError:
        return
    assert len(taken.values) == len(taken.features or taken.values)
    assert all(not math.isinf(value) for value in taken.values)


@pytest.mark.slow
@given(st.binary(max_size=30) | st.text(max_size=30).map(str.encode), st.booleans())
def test_any_body_is_read_or_refused(body: bytes, lines: bool) -> None:
    with suppress(HttpError):
        assert len(read_body(body, lines=lines, most=10)) <= 10


def test_lines_are_counted_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    original = bodies._parse
    monkeypatch.setattr(bodies, "_parse", lambda line, what: parsed.append(line) or original(line, what))
    with pytest.raises(HttpError, match="at most 3 observations") as refused:
        read_body(b"\n\n" + b'{"signal": "a", "value": 1}\n' * 1000 + b"no JSON", lines=True, most=3)
    assert refused.value.status_code == 413
    assert len(parsed) == 3

"""OpenTelemetry metrics; tests/service/test_push.py has its real SDK."""

import gzip
import json
import math
import time
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from tocsin_monitor.config import PushSettings
from tocsin_monitor.errors import OverloadedError
from tocsin_monitor.http import push as push_module
from tocsin_monitor.plugins.otlp import OtlpRule
from tocsin_monitor.tokens import hash_token, make_token

from .conftest import Client, Make
from .fake import FakeMonitor

URL = "/v1/metrics"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
SECOND = 10**9
T0 = 1_767_225_600 * SECOND
DELTA, CUMULATIVE = 1, 2


def attributes(**given: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in given.items()]


def request(*metrics: dict[str, Any], **resource: str) -> dict[str, Any]:
    named = {"resource": {"attributes": attributes(**(resource or {"service_name": "shop"}))}}
    return {"resourceMetrics": [{**named, "scopeMetrics": [{"scope": {"name": "web"}, "metrics": list(metrics)}]}]}


def point(seconds: float, value: float | None = None, **more: Any) -> dict[str, Any]:
    number = {} if value is None else {"asDouble": value}
    return {"timeUnixNano": str(T0 + int(seconds * SECOND)), **number, **more}


def gauge(name: str, *points: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "gauge": {"dataPoints": list(points)}}


def total(name: str, *points: dict[str, Any], temporality: int = CUMULATIVE, monotonic: bool = True) -> dict[str, Any]:
    data = {"dataPoints": list(points), "aggregationTemporality": temporality, "isMonotonic": monotonic}
    return {"name": name, "sum": data}


def post(client: Client, body: dict[str, Any]) -> httpx.Response:
    return client.post(URL, content=json.dumps(body), headers=JSON)


def taken(monitor: FakeMonitor) -> list[tuple[str, float, float]]:
    all_of = [one for batch in monitor.engine.submitted for one in batch.observations]
    return [(one.signal, ((one.time or 0) - T0) / SECOND, one.values[0]) for one in all_of]


def test_gauges_in_protobuf_and_json_plain_and_compressed(client: Client, monitor: FakeMonitor) -> None:
    from google.protobuf import json_format

    body = request(gauge("room.temperature", point(0, 21.5, attributes=attributes(room="hall")), point(1, 22)))
    reply = post(client, body)
    assert (reply.status_code, reply.json()) == (200, {})
    found = taken(monitor)
    assert found == [
        ('room.temperature{room="hall", service_name="shop"}', 0.0, 21.5),
        ('room.temperature{service_name="shop"}', 1.0, 22.0),
    ]
    assert monitor.engine.submitted[0].source == "otlp"
    packed = json_format.ParseDict(body, ExportMetricsServiceRequest()).SerializeToString()
    for content, headers in (
        (packed, PROTOBUF),
        (gzip.compress(packed), {**PROTOBUF, "Content-Encoding": "gzip"}),
        (gzip.compress(json.dumps(body).encode()), {**JSON, "Content-Encoding": "gzip"}),
    ):
        monitor.engine.submitted.clear()
        reply = client.post(URL, content=content, headers=headers)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == headers["Content-Type"]
        assert taken(monitor) == found


def test_cumulative_sums_become_rates_and_others_stay_as_they_are(client: Client, monitor: FakeMonitor) -> None:
    start = {"startTimeUnixNano": str(T0 - 1000 * SECOND)}
    post(client, request(total("requests", point(0, 100, **start))))
    assert taken(monitor) == []
    again = {"startTimeUnixNano": str(T0 + 15 * SECOND)}  # the process started again between two points
    body = request(
        total("requests", point(10, 130, **start), point(20, 25, **again), point(30, 40, **again)),
        total("in.flight", point(10, 5), monotonic=False),
        total("bytes", point(10, 7), point(20, 3), temporality=DELTA),
    )
    monitor.engine.refusal = OverloadedError(1.0)
    assert post(client, body).status_code == 429
    monitor.engine.refusal = None
    for _ in range(2):
        assert post(client, body).status_code == 200
    requests = [one[1:] for one in taken(monitor) if one[0].startswith("requests")]
    assert requests == [(10.0, 3.0), (20.0, 5.0), (30.0, 1.5)]
    assert [one[2] for one in taken(monitor) if one[0].startswith("in.flight")] == [5.0, 5.0]
    assert [one[2] for one in taken(monitor) if one[0].startswith("bytes")][:2] == [7.0, 3.0]


@pytest.mark.parametrize("kind", ["histogram", "exponentialHistogram"])
def test_histograms_become_a_count_and_a_mean(client: Client, monitor: FakeMonitor, kind: str) -> None:
    def histogram(temporality: int, *points: dict[str, Any]) -> dict[str, Any]:
        return request({"name": "took", kind: {"aggregationTemporality": temporality, "dataPoints": list(points)}})

    post(client, histogram(DELTA, point(0, count="4", sum=10.0), point(1, count="0", sum=0.0)))
    found = taken(monitor)
    assert [one[0] for one in found[:2]] == ['took.count{service_name="shop"}', 'took.mean{service_name="shop"}']
    assert [repr(one[2]) for one in found] == ["4.0", "2.5", "0.0", "nan"]
    monitor.engine.submitted.clear()
    post(client, histogram(CUMULATIVE, point(10, count="4", sum=10.0), point(20, count="24", sum=30.0)))
    assert [one[1:] for one in taken(monitor)] == [(20.0, 2.0), (20.0, 1.0)]


def test_summaries_have_a_count_and_a_mean(client: Client, monitor: FakeMonitor) -> None:
    points = [point(0, count="1", sum=2.0), point(10, count="11", sum=32.0)]
    post(client, request({"name": "took", "summary": {"dataPoints": points}}))
    assert [one[2] for one in taken(monitor)] == [1.0, 3.0]


def test_points_without_a_value_are_missing(client: Client, monitor: FakeMonitor) -> None:
    post(client, request(gauge("g", point(0, 1, flags=1), point(1), point(2, asInt="3"))))
    assert [repr(one[2]) for one in taken(monitor)] == ["nan", "nan", "3.0"]


def test_rules_name_and_choose(make: Make) -> None:
    monitor = make()
    rule = OtlpRule(match="room.*", signal="{service_name}/{otel_scope_name}/{room_id}/{process_pid}")
    monitor.settings = monitor.settings.model_copy(update={"push": PushSettings(otlp=(rule,))})
    body = request(
        gauge("room.t", point(0, 1, attributes=attributes(room_id="7"))),
        gauge("other", point(0, 1)),
        service_name="shop", process_pid="12",
    )  # fmt: skip
    assert post(Client(monitor), body).json() == {}
    assert taken(monitor) == [("shop/web/7/12", 0.0, 1.0)]


def test_refused_points_are_told_in_the_reply(client: Client, monitor: FakeMonitor) -> None:
    body = request(
        gauge("good", point(0, 1)),
        total("odd", point(0, 1), point(1, 1), temporality=0),
        gauge("late", {"timeUnixNano": str(2**64 - 1), "asDouble": 1}),
    )
    reply = post(client, body)
    assert reply.status_code == 200
    partial = reply.json()["partialSuccess"]
    assert partial["rejectedDataPoints"] == "3"
    assert "'odd' has no aggregation temporality" in partial["errorMessage"]
    assert len(taken(monitor)) == 1
    two = {
        "resourceMetrics": [
            *request(gauge("g", point(0, 1)), service_name="a", process_pid="1")["resourceMetrics"],
            *request(gauge("g", point(0, 1)), service_name="a", process_pid="2")["resourceMetrics"],
        ]
    }
    assert "two series map to the same signal" in post(client, two).json()["partialSuccess"]["errorMessage"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"\xff", PROTOBUF, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'{"resourceMetrics": 3}', JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b'{"resourceMetrics": [' + b'{"scopeMetrics": [' * 5000, JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b"x", {"Content-Type": "text/plain"}, 415),
        (b"x", {**PROTOBUF, "Content-Encoding": "gzip"}, 400),
        (b"x", {**PROTOBUF, "Content-Encoding": "zstd"}, 415),
    ],
)
def test_what_is_no_request_is_refused(client: Client, body: bytes, headers: dict[str, str], status: int) -> None:
    reply = client.post(URL, content=body, headers=headers)
    assert reply.status_code == status
    if headers is JSON:
        assert reply.json()["code"] == 3
        assert reply.json()["message"]
    else:  # a google.rpc.Status
        assert reply.headers["content-type"] == "application/x-protobuf"
        assert reply.content[:1] == b"\x08"


def test_overload_is_told_in_protobuf(client: Client, monitor: FakeMonitor) -> None:
    monitor.engine.refusal = OverloadedError(4.0)
    body = ExportMetricsServiceRequest()
    one = body.resource_metrics.add().scope_metrics.add().metrics.add(name="g").gauge.data_points.add()
    one.time_unix_nano, one.as_double = T0, 1.0
    reply = client.post(URL, content=body.SerializeToString(), headers=PROTOBUF)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "4")
    code, text = reply.content[1], reply.content[4:]
    assert code == 8
    assert text.decode().startswith("the monitor's backlog is full")
    monitor.engine.refusal = None
    reply = client.post(URL, content=body.SerializeToString(), headers=PROTOBUF)
    assert ExportMetricsServiceResponse.FromString(reply.content) == ExportMetricsServiceResponse()


@pytest.mark.slow
def test_tokens_and_bombs(make: Make) -> None:
    monitor = make(max_body_bytes=2**20)
    token = make_token()
    with monitor.store.transaction() as writer:
        writer.add_token("sender", "ingest", hash_token(token), 0, None, ("good*",))
    assert post(Client(monitor), request(gauge("good", point(0, 1)))).status_code == 401
    client = Client(monitor, token)
    reply = post(client, request(gauge("good", point(0, 1)), gauge("bad", point(0, 1))))
    assert reply.json()["partialSuccess"]["rejectedDataPoints"] == "1"
    bomb = gzip.compress(bytes(2**26))
    assert client.post(URL, content=bomb, headers={**PROTOBUF, "Content-Encoding": "gzip"}).status_code == 413


def test_the_extra_is_named_if_it_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(module: str) -> None:
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(push_module, "find_spec", nothing)
    reply = post(client, {})
    assert reply.status_code == 501
    assert "pip install 'tocsin-monitor[protobuf]'" in reply.json()["message"]


def _valid() -> bytes:
    from google.protobuf import json_format

    body = request(gauge("g", point(0, 1, attributes=attributes(a="b"))), total("s", point(0, 1), point(1, 2)))
    return bytes(json_format.ParseDict(body, ExportMetricsServiceRequest()).SerializeToString())


valid = _valid()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=100), st.just(valid)), st.integers(0, len(valid) - 1), st.integers(0, 255))
def test_broken_bytes_are_refused(client: Client, raw: bytes, place: int, bits: int) -> None:
    spoilt = bytearray(raw)
    if spoilt:
        spoilt[place % len(spoilt)] ^= bits
    assert client.post(URL, content=bytes(spoilt), headers=PROTOBUF).status_code in (200, 400)


keys = st.sampled_from(
    ["resourceMetrics", "scopeMetrics", "metrics", "name", "gauge", "sum", "dataPoints", "asDouble", "flags", "x"]
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(keys, inside, max_size=3)),
    max_leaves=10,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(anything)
def test_odd_json_is_refused(client: Client, tree: Any) -> None:
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": tree}]}]}
    assert post(client, body).status_code in (200, 400)
    assert post(client, tree).status_code in (200, 400)


def test_nan_is_missing(client: Client, monitor: FakeMonitor) -> None:
    post(client, request(gauge("g", {"timeUnixNano": str(T0), "asDouble": "NaN"})))
    assert math.isnan(taken(monitor)[0][2])


def histogram(name: str, *points: dict[str, Any], temporality: int = CUMULATIVE) -> dict[str, Any]:
    return {"name": name, "histogram": {"dataPoints": list(points), "aggregationTemporality": temporality}}


def test_a_histogram_without_a_sum_has_no_mean(client: Client, monitor: FakeMonitor) -> None:
    body = request(
        histogram("cumulative", point(0, count="5"), point(10, count="25")),
        histogram("delta", point(0, count="5"), temporality=DELTA),
        histogram("partly", point(0, count="5"), point(10, count="15", sum=30.0), point(20, count="25", sum=50.0)),
    )
    assert post(client, body).json() == {}
    assert taken(monitor) == [
        ('cumulative.count{service_name="shop"}', 10.0, 2.0),
        ('delta.count{service_name="shop"}', 0.0, 5.0),
        ('partly.count{service_name="shop"}', 10.0, 1.0),
        ('partly.count{service_name="shop"}', 20.0, 1.0),
        ('partly.mean{service_name="shop"}', 20.0, 2.0),
    ]


def test_a_point_without_a_time_is_refused(client: Client, monitor: FakeMonitor) -> None:
    reply = post(client, request(gauge("level", {"asDouble": 1.0}, point(0, 2.0)))).json()
    assert reply["partialSuccess"]["rejectedDataPoints"] == "1"
    assert "a point needs time_unix_nano" in reply["partialSuccess"]["errorMessage"]
    assert len(taken(monitor)) == 1


def test_a_point_from_the_future_does_not_silence_its_counter(client: Client, monitor: FakeMonitor) -> None:
    late = total("requests", point(0, 10.0), point(10**9, 20.0), point(10, 30.0))
    assert post(client, request(late)).json()["partialSuccess"]["rejectedDataPoints"] == "1"
    assert [value for *_, value in taken(monitor)] == [2.0]


@pytest.mark.slow
def test_small_requests_do_not_take_long(client: Client) -> None:
    many = [{"key": f"k{i}", "value": {"stringValue": "v"}} for i in range(20_000)]
    scopes = [{"metrics": [gauge("m", point(0, 1.0))]} for _ in range(2000)]
    quadratic = {"resourceMetrics": [{"resource": {"attributes": many}, "scopeMetrics": scopes}]}
    empty = b"\x0a\x00" * 1_000_000
    began = time.process_time()
    reply = post(client, quadratic).json()["partialSuccess"]
    assert reply["rejectedDataPoints"] == "2000"
    assert "at most 256 labels" in reply["errorMessage"]
    assert client.post(URL, content=empty, headers=PROTOBUF).status_code == 413
    assert time.process_time() - began < 10.0

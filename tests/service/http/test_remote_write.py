"""Prometheus remote write, with requests made by hand; tests/service/test_push.py has a real Prometheus."""

import math
import struct
import time
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.wire import field, snappy, varint, write_1, write_2
from tocsin_monitor.config import PushSettings
from tocsin_monitor.errors import NotReadyError, OverloadedError
from tocsin_monitor.http import push as push_module
from tocsin_monitor.plugins.remote_write import RemoteWriteRule

from .conftest import Client, Make
from .fake import FakeMonitor

URL = "/api/v1/write"
V1 = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
V2 = {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request", "Content-Encoding": "snappy"}
T0 = 1_767_225_600_000
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
COUNTED = ("samples", "histograms", "exemplars")
LOAD = {"__name__": "load", "instance": "a:9100"}


def post(client: Client, body: bytes, headers: dict[str, str] = V1, **more: str) -> httpx.Response:
    return client.post(URL, content=snappy(body), headers={**headers, **more})


def taken(monitor: FakeMonitor) -> list[tuple[str, int | None, float]]:
    return [(one.signal, one.time, one.values[0]) for batch in monitor.engine.submitted for one in batch.observations]


def with_rules(make: Make, *rules: dict[str, Any]) -> FakeMonitor:
    monitor = make()
    push = PushSettings(remote_write=tuple(RemoteWriteRule(**rule) for rule in rules))
    monitor.settings = monitor.settings.model_copy(update={"push": push})
    return monitor


@pytest.mark.parametrize(("write", "headers"), [(write_1, V1), (write_2, V2)])
def test_samples_become_observations_under_the_name_of_their_series(
    client: Client, monitor: FakeMonitor, write: Any, headers: dict[str, str]
) -> None:
    reply = post(client, write((LOAD, [(T0, 1.5), (T0 + 15_000, 2.5)]), ({"__name__": "up"}, [(T0, 1.0)])), headers)
    assert reply.status_code == 204, reply.text
    signal = 'load{instance="a:9100"}'
    time = T0 * 10**6
    assert taken(monitor) == [(signal, time, 1.5), (signal, time + 15 * 10**9, 2.5), ("up", time, 1.0)]
    assert {batch.source for batch in monitor.engine.submitted} == {"remote_write"}
    written = {
        name: reply.headers.get(f"x-prometheus-remote-write-{name}-written") for name in ("samples", "exemplars")
    }
    assert written == ({"samples": None, "exemplars": None} if headers is V1 else {"samples": "3", "exemplars": "0"})


def test_sending_the_same_again_is_harmless(client: Client, monitor: FakeMonitor) -> None:
    for _ in range(2):
        assert post(client, write_1((LOAD, [(T0, 1.5)]))).status_code == 204
    assert monitor.engine.statuses['load{instance="a:9100"}'].observations == 1


def test_a_series_that_ended_and_infinite_samples_are_missing_values(client: Client, monitor: FakeMonitor) -> None:
    body = write_1((LOAD, [(T0, STALE), (T0 + 1, math.nan), (T0 + 2, math.inf), (T0 + 3, 1.0)]))
    assert post(client, body).status_code == 204
    assert [repr(value) for *_, value in taken(monitor)] == ["nan", "nan", "nan", "1.0"]


@pytest.mark.parametrize(("write", "headers"), [(write_1, V1), (write_2, V2)])
def test_native_histograms_are_refused_and_counted_and_samples_kept(
    client: Client, monitor: FakeMonitor, write: Any, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """As the specifications say of samples that a receiver does not support."""
    for _ in range(2):
        reply = post(client, write((LOAD, [(T0, 1.0)]), histograms=2), headers)
        assert reply.status_code == 400
        assert reply.text.startswith("2 samples were refused, 1 kept: 'load' is a native histogram")
    written = {name: reply.headers.get(f"x-prometheus-remote-write-{name}-written") for name in COUNTED}
    assert list(written.values()) == ([None, None, None] if headers is V1 else ["1", "0", "0"])
    assert monitor.engine.statuses['load{instance="a:9100"}'].observations == 1
    (source,) = [one for one in client.get("/api/v1/status").json()["sources"] if one["name"] == "remote_write"]
    assert (source["left_out"], source["last_error"]) == ({"native histograms": 4}, reply.text.split(": ", 1)[1])
    assert (source["received"], source["skipped"]) == (2, 4)
    assert 'tocsin_left_out_total{kind="native histograms",source="remote_write"} 4.0' in client.get("/metrics").text
    said = [one for one in caplog.messages if "native histogram" in one]
    assert len(said) == 1
    assert said[0].startswith("source remote_write, sender ")


def test_native_histograms_that_no_rule_wants_are_left_out(make: Make) -> None:
    monitor = with_rules(make, {"match": "load"})
    client = Client(monitor)
    other = {"__name__": "other"}
    assert post(client, write_1((other, [(T0, 1.0)]), histograms=2)).status_code == 204
    (source,) = [one for one in client.get("/api/v1/status").json()["sources"] if one["name"] == "remote_write"]
    assert (source["left_out"], source["last_error"]) == (
        {"series that no rule matches": 1, "native histograms": 2},
        None,
    )


def test_rules_name_choose_and_differentiate(make: Make) -> None:
    monitor = with_rules(make, {"match": "*_total", "rate": True, "signal": "{job}/{__name__}"}, {"match": "load"})
    client = Client(monitor)
    counter = {"__name__": "requests_total", "job": "web"}
    first = write_1((counter, [(T0, 100.0)]), (LOAD, [(T0, 1.0)]), ({"__name__": "other"}, [(T0, 1.0)]))
    assert post(client, first).status_code == 204
    assert [signal for signal, *_ in taken(monitor)] == ['load{instance="a:9100"}']
    # 30 in 10 s; the counter begins again; 5 in 10 s.
    body = write_1((counter, [(T0 + 10_000, 130.0), (T0 + 20_000, 3.0), (T0 + 30_000, 8.0)]))
    monitor.engine.submitted.clear()
    monitor.engine.refusal = OverloadedError(2.0)
    assert post(client, body).status_code == 503
    monitor.engine.refusal = None
    for _ in range(2):  # the second time the reply was lost, say
        assert post(client, body).status_code == 204
    assert taken(monitor) == [
        ("web/requests_total", (T0 + 10_000) * 10**6, 3.0),
        ("web/requests_total", (T0 + 30_000) * 10**6, 0.5),
    ]


def test_two_series_of_one_name_are_refused_and_the_first_is_kept(make: Make) -> None:
    monitor = with_rules(make, {"signal": "{__name__}"})
    body = write_1((LOAD, [(T0, 1.0)]), ({**LOAD, "instance": "b"}, [(T0, 2.0), (T0 + 1, 2.0)]))
    reply = post(Client(monitor), body)
    assert reply.status_code == 400
    assert reply.text.startswith("2 samples were refused, 1 kept: two series map to the same signal 'load'")
    assert taken(monitor) == [("load", T0 * 10**6, 1.0)]


def test_refusals_are_counted_and_shown(client: Client, monitor: FakeMonitor) -> None:
    assert [one["name"] for one in client.get("/api/v1/status").json()["sources"]] == ["broker"]
    reply = post(client, write_2((LOAD, [(T0, 1.0)]), ({"__name__": "x" * 3, "a": "/./"}, [(T0, 1.0)])), V2)
    assert reply.status_code == 400
    assert reply.headers["x-prometheus-remote-write-samples-written"] == "1"
    shown = client.get("/api/v1/status").json()["sources"][-1]
    assert shown["name"] == "remote_write"
    assert "between slashes" in shown["last_error"]
    assert shown["last_success"] is not None
    text = client.get("/metrics").text
    assert 'tocsin_source_errors_total{source="remote_write"} 1.0' in text
    assert 'tocsin_observations_total{source="remote_write",status="refused"} 1.0' in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"\xff\xff", V1, 400),  # no snappy
        (snappy(b"\xff"), V1, 400),
        (snappy(b"\xff"), V2, 400),
        (snappy(field(4, "x") + field(5, b"")), V2, 400),
        (snappy(field(4, "") + field(5, field(1, varint(0)))), V2, 400),  # half a label
        (snappy(field(4, "") + field(5, field(1, varint(0) + varint(7)))), V2, 400),  # no such symbol
        (snappy(field(1, field(1, field(1, b"\xff")))), V1, 400),  # no UTF-8
        (b"", {**V1, "Content-Type": "text/plain"}, 415),
        (b"", {**V1, "Content-Type": "application/x-protobuf;proto=other"}, 415),
        (b"", {**V1, "Content-Encoding": "gzip"}, 415),
    ],
)
def test_what_is_no_request_is_not_to_be_sent_again(
    client: Client, body: bytes, headers: dict[str, str], status: int
) -> None:
    reply = client.post(URL, content=body, headers=headers)
    assert reply.status_code == status
    assert reply.headers["content-type"].startswith("text/plain")
    assert reply.text


def test_a_bomb_is_not_unpacked(make: Make) -> None:
    client = Client(make(max_body_bytes=2**20))
    bomb = snappy(bytes(2**24))
    assert len(bomb) < 2**20
    assert client.post(URL, content=bomb, headers=V1).status_code == 413
    lie = varint(2**32 - 1) + b"\x00"  # says that it is far longer than it is
    assert client.post(URL, content=lie, headers=V1).status_code == 413


def test_too_many_points_are_refused_and_many_go_in_pieces(
    make: Make, monkeypatch: pytest.MonkeyPatch, client: Client, monitor: FakeMonitor
) -> None:
    monkeypatch.setattr(push_module, "MOST_OBSERVATIONS", 10)
    monkeypatch.setattr(push_module, "MOST_POINTS", 25)
    assert post(client, write_1((LOAD, [(T0 + i, 1.0) for i in range(25)]))).status_code == 204
    assert [len(batch.observations) for batch in monitor.engine.submitted] == [10, 10, 5]
    assert post(client, write_1((LOAD, [(T0 + i, 1.0) for i in range(26)]))).status_code == 413


@pytest.mark.parametrize("error", [OverloadedError(3.0), NotReadyError("starting")])
def test_what_is_not_durable_is_to_be_sent_again(client: Client, monitor: FakeMonitor, error: Exception) -> None:
    monitor.engine.refusal = error
    reply = post(client, write_1((LOAD, [(T0, 1.0)])))
    assert reply.status_code == 503, "Prometheus throws away what gets 429"
    assert int(reply.headers["retry-after"]) >= 1
    assert not monitor.engine.submitted


def test_bodies_unpacked_at_once_are_limited(make: Make) -> None:
    client = Client(make(max_body_bytes=2**20, max_bodies_bytes=2**20))
    half = write_1(({"__name__": "load", "x": "x" * 2**20}, []))[: 2**20]
    assert post(client, half).status_code in (204, 400)
    assert post(client, write_1((LOAD, [(T0, 1.0)]))).status_code == 204, "what was held is given back"


def test_tokens_need_the_role_and_are_limited_to_their_patterns(monitor: FakeMonitor) -> None:
    from tocsin_monitor.tokens import hash_token, make_token

    tokens = {role: make_token() for role in ("read", "ingest")}
    with monitor.store.transaction() as writer:
        writer.add_token("reader", "read", hash_token(tokens["read"]), 0, None)
        writer.add_token("sender", "ingest", hash_token(tokens["ingest"]), 0, None, ("load*",))
    body = write_1((LOAD, [(T0, 1.0)]), ({"__name__": "up"}, [(T0, 1.0)]))
    assert post(Client(monitor), body).status_code == 401
    assert post(Client(monitor, tokens["read"]), body).status_code == 403
    reply = post(Client(monitor, tokens["ingest"]), body)
    assert reply.status_code == 400
    assert "this token does not allow the signal 'up'" in reply.text
    assert [signal for signal, *_ in taken(monitor)] == ['load{instance="a:9100"}']


def test_the_extra_is_named_if_it_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_module, "find_spec", lambda module: None)
    reply = post(client, b"")
    assert reply.status_code == 501
    assert "pip install 'tocsin-monitor[protobuf]'" in reply.text


valid = write_2((LOAD, [(T0, 1.0)]), ({"__name__": "up"}, [(T0, 1.0)]))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.one_of(st.binary(max_size=200), st.integers(0, len(valid)).map(lambda cut: valid[:cut])),
    place=st.integers(0, len(valid) - 1), bits=st.integers(0, 255),
    packed=st.booleans(), headers=st.sampled_from([V1, V2]),
)  # fmt: skip
def test_broken_bytes_are_refused(
    client: Client, raw: bytes, place: int, bits: int, packed: bool, headers: dict[str, str]
) -> None:
    spoilt = bytearray(raw if place % 2 else valid)
    if spoilt:
        spoilt[place % len(spoilt)] ^= bits
    body = snappy(bytes(spoilt)) if packed else bytes(spoilt)
    assert client.post(URL, content=body, headers=headers).status_code in (204, 400, 413)


def test_a_point_from_the_future_does_not_silence_its_counter(make: Make) -> None:
    monitor = with_rules(make, {"rate": True})
    client = Client(monitor)
    now = time.time_ns() // 10**6
    assert post(client, write_1((LOAD, [(now - 20_000, 10.0)]))).status_code == 204
    ahead = post(client, write_1((LOAD, [(now + 10**9, 20.0)])))
    assert ahead.status_code == 400
    assert "further ahead than engine.future_tolerance allows" in ahead.text
    assert post(client, write_1((LOAD, [(2**62, 20.0)]))).status_code == 400
    assert post(client, write_1((LOAD, [(now - 10_000, 30.0)]))).status_code == 204
    assert [value for *_, value in taken(monitor)] == [2.0]


def test_what_rules_leave_out_is_not_reported_as_lost(make: Make) -> None:
    monitor = with_rules(make, {"match": "load"})
    reply = post(Client(monitor), write_2((LOAD, [(T0, 1.0)]), ({"__name__": "up"}, [(T0, 1.0)]), histograms=1), V2)
    assert reply.status_code == 400  # for the histogram of a series that a rule matches
    assert reply.headers["x-prometheus-remote-write-samples-written"] == "2"
    assert reply.headers["x-prometheus-remote-write-histograms-written"] == "0"
    left_out = 'tocsin_left_out_total{{kind="{}",source="remote_write"}}'
    text = monitor.metrics.text().decode()
    assert f"{left_out.format('series that no rule matches')} 1.0" in text
    assert f"{left_out.format('native histograms')} 2.0" in text


def symbols_2(symbols: list[str], series: bytes) -> bytes:
    return b"".join(field(4, symbol) for symbol in ["", *symbols]) + series


NAMED = field(1, varint(1) + varint(2) + varint(3) + varint(4)) + field(2, field(2, T0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (field(1, b"") * 100_000, V1, 413),
        (field(5, b"") * 100_000, V2, 413),
        (field(1, field(1, b"") * 1_000_000 + field(2, field(2, T0))), V1, 204),
        (field(4, "") + field(5, field(1, bytes(4_000_000)) + field(2, field(2, T0))), V2, 204),
        (symbols_2(["__name__", "m", "l", "x" * 1_000_000], field(5, NAMED) * 5000), V2, 400),
        (symbols_2(["__name__", "x" * 1_000_000, "l", "x"], field(5, NAMED) * 5000), V2, 204),
    ],
    ids=["series 1", "series 2", "labels 1", "labels 2", "a long label", "a long name"],
)
def test_small_requests_do_not_take_long(client: Client, body: bytes, headers: dict[str, str], status: int) -> None:
    began = time.process_time()
    assert post(client, body, headers).status_code == status
    assert time.process_time() - began < 5.0  # it was half a minute and more


def test_labels_beyond_the_limit_are_refused(client: Client, monitor: FakeMonitor) -> None:
    many = {"__name__": "load", **{f"label{i}": "x" for i in range(300)}}
    for write, headers in ((write_1, V1), (write_2, V2)):
        reply = post(client, write((many, [(T0, 1.0)]), (LOAD, [(T0, 1.0)])), headers)
        assert reply.status_code == 400
        assert "1 samples were refused, 1 kept: a series may have at most 256 labels" in reply.text


def test_a_body_is_snappy_even_if_its_headers_do_not_say_so(client: Client, monitor: FakeMonitor) -> None:
    kind = {"Content-Type": "application/x-protobuf"}
    assert client.post(URL, content=snappy(write_1((LOAD, [(T0, 1.5)]))), headers=kind).status_code == 204
    assert [value for *_, value in taken(monitor)] == [1.5]
    assert client.post(URL, content=write_1((LOAD, [(T0 + 1, 1.5)])), headers=kind).status_code == 400
    assert client.post(URL, content=b"x" * 100, headers=kind).status_code == 400

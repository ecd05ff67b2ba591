"""InfluxDB's line protocol; tests/service/test_push.py has its real client."""

import gzip
import math
import time
import zlib
from base64 import b64encode
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tocsin_monitor.errors import OverloadedError
from tocsin_monitor.plugins.influx import InfluxRule
from tocsin_monitor.plugins.influx.reading import read_lines
from tocsin_monitor.push import Intake, Naming
from tocsin_monitor.push.intake import Rates
from tocsin_monitor.tokens import hash_token, make_token

from .conftest import Client, Make
from .fake import FakeMonitor

URL = "/api/v2/write"
T0 = 1_767_225_600
BYTES = {"Content-Type": "application/octet-stream"}


def post(client: Client, lines: str | bytes, query: str = "", **headers: str) -> httpx.Response:
    return client.post(f"{URL}?org=o&bucket=b{query}", content=lines, headers={**BYTES, **headers})


def taken(monitor: FakeMonitor) -> list[tuple[str, int | None, Any]]:
    all_of = [one for batch in monitor.engine.submitted for one in batch.observations]
    return [(one.signal, one.time, one.values[0] if len(one.values) == 1 else one.values) for one in all_of]


def read(lines: str, **rule: Any) -> Intake:
    intake = Intake(Rates(), lambda signal: True, 10_000)
    read_lines(lines.encode(), 1, Naming([InfluxRule(**rule)] if rule else [], InfluxRule()), intake)
    return intake


def test_each_field_is_a_signal(client: Client, monitor: FakeMonitor) -> None:
    lines = (
        f"cpu,host=a,cpu=cpu0 usage_user=2.5,usage_idle=90i {T0}\n\n# a comment\n"
        f'room,name=hall value=21.5,open=t,label="x, y=1" {T0 + 1}\r\n'
    )
    assert post(client, lines, "&precision=s").status_code == 204
    assert taken(monitor) == [
        ('cpu_usage_user{cpu="cpu0", host="a"}', T0 * 10**9, 2.5),
        ('cpu_usage_idle{cpu="cpu0", host="a"}', T0 * 10**9, 90.0),
        ('room{name="hall"}', (T0 + 1) * 10**9, 21.5),
        ('room_open{name="hall"}', (T0 + 1) * 10**9, 1.0),
    ]
    assert monitor.engine.submitted[0].source == "influx"


@pytest.mark.parametrize(
    ("line", "signal", "value"),
    [
        (r"a\,b\ c,t\=1=x\ y f=1", 'a,b c_f{t_1="x y"}', 1.0),
        (r'm s="quo\"te, \\",f=-1.5e3 12', "m_f", -1500.0),
        ('m s="two\nlines",f=3u', "m_f", 3.0),
        ("m f=.5", "m_f", 0.5),
        ("m f=False", "m_f", 0.0),
        ("m f=1e999", "m_f", math.nan),
        ("  ".join(("m", "f=1", "5")), "m_f", 1.0),
        ("größe,ort=köln f=1", 'größe_f{ort="köln"}', 1.0),
    ],
)
def test_lines_of_all_forms(line: str, signal: str, value: float) -> None:
    (one,) = read(line).observations
    assert one.signal == signal
    assert one.values == pytest.approx((value,), nan_ok=True)


def test_units_of_time(client: Client, monitor: FakeMonitor) -> None:
    for unit, size in {"ns": 10**9, "us": 10**6, "ms": 1000, "s": 1, "u": 10**6}.items():
        assert post(client, f"{unit} value=1 {T0 * size}", f"&precision={unit}").status_code == 204
    assert post(client, f"none value=1 {T0 * 10**9}").status_code == 204
    assert {time for _, time, _ in taken(monitor)} == {T0 * 10**9}
    wrong = post(client, "m f=1", "&precision=d")
    assert wrong.status_code == 400
    assert wrong.json()["code"] == "invalid"
    assert "precision must be one of ns" in wrong.json()["message"]


def test_without_a_time_the_arrival_counts(client: Client, monitor: FakeMonitor) -> None:
    assert post(client, "m f=1").status_code == 204
    assert [time for _, time, _ in taken(monitor)] == [None]


def test_fields_can_be_features_of_one_signal() -> None:
    rule = {"match": "cpu", "signal": "{host}/{measurement}", "fields": ("user", "system")}
    intake = read("cpu,host=a user=1,system=2,idle=3 1\ncpu,host=a system=5 2\ncpu,host=a idle=3 3\nmem f=1 1", **rule)
    first, second = intake.observations
    assert (first.signal, first.values, first.features) == ("a/cpu", (1.0, 2.0), ("user", "system"))
    assert math.isnan(second.values[0])
    assert second.values[1] == 5.0
    assert intake.left_out.total() == 2
    assert intake.refused == 0


def test_counters_become_rates() -> None:
    intake = read(f"net bytes=100i 0\nnet bytes=400i {3 * 10**9}\nnet bytes=7i {4 * 10**9}", rate=True)
    assert [(one.time, one.values) for one in intake.observations] == [(3 * 10**9, (100.0,))]


def test_bad_lines_are_refused_and_good_ones_kept(client: Client, monitor: FakeMonitor) -> None:
    reply = post(client, "good f=1 1\nbad\nm f=abc 1\nalso f=2 1\n")
    assert reply.status_code == 400
    assert reply.json()["code"] == "invalid"
    assert reply.json()["message"] == (
        "partial write: unable to parse line 2: expected measurement,tag=value field=value time, got 'bad' dropped=2"
    )
    assert [signal for signal, *_ in taken(monitor)] == ["good_f", "also_f"]
    assert post(client, b"\xff f=1").status_code == 400


@pytest.mark.parametrize("pack", [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_compressed_bodies(client: Client, monitor: FakeMonitor, pack: Any) -> None:
    compress, coding = pack
    body = compress(b"m f=1 1\n")
    assert post(client, body, **{"Content-Encoding": coding}).status_code == 204
    assert post(client, body[:-4], **{"Content-Encoding": coding}).status_code == 400
    assert post(client, b"nonsense", **{"Content-Encoding": coding}).status_code == 400
    assert post(client, body, **{"Content-Encoding": "br"}).status_code == 415
    if coding == "gzip":  # files of several parts
        assert post(client, body + compress(b"n f=1 1\n"), **{"Content-Encoding": coding}).status_code == 204
    assert "m_f" in {signal for signal, *_ in taken(monitor)}


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(make: Make) -> None:
    client = Client(make(max_body_bytes=2**20))
    bomb = gzip.compress(b"\n" * 2**26)
    assert len(bomb) < 2**20
    reply = post(client, bomb, **{"Content-Encoding": "gzip"})
    assert reply.status_code == 413
    assert reply.json()["code"] == "request too large"
    many = gzip.compress(b"\n" * 2**18) * 5
    assert post(client, many, **{"Content-Encoding": "gzip"}).status_code == 413


def test_refusals_have_the_form_of_either_version(client: Client, monitor: FakeMonitor) -> None:
    monitor.engine.refusal = OverloadedError(2.0)
    reply = post(client, "m f=1 1")
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (429, "too many requests", "2")
    assert set(client.post("/write?db=x", content="m f=1 1", headers=BYTES).json()) == {"error"}
    monitor.engine.refusal = None
    assert client.post("/write?db=x&precision=s", content=f"m f=1 {T0}", headers=BYTES).status_code == 204
    assert taken(monitor) == [("m_f", T0 * 10**9, 1.0)]


def test_tokens_as_influx_clients_send_them(monitor: FakeMonitor) -> None:
    token = make_token()
    with monitor.store.transaction() as writer:
        writer.add_token("sender", "ingest", hash_token(token), 0, None)
    client = Client(monitor)
    missing = post(client, "m f=1 1")
    assert (missing.status_code, missing.json()["code"]) == (401, "unauthorized")
    assert post(client, "m f=1 1", Authorization=f"Token {token}").status_code == 204
    assert post(client, "m f=1 2", Authorization=f"Bearer {token}").status_code == 204
    basic = b64encode(f"telegraf:{token}".encode()).decode()
    assert post(client, "m f=1 3", Authorization=f"Basic {basic}").status_code == 204
    for wrong in ("Basic ???", "Basic Zg==", "Token x", f"Digest {token}"):
        assert post(client, "m f=1 4", Authorization=wrong).status_code == 401


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=80), st.text('m,= "\\\n1f.i#', max_size=60).map(str.encode)))
def test_broken_lines_are_refused(client: Client, body: bytes) -> None:
    assert post(client, body).status_code in (204, 400)


def test_no_line_takes_long() -> None:
    for line in ("m,a=b" * 20_000, "m " + 'f="' * 20_000, "\\" * 99_999, "m f=1" + "," * 50_000, "m" + " " * 90_000):
        assert not read(line).observations


def test_lines_that_are_commented_out_are_no_points() -> None:
    intake = read("#cpu,host=a usage=1 1\n  # cpu usage=1\n  \tcpu usage=2 1\n")
    assert [(one.signal, one.values) for one in intake.observations] == [("cpu_usage", (2.0,))]
    assert intake.refused == 0


def test_lines_may_end_as_on_windows() -> None:
    intake = read('cpu usage=1\r\ncpu,host=a usage=2i\r\ncpu,host=b text="a\r\nb",on=t\r\n')
    assert intake.why is None
    assert [one.values for one in intake.observations] == [(1.0,), (2.0,), (1.0,)]


def test_many_small_parts_in_gzip_do_not_take_long(client: Client, monitor: FakeMonitor) -> None:
    two = gzip.compress(b"m f=1 1\n") + gzip.compress(b"m f=2 2\n")
    assert post(client, two, **{"Content-Encoding": "gzip"}).status_code == 204
    assert len(taken(monitor)) == 2
    reply = post(client, gzip.compress(b"") * 300_000, **{"Content-Encoding": "gzip"})
    assert reply.status_code == 400
    assert "at most 100 parts" in reply.json()["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("\n" * 2_000_000, 413), ("#\n" * 2_000_000, 413), ('m f="x"\n' * 200_000, 413),
        ("m" + ",a=1" * 1_000_000 + " f=1 1", 204), ("m " + "a=1," * 1_000_000 + "f=1 1", 400),
    ],
    ids=["empty lines", "comments", "texts", "tags", "fields"],
)  # fmt: skip
def test_odd_bodies_do_not_take_long(client: Client, body: str, status: int) -> None:
    began = time.process_time()
    assert post(client, body).status_code == status
    assert time.process_time() - began < 5.0


def test_a_time_that_cannot_be_does_not_silence_a_counter() -> None:
    far = 10**19 - 1
    intake = read(f"net bytes=100i 0\nnet bytes=200i {far}\nnet bytes=400i {3 * 10**9}", rate=True)
    assert [one.values for one in intake.observations] == [(100.0,)]
    assert intake.refused == 1

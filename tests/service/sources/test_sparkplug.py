"""The Sparkplug B source with a real broker and a node made by hand."""

import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.helpers import Mosquitto, Running, run, until
from tests.service.sources.device import Device
from tests.service.sources.inbox import Inbox
from tests.service.wire import field, varint
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.mqtt import Message
from tocsin_monitor.plugins.sparkplug import SparkplugSourceSettings as Settings
from tocsin_monitor.plugins.sparkplug import source as module
from tocsin_monitor.plugins.sparkplug.source import SparkplugSource

T0 = 1_767_225_600_000
INT16, INT32, INT64, DOUBLE, BOOLEAN, STRING = 2, 3, 4, 10, 11, 12
NODE = "spBv1.0/plant/{}/gateway"


def metric(name: str | None, alias: int | None, datatype: int | None, value: Any, time: int | None = None) -> bytes:
    """As nodes write it: names in births, aliases in data."""
    out = field(1, name) if name is not None else b""
    out += field(2, alias) if alias is not None else b""
    out += field(3, time) if time is not None else b""
    out += field(4, datatype) if datatype is not None else b""
    if value is None:
        return field(2, out + field(7, 1))
    if isinstance(value, bool):
        return field(2, out + field(14, int(value)))
    if isinstance(value, str):
        return field(2, out + field(15, value))
    if isinstance(value, float):
        return field(2, out + field(13, value))
    place, bits = (11, 64) if datatype == INT64 else (10, 32)
    return field(2, out + field(place, value % 2**bits))


class Gateway:
    """A node with one device, which counts its messages as Sparkplug wants it."""

    def __init__(self, device: Device) -> None:
        self._device, self.seq = device, 0

    def send(self, kind: str, *metrics: bytes, time: int = T0, device: str = "") -> None:
        self.seq = 0 if kind == "NBIRTH" else self.seq + 1
        topic = NODE.format(kind) + (f"/{device}" if device else "")
        payload = field(1, time) + b"".join(metrics) + (b"" if kind == "NDEATH" else field(3, self.seq % 256))
        self._device.publish(topic, payload, qos=1 if kind == "NDEATH" else 0)

    def be_born(self, number: int, time: int = T0) -> None:
        bd = metric("bdSeq", None, INT64, number)
        self.send("NBIRTH", bd, metric("Node Control/Rebirth", None, BOOLEAN, False), metric("load", 1, DOUBLE, 0.5),
                  metric("name", 2, STRING, "x"), time=time)  # fmt: skip
        self.send("DBIRTH", metric("speed", 10, INT16, -3), metric("on", 11, BOOLEAN, True), time=time, device="motor")


async def connected(broker: Mosquitto, source: SparkplugSource) -> None:
    await until(lambda: source.health.last_success)


def at(inbox: Inbox, signal: str) -> dict[int, float]:
    """Values by milliseconds."""
    return {time // 10**6 - T0: one.values[0] for (name, time), one in sorted(inbox.kept.items()) if name == signal}


def test_births_aliases_and_deaths(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = SparkplugSource(Settings(name="sp", port=broker.port), inbox.context(metrics))
        with Device(broker, "spBv1.0/+/NCMD/#") as device:
            async with Running(source):
                await connected(broker, source)
                gateway = Gateway(device)
                gateway.be_born(7)
                gateway.send("NDATA", metric(None, 1, None, 0.75), time=T0 + 1000)
                gateway.send("DDATA", metric(None, 10, None, -5 % 2**32), metric(None, 11, None, None), time=T0 + 1000,
                             device="motor")  # fmt: skip
                gateway.send("DDATA", metric("speed", None, INT16, 9, T0 + 2500), time=T0 + 2000, device="motor")
                await until(lambda: 2500 in at(inbox, "plant/gateway/motor/speed"))
                gateway.send("DDEATH", time=T0 + 3000, device="motor")
                gateway.send("NDEATH", metric("bdSeq", None, INT64, 6))  # of an earlier connection
                gateway.seq -= 1  # deaths of nodes are not counted
                gateway.send("NDATA", metric(None, 1, None, 1.25), time=T0 + 4000)
                gateway.send("NDEATH", metric("bdSeq", None, INT64, 7))
                await until(lambda: 4001 in at(inbox, "plant/gateway/load"))
            asked = list(device.heard)
        assert inbox.signals == {"plant/gateway/load", "plant/gateway/motor/speed", "plant/gateway/motor/on"}
        load, speed = at(inbox, "plant/gateway/load"), at(inbox, "plant/gateway/motor/speed")
        assert list(load) == [0, 1000, 4000, 4001]
        assert list(load.values())[:3] == [0.5, 0.75, 1.25]
        assert math.isnan(load[4001])
        assert list(speed.items())[:3] == [(0, -3.0), (1000, -5.0), (2500, 9.0)]
        assert math.isnan(speed[2501])
        assert not asked, "nothing was missed"
        assert source.health.last_error is None

    run(test)


def test_a_missed_birth_is_asked_for(broker: Mosquitto, metrics: Metrics, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "ASK_EVERY", 0.0)

    async def test() -> None:
        inbox = Inbox()
        source = SparkplugSource(Settings(name="sp", port=broker.port), inbox.context(metrics))
        with Device(broker, "spBv1.0/+/NCMD/#") as device:
            async with Running(source):
                await connected(broker, source)
                gateway = Gateway(device)
                gateway.send("NDATA", metric(None, 1, None, 0.75), metric("named", None, DOUBLE, 2.0))
                await until(lambda: device.heard)
                topic, payload, _ = device.heard[0]
                assert topic == "spBv1.0/plant/NCMD/gateway"
                assert field(1, "Node Control/Rebirth") in payload
                assert field(14, 1) in payload
                assert at(inbox, "plant/gateway/named") == {0: 2.0}
                gateway.be_born(1, T0 + 1000)
                await until(lambda: inbox.values("plant/gateway/load"))
                device.heard.clear()
                gateway.send("NDATA", metric(None, 1, None, 1.0), time=T0 + 2000)
                gateway.seq += 1  # a message is lost
                gateway.send("NDATA", metric(None, 1, None, 2.0), time=T0 + 3000)
                await until(lambda: device.heard)
                await until(lambda: 3000 in at(inbox, "plant/gateway/load"))
            assert source.health.skipped == 1

    run(test)


def test_what_cannot_be_stored_is_read_only_once(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        inbox.failures = 2
        source = SparkplugSource(Settings(name="sp", port=broker.port), inbox.context(metrics))
        with Device(broker, "spBv1.0/+/NCMD/#") as device:
            async with Running(source):
                await connected(broker, source)
                gateway = Gateway(device)
                gateway.be_born(7)
                await until(lambda: inbox.values("plant/gateway/motor/on"))
            assert not device.heard

    run(test)


def test_metrics_are_chosen_and_named(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        given = Settings(
            name="sp", port=broker.port, groups=("plant",), metrics=("l*", "speed"), signal="{metric}@{node}{device}"
        )
        source = SparkplugSource(given, inbox.context(metrics))
        with Device(broker) as device:
            async with Running(source):
                await connected(broker, source)
                Gateway(device).be_born(7)
                await until(lambda: len(inbox.signals) == 2)
        assert inbox.signals == {"load@gateway", "speed@gatewaymotor"}

    run(test)


valid = field(1, T0) + metric("bdSeq", None, INT64, 1) + metric("load", 1, DOUBLE, 0.5) + field(3, 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.one_of(st.binary(max_size=100), st.just(valid)), place=st.integers(0, len(valid) - 1),
    bits=st.integers(0, 255), kind=st.sampled_from(["NBIRTH", "NDATA", "NDEATH", "STATE", "DBIRTH"]),
)  # fmt: skip
def test_broken_bytes_are_skipped(raw: bytes, place: int, bits: int, kind: str) -> None:
    async def test() -> None:
        source = SparkplugSource(Settings(name="sp"), Inbox().context(Metrics()))
        spoilt = bytearray(raw)
        if spoilt:
            spoilt[place % len(spoilt)] ^= bits
        found = source._read(Message(NODE.format(kind), bytes(spoilt), 0, 1, 1, 5))
        assert all(len(one.values) == 1 for one in found)

    run(test)


def test_floats_and_signed_numbers() -> None:
    single = field(2, field(1, "f") + varint(12 << 3 | 5) + struct.pack("<f", 1.5))
    payload = module.Payload.FromString(single + metric("i", None, INT32, -7) + metric("l", None, INT64, -8))
    assert [module._value(one, one.datatype) for one in payload.metrics] == [1.5, -7.0, -8.0]


DATE = 13


def test_dates_are_no_numbers() -> None:
    async def test() -> None:
        source = SparkplugSource(Settings(name="sp"), Inbox().context(Metrics()))
        in_birth = field(2, field(1, "since") + field(2, 5) + field(4, DATE) + field(11, T0))
        birth = field(1, T0) + metric("load", 1, DOUBLE, 0.5) + in_birth + field(3, 0)
        in_data = field(2, field(2, 5) + field(11, T0 + 1))
        data = field(1, T0 + 1) + metric(None, 1, None, 0.75) + in_data + field(3, 1)
        found = [
            one.signal
            for kind, payload in (("NBIRTH", birth), ("NDATA", data))
            for one in source._read(Message(NODE.format(kind), payload, 0, 1, 1, 5))
        ]
        assert found == ["plant/gateway/load", "plant/gateway/load"]

    run(test)


@pytest.mark.slow
def test_what_is_known_of_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 1000)

    async def test() -> None:
        source = SparkplugSource(Settings(name="sp"), Inbox().context(Metrics()))

        def take(kind: str, seq: int, *metrics: bytes) -> None:
            payload = field(1, T0) + b"".join(metrics) + field(3, seq % 256)
            source._read(Message(NODE.format(kind), payload, 0, 1, 1, 5))

        for _ in range(20):  # births of the same metrics take no more
            take("NBIRTH", 0, *(metric(f"m{i}", i, DOUBLE, 1.0) for i in range(100)))
        assert source.health.skipped == 0
        for seq in range(1, 100):  # ever new metrics
            take("NDATA", seq, *(metric(f"{seq}/{i}", None, DOUBLE, 1.0) for i in range(100)))
            assert sum(node.entries for node in source._nodes.values()) <= 1000
        assert "all births are forgotten" in (source.health.last_error or "")

    run(test)

"""The MQTT source with a real broker."""

import asyncio
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from tests.service.helpers import Mosquitto, Running, run, until
from tests.service.sources.device import Device
from tests.service.sources.inbox import Inbox
from tocsin_monitor.config.sources import MqttSourceSettings as Settings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.mqtt import MOST_HELD
from tocsin_monitor.observations import Status
from tocsin_monitor.sources.mqtt import MqttSource, check_pattern

START = 1_700_000_000


def settings(broker: Mosquitto, **given: Any) -> Settings:
    return Settings(**{"name": "plant", "port": broker.port, "topics": ("plant/#",), **given})


def timed(broker: Mosquitto, **given: Any) -> Settings:
    return settings(broker, value=("v",), time="t", **given)


async def connected(device: Device) -> None:
    await until(lambda: ("tocsin/status", b"online") in {one[:2] for one in device.heard})


def test_plain_numbers_statuses_and_results(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = MqttSource(settings(broker, signal="{1}-{2}"), inbox.context(metrics))
        with Device(broker, "tocsin/#") as device:
            async with Running(source):
                await connected(device)
                device.publish("plant/pump/flow", "1.5")
                device.publish("plant/pump/flow", " 2.5\n", qos=0)
                device.publish("plant/pump/flow", "NaN")
                await until(lambda: len(inbox.kept) == 3)
                await until(lambda: sum(one[0] == "tocsin/results/plant/pump/flow" for one in device.heard) == 3)
            await until(lambda: ("tocsin/status", b"offline", False) in device.heard)
        values = inbox.values("pump-flow")
        assert values[:2] == [1.5, 2.5]
        assert math.isnan(values[2])
        verdict = next(json.loads(one[1]) for one in device.heard if one[0].startswith("tocsin/results"))
        assert verdict["signal"] == "pump-flow"
        assert verdict["status"] == "scored"
        assert source.health.received == 3
        assert source.health.last_error is None
        with Device(broker, "tocsin/status") as late:  # it is retained
            await until(lambda: late.heard == [("tocsin/status", b"offline", True)])

    run(test)


def test_json_with_several_features_and_times(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        given = settings(broker, value=("reading.v", "all[1]"), time="at", results_topic="")
        with Device(broker, "tocsin/status") as device:
            async with Running(MqttSource(given, inbox.context(metrics))):
                await connected(device)
                device.publish("plant/a", {"reading": {"v": 1}, "all": [0, 2.5], "at": START})
                device.publish("plant/a", {"all": [0, 3.5], "at": "2023-11-14T22:13:21Z"})
                await until(lambda: len(inbox.kept) == 2)
        first, second = (one for _, one in sorted(inbox.kept.items()))
        assert (first.time, first.values, first.features) == (START * 10**9, (1.0, 2.5), ("reading.v", "all[1]"))
        assert second.time == (START + 1) * 10**9
        assert math.isnan(second.values[0])
        assert second.values[1] == 3.5

    run(test)


def test_each_number_of_a_message_can_be_a_signal(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        given = settings(broker, signal="{1}/{value}", value=("*", "motor.*", "all[*].v"), time="at", results_topic="")
        source = MqttSource(given, inbox.context(metrics))
        with Device(broker, "tocsin/status") as device:
            async with Running(source):
                await connected(device)
                tree = {
                    "t": 1,
                    "name": "x",
                    "on": True,
                    "motor": {"rpm": 2.5},
                    "all": [{"v": 3}, {"w": 4}],
                    "at": START,
                }
                device.publish("plant/a", tree)
                device.publish("plant/a", {"name": "x", "at": START})
                await until(lambda: source.health.skipped)
        found = {one.signal: one.values for one in inbox.kept.values()}
        assert found == {"a/t": (1.0,), "a/motor.rpm": (2.5,), "a/all[0].v": (3.0,)}
        assert all(one.features is None and one.time == START * 10**9 for one in inbox.kept.values())

    run(test)


def test_bad_messages_are_counted_told_once_and_never_come_again(
    broker: Mosquitto, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        inbox = Inbox()
        bad: list[Any] = [
            {"v": "x", "t": START},
            {"v": 1},
            {"w": 1, "t": START},
            b"{",
            b"\xff",
            {"v": True, "t": START},
        ]
        with Device(broker, "tocsin/status") as device:
            source = MqttSource(timed(broker), inbox.context(metrics))
            async with Running(source):
                await connected(device)
                for payload in bad:
                    device.publish("plant/a", payload)
                device.publish("plant/a", {"v": 1, "t": START})
                await until(lambda: inbox.kept)
            assert source.health.skipped == len(bad)
            assert sum(": skipped: " in record.getMessage() for record in caplog.records) == 1
            count = metrics.registry.get_sample_value("tocsin_source_errors_total", {"source": "plant"})
            assert count == len(bad)
            device.heard.clear()
            again = MqttSource(timed(broker), inbox.context(metrics))
            async with Running(again):
                await connected(device)
                device.publish("plant/a", {"v": 2, "t": START + 1})
                await until(lambda: len(inbox.kept) == 2)
            assert again.health.skipped == 0
            assert Status.DUPLICATE not in inbox.statuses

    with caplog.at_level(logging.WARNING, logger="tocsin"):
        run(test)


def test_nothing_is_acknowledged_before_it_is_durable(broker: Mosquitto, metrics: Metrics) -> None:
    """The monitor takes nothing and dies; what was sent meanwhile, and while it is away, comes all the same."""

    async def test() -> None:
        inbox = Inbox()
        with Device(broker, "tocsin/status") as device:
            inbox.open.clear()
            async with Running(MqttSource(timed(broker), inbox.context(metrics))):
                await connected(device)
                for i in range(100):
                    device.publish("plant/a", {"v": i, "t": START + i})
                await asyncio.sleep(0.3)
            assert not inbox.kept
            for i in range(100, 150):
                device.publish("plant/a", {"v": i, "t": START + i})
            inbox.open.set()
            async with Running(MqttSource(timed(broker), inbox.context(metrics))):
                await until(lambda: len(inbox.kept) == 150)
                await asyncio.sleep(0.2)
        assert inbox.values("plant/a") == [float(i) for i in range(150)]
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


def test_the_broker_holds_on_while_the_monitor_is_busy(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = MqttSource(timed(broker), inbox.context(metrics, most=10))
        with Device(broker, "tocsin/status") as device:
            async with Running(source):
                await connected(device)
                inbox.open.clear()
                for i in range(200):
                    device.publish("plant/a", {"v": i, "t": START + i})
                await asyncio.sleep(0.3)
                assert len(source._queue) <= 10
                inbox.open.set()
                await until(lambda: len(inbox.kept) == 200)
        assert inbox.values("plant/a") == [float(i) for i in range(200)]
        assert max(len(batch.observations) for batch in inbox.batches) <= 10

    run(test)


def test_a_batch_that_fails_is_tried_again(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        inbox.failures = 1
        source = MqttSource(timed(broker), inbox.context(metrics))
        with Device(broker, "tocsin/status") as device:
            async with Running(source):
                await connected(device)
                device.publish("plant/a", {"v": 1, "t": START})
                await until(lambda: len(inbox.kept) == 1)
        assert source.health.last_error == "the store is away"
        assert source.health.received == 1

    run(test)


def test_a_broker_that_goes_and_comes_back(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = MqttSource(timed(broker), inbox.context(metrics))
        async with Running(source):
            with Device(broker, "tocsin/status") as device:
                await connected(device)
                device.publish("plant/a", {"v": 0, "t": START})
                await until(lambda: len(inbox.kept) == 1)
                inbox.open.clear()
                device.publish("plant/a", {"v": 1, "t": START + 1})
                await asyncio.sleep(0.1)
                for i in range(2, 7):
                    device.publish("plant/a", {"v": i, "t": START + i})
                await until(lambda: len(source._queue) == 6)
            await asyncio.to_thread(broker.restart)  # it keeps the session on disk
            await until(lambda: source.health.last_error is not None)
            with Device(broker, "tocsin/status") as device:
                await connected(device)
                inbox.open.set()
                device.publish("plant/a", {"v": 7, "t": START + 7})
                await until(lambda: len(inbox.kept) == 8)
        assert inbox.values("plant/a") == list(range(8))
        assert inbox.statuses.count(Status.DUPLICATE) == 1  # the one that was being worked on
        assert "lost the connection" in (source.health.last_error or "")

    run(test)


def test_own_messages_are_no_observations(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = MqttSource(
            settings(broker, topics=("#",)),
            inbox.context(metrics, own_topics={"tocsin/incidents"}),
        )
        with Device(broker, "tocsin/status") as device:
            async with Running(source):
                await connected(device)
                device.publish("tocsin/incidents/a", "7")
                device.publish("tocsin/results/plant/a", "8")
                device.publish("plant/a", "1")
                device.publish("plant/a", "2")
                await until(lambda: len(inbox.kept) >= 2)
                await asyncio.sleep(0.1)
        assert inbox.values("plant/a") == [1, 2]
        assert inbox.signals == {"plant/a"}
        assert source.health.skipped == 0

    run(test)
    with pytest.raises(ValueError, match="itself publishes"):
        MqttSource(settings(broker, topics=("tocsin/results/#",)), Inbox().context(metrics))


def test_a_retained_message_counts_only_with_its_time(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        with Device(broker, "tocsin/status") as device:
            device.publish("plant/a", {"v": 1, "t": START}, retain=True)
            for given, expected in ((timed(broker), [1.0, 2.0]), (settings(broker, name="b", value=("v",)), [2.0])):
                inbox = Inbox()
                device.heard.clear()
                async with Running(MqttSource(given, inbox.context(Metrics()))):
                    await connected(device)
                    device.publish("plant/a", {"v": 2, "t": START + 1})
                    await until(lambda inbox=inbox, expected=expected: len(inbox.kept) >= len(expected))
                assert inbox.values("plant/a") == expected

    run(test)


def test_a_password_is_used_and_never_told(tmp_path: Path, metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    async def test(broker: Mosquitto) -> None:
        inbox = Inbox()
        wrong = MqttSource(settings(broker, username="tocsin", password="wr0ng"), inbox.context(metrics))
        async with Running(wrong):
            await until(lambda: wrong.health.last_error)
        assert "ot authorized" in (wrong.health.last_error or "")
        right = MqttSource(settings(broker, username="tocsin", password="s3cret"), inbox.context(metrics))
        with Device(broker, "tocsin/status", user=("tocsin", "s3cret")) as device:
            async with Running(right):
                await connected(device)
                device.publish("plant/a", "1")
                await until(lambda: inbox.kept)

    with Mosquitto(tmp_path / "guarded", "s3cret") as broker, caplog.at_level(logging.DEBUG):
        run(lambda: test(broker))
    assert "s3cret" not in caplog.text
    assert "wr0ng" not in caplog.text


# paho leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_tls(tmp_path: Path, metrics: Metrics) -> None:
    async def test(broker: Mosquitto) -> None:
        suspicious = MqttSource(settings(broker, tls=True), Inbox().context(metrics))
        trusting = MqttSource(
            settings(broker, tls=True, ca_file=broker.certificate),
            Inbox().context(metrics),
        )
        async with Running(suspicious, trusting):
            await until(lambda: suspicious.health.last_error)
            await until(lambda: trusting.health.last_success)
        assert "certificate verify failed" in (suspicious.health.last_error or "")
        assert trusting.health.last_error is None

    with Mosquitto(tmp_path / "guarded", tls=True) as broker:
        run(lambda: test(broker))
        with pytest.raises(ValueError, match=r"ca_file .* cannot be used"):
            MqttSource(settings(broker, ca_file=tmp_path / "none.pem"), Inbox().context(metrics))


@pytest.mark.parametrize("pattern", ["", "a/#/b", "a#", "a+/b", "a/b\0"])
def test_wrong_patterns(pattern: str) -> None:
    with pytest.raises(ValueError, match="topic pattern"):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["#", "+", "a/+/b/#", "$share/group/a/+", "/a"])
def test_right_patterns(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.slow
def test_what_waits_is_bounded_in_bytes(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        source = MqttSource(timed(broker), inbox.context(metrics))
        padding = "x" * 200_000
        with Device(broker, "tocsin/status") as device:
            async with Running(source):
                await connected(device)
                inbox.open.clear()
                for number in range(400):  # 80 MB
                    message = {"t": START + number, "v": number, "padding": padding}
                    await asyncio.to_thread(device.publish, "plant/a", message, qos=0)
                await until(lambda: source.health.skipped > 100)
                assert 0 < source._connection._held <= MOST_HELD
                inbox.open.set()
                await until(lambda: source._connection._held == 0)
                assert "messages of QoS 0" in (source.health.last_error or "")
                device.publish("plant/b", {"t": START, "v": 1.0})
                await until(lambda: inbox.values("plant/b") == [1.0])

    run(test)


def test_messages_that_are_too_large_are_left_out_by_the_broker(broker: Mosquitto, metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        with Device(broker, "tocsin/status") as device:
            async with Running(MqttSource(timed(broker), inbox.context(metrics))):
                await connected(device)
                device.publish("plant/a", {"t": START, "v": 1.0, "padding": "x" * 400_000})
                device.publish("plant/a", {"t": START + 1, "v": 2.0})
                await until(lambda: inbox.values("plant/a") == [2.0])

    run(test)

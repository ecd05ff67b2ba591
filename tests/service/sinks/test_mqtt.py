"""The MQTT sink with a real broker."""

import asyncio
import json
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from tests.service.helpers import Mosquitto, Running, run, until
from tests.service.sinks.office import NOTHING_SEEN, Office
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MqttSinkSettings as SinkSettings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks.mqtt import MqttSink
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.sinks.testing import MARK


class Listener:
    """Hears everything."""

    def __init__(self, broker: Mosquitto) -> None:
        self.heard: list[tuple[str, Any, bool]] = []
        self.ready = False
        client = self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self.heard_all = False
        client.on_message = self._hear
        client.on_subscribe = lambda *_: setattr(self, "ready", True)
        client.connect("127.0.0.1", broker.port)
        client.subscribe("#", qos=1)
        client.loop_start()

    async def hear_all(self) -> None:
        """Wait for all that was sent before: the broker keeps the order."""
        self._client.publish("heard-all", qos=1)
        await until(lambda: self.heard_all)

    def _hear(self, client: Client, data: Any, message: MQTTMessage) -> None:
        if message.topic == "heard-all":
            self.heard_all = True
        else:
            content = json.loads(message.payload) if message.payload else None
            self.heard.append((message.topic, content, message.retain))

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


async def retained(broker: Mosquitto) -> set[str]:
    listener = Listener(broker)
    await until(lambda: listener.ready)
    await listener.hear_all()
    listener.close()
    return {topic for topic, _, kept in listener.heard if kept}


def box(broker: Mosquitto, office: Office, metrics: Metrics) -> Outbox:
    settings = SinkSettings(name="sink", port=broker.port, timeout=5)
    return Outbox(MqttSink(settings, Settings()), office.store, office.write, metrics, poll=0.02)


def test_a_test_message_is_not_retained(broker: Mosquitto, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        listener = Listener(broker)
        await until(lambda: listener.ready)
        made = box(broker, office, metrics)
        async with Running(made):
            assert await made.test() is None
            await until(lambda: len(listener.heard) == 3)
        topic = f"tocsin/incidents/{MARK}"
        assert [(heard, content and content["status"]) for heard, content, _ in listener.heard] == [
            (topic, "firing"), (topic, "resolved"), (topic, None),
        ]  # fmt: skip
        assert await retained(broker) == set()
        listener.close()

    run(test)


def test_retained_while_it_goes_on(broker: Mosquitto, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        listener = Listener(broker)
        await until(lambda: listener.ready)
        alarm = office.begin("plant/+/#1")
        silence = office.begin("plant/+/#1", kind="silence", p=float("nan"), **NOTHING_SEEN)
        topic = "tocsin/incidents/plant/_/_1"
        async with Running(box(broker, office, metrics)):
            await until(lambda: len(listener.heard) == 2)
            assert await retained(broker) == {topic, f"{topic}/silence"}
            office.end(silence)
            await until(lambda: len(listener.heard) == 4)
            assert await retained(broker) == {topic}
            office.end(alarm, "accepted")
            await until(lambda: len(listener.heard) == 6)
            assert await retained(broker) == set()
        listener.close()
        messages = [message for name, message, _ in listener.heard if name == topic]
        assert [message and message["status"] for message in messages] == ["firing", "resolved", None]
        assert messages[0]["signal"] == "plant/+/#1"
        assert messages[0]["id"] == alarm
        assert (messages[0]["explanation"], messages[0]["view"]) == ("2 above the forecast", "error")
        assert messages[0]["return_period"] == 150.0
        assert (messages[0]["ended"], messages[0]["summary"]) == (None, "plant/+/#1: 2 above the forecast")
        assert (messages[1]["open"], messages[1]["ended"]) == (False, "accepted")
        assert messages[1]["summary"] == "plant/+/#1: changed for good, and accepted as the new normal"

    run(test)


def test_the_end_of_one_leaves_the_next(broker: Mosquitto, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        async with Running(box(broker, office, metrics)):
            first = office.begin("pump", start=1)
            await until(lambda: office.waiting() == {})
            second = office.begin("pump", start=2)
            await until(lambda: office.waiting() == {})
            office.end(first)  # told late
            await until(lambda: office.waiting() == {})
            assert await retained(broker) == {"tocsin/incidents/pump"}
            office.end(second)
            await until(lambda: office.waiting() == {})
            assert await retained(broker) == set()

    run(test)


@pytest.mark.full
def test_a_broker_that_is_down(broker: Mosquitto, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        await asyncio.to_thread(broker.stop)
        office.begin("pump")
        made = box(broker, office, metrics)
        async with Running(made):
            await until(lambda: made.health.last_error)
            await asyncio.to_thread(broker.start)
            await until(lambda: office.waiting() == {})
        assert await retained(broker) == {"tocsin/incidents/pump"}
        assert str(broker.port) in (made.health.last_error or "")

    run(test)


@pytest.mark.parametrize("name", ["a\0b", "+", "#"])
def test_no_name_makes_a_wrong_topic(name: str, broker: Mosquitto, office: Office) -> None:
    async def test() -> None:
        office.sinks = ()
        sink = MqttSink(SinkSettings(name="sink", port=broker.port), Settings())
        number = office.begin("pump")
        await sink.open()
        try:
            await until(lambda: sink._connection.connected)
            signal = office.signal("pump")
            object.__setattr__(signal, "name", name)
            await sink.deliver(office.incident(number), signal, "firing")
        finally:
            await sink.close()
        assert await retained(broker) == {"tocsin/incidents/" + "".join("_" if c in "+#\0" else c for c in name)}

    run(test)

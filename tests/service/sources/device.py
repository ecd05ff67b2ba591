"""A client of the broker, as sensors and dashboards are."""

import json
from typing import Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from tests.service.helpers import Mosquitto


class Device:
    """Publishes, and hears what others publish."""

    def __init__(self, broker: Mosquitto, *topics: str, user: tuple[str, str] | None = None) -> None:
        self.heard: list[tuple[str, bytes, bool]] = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        if user:
            self._client.username_pw_set(*user)
        self._client.on_message = lambda client, data, message: self.heard.append(
            (message.topic, message.payload, message.retain)
        )
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        for topic in topics:
            self._client.subscribe(topic, qos=1)

    def publish(self, topic: str, payload: Any, *, qos: int = 1, retain: bool = False) -> None:
        text = payload if isinstance(payload, (str, bytes)) else json.dumps(payload)
        self._client.publish(topic, text, qos=qos, retain=retain).wait_for_publish(10)

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

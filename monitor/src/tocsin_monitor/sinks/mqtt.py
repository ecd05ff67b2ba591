"""An MQTT broker, as a sink."""

import json

from tocsin_monitor.as_json import incident_json
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MqttSinkSettings
from tocsin_monitor.mqtt import BrokerConnection, BrokerError
from tocsin_monitor.sinks.alerts import event_in_message, link_to, summary_of
from tocsin_monitor.sinks.base import DeliveryError, Sink
from tocsin_monitor.store import IncidentRow, Message, SignalRow

# Characters that a topic cannot have.
_FORBIDDEN = str.maketrans("+#\0", "___")


class MqttSink(Sink):
    """Publishes an incident on the topic of its signal, retained while it is open.

    Its end is published too, and the retained message is cleared. A silence has its own topic below that of its signal,
    because a signal may fall silent during an incident.
    """

    def __init__(self, settings: MqttSinkSettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings, self._monitor = settings, monitor
        self._retained: dict[str, int] = {}  # which incident was retained last on a topic
        self._trouble: str | None = None
        self._connection = BrokerConnection(
            settings,
            settings.client_id or f"tocsin-{self.name}",
            on_trouble=self._note,
            on_connect=lambda session_kept: self._note(None),
        )

    async def open(self) -> None:
        await self._connection.__aenter__()

    async def close(self) -> None:
        await self._connection.__aexit__(None, None, None)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        topic = self._settings.topic.format(signal=signal.name.translate(_FORBIDDEN))
        if incident.kind != "alarm":
            topic += f"/{incident.kind}"
        message = {
            "status": status,
            "summary": summary_of(incident, signal, status),
            **incident_json(incident, signal.name),
            "link": link_to(self._monitor, incident),
            "event": event_in_message(self._monitor, incident),
        }
        payload = json.dumps(message, ensure_ascii=False).encode()
        if status == "firing":
            await self._publish(topic, payload, retain=True)
            self._retained[topic] = incident.id
            return
        await self._publish(topic, payload, retain=False)
        # Where the next one began already, what is retained is about that one.
        if self._retained.get(topic, incident.id) == incident.id:
            await self._publish(topic, b"", retain=True)
            self._retained.pop(topic, None)

    async def _publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        try:
            await self._connection.publish(topic, payload, retain=retain, timeout=self._settings.timeout)
        except BrokerError as error:
            raise DeliveryError(self._trouble or str(error)) from None

    def _note(self, trouble: str | None) -> None:
        self._trouble = trouble

"""PagerDuty, by its Events API version 2."""

from collections.abc import Sequence, Set
from typing import Any

from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import PagerDutySettings
from tocsin_monitor.outgoing import Client, open_client
from tocsin_monitor.sinks.alerts import fingerprint
from tocsin_monitor.sinks.base import HttpSink
from tocsin_monitor.sinks.notices import Notices, shortened
from tocsin_monitor.store import IncidentRow, Message, SignalRow

_PATH = "/v2/enqueue"
_SUMMARY = 1024  # characters


class PagerDutySink(HttpSink):
    """Triggers an alert, acknowledges it when somebody acknowledges the incident here, and resolves it.

    All events of an incident have the same `dedup_key`: one that arrives twice changes nothing. Acknowledgements are
    looked for every `refresh` seconds; after a restart they are sent once more.
    """

    kind = "pagerduty"

    def __init__(self, settings: PagerDutySettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self.refresh = settings.refresh
        self._settings, self._monitor = settings, monitor
        self._notices = Notices(settings, monitor)
        self._acknowledged: set[int] = set()

    def _connect(self) -> Client:
        key = self._settings.routing_key.get_secret_value()
        client = open_client(self._settings.url, timeout=self._settings.timeout)
        client.secrets = (key, *client.secrets)
        return client

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        if status == "resolved":
            await self._event("resolve", incident, signal)
            return
        notice = self._notices.write(incident, signal, status)
        payload = {
            "summary": shortened(notice.title, _SUMMARY),
            "source": signal.name,
            "severity": notice.fields["level"],
            "timestamp": time_text(incident.start // 10**6 * 10**6),  # not more digits than it documents
            "component": signal.name,
            "class": incident.kind,
            "custom_details": {
                "text": notice.text,
                **{name: value for name, value in notice.fields.items() if value is not None},
            },
        }
        links = [{"href": notice.link, "text": "Open the incident"}] if notice.link else []
        await self._event("trigger", incident, signal, payload=payload, links=links, client="Tocsin")

    async def repeat(self, incidents: Sequence[tuple[IncidentRow, SignalRow]]) -> None:
        for incident, signal in incidents:
            if incident.acknowledged is not None and incident.id not in self._acknowledged:
                await self._event("acknowledge", incident, signal)
                self._acknowledged.add(incident.id)

    def keep_only(self, numbers: Set[int]) -> None:
        self._acknowledged &= numbers

    async def _event(self, action: str, incident: IncidentRow, signal: SignalRow, **more: Any) -> None:
        # Numbers of incidents alone would mix up two monitors with the same key.
        identity = {"incident": str(incident.id), "signal": signal.name, "start": str(incident.start)}
        event = {
            "routing_key": self._settings.routing_key.get_secret_value(),
            "event_action": action,
            "dedup_key": f"tocsin-{fingerprint(identity)}",
        }
        await self._post(_PATH, event | more)

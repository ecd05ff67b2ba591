"""Any address that takes Alertmanager's webhook payload."""

from typing import Any

from tocsin.service.as_json import time_text
from tocsin.service.config import Settings, WebhookSettings
from tocsin.service.outgoing import Client, open_client, without_user
from tocsin.service.sinks.alerts import IDENTITY, Alert, alert_of, event_in_message, fingerprint, link_to
from tocsin.service.sinks.posting import HttpSink
from tocsin.service.store import IncidentRow, Message, SignalRow

# The end of an open alert, as Alertmanager writes it.
_NOT_YET = "0001-01-01T00:00:00Z"


class WebhookSink(HttpSink):
    """Posts each message as Alertmanager would (payload version 4), as a group of one alert.

    A message without a reply is sent again: receivers recognise it by `groupKey` or `fingerprint`, which stay the same
    for the whole incident. Its severity may rise in the meantime.
    """

    kind = "webhook"

    def __init__(self, settings: WebhookSettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings, self._monitor = settings, monitor

    def _connect(self) -> Client:
        settings = self._settings
        return open_client(
            settings.url, timeout=settings.timeout, bearer_token=settings.bearer_token, headers=settings.headers
        )

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        alert = alert_of(incident, signal, link_to(self._monitor, incident), status)
        payload = self._payload(alert, status)
        event = event_in_message(self._monitor, incident)
        await self._post(without_user(self._settings.url), payload if event is None else {**payload, "event": event})

    def _payload(self, alert: Alert, status: Message) -> dict[str, Any]:
        identity = {name: alert.labels[name] for name in IDENTITY}
        key = ", ".join(f'{name}="{identity[name]}"' for name in ("alertname", "incident"))
        ends = _NOT_YET if status == "firing" or alert.ends is None else time_text(alert.ends)
        return {
            "version": "4",
            "groupKey": f"{{}}:{{{key}}}",
            "truncatedAlerts": 0,
            "status": status,
            "receiver": self.name,
            "groupLabels": identity,
            "commonLabels": alert.labels,
            "commonAnnotations": alert.annotations,
            "externalURL": self._monitor.server.external_url or "",
            "alerts": [
                {
                    "status": status,
                    "labels": alert.labels,
                    "annotations": alert.annotations,
                    "startsAt": time_text(alert.starts),
                    "endsAt": ends,
                    "generatorURL": alert.url,
                    "fingerprint": fingerprint(identity),
                }
            ],
        }

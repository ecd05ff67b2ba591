"""Prometheus' Alertmanager, and any address that takes its webhook payload."""

import time
from collections.abc import Sequence, Set
from typing import Any

from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import AlertmanagerSettings
from tocsin_monitor.outgoing import without_user
from tocsin_monitor.sinks.alerts import (
    IDENTITY,
    Alert,
    alert_of,
    check_labels,
    event_in_message,
    fingerprint,
    link_to,
    plain,
    told_level,
)
from tocsin_monitor.sinks.base import HttpSink
from tocsin_monitor.store import IncidentRow, Message, SignalRow

# Alertmanager ends an alert that is not repeated for this many times `refresh`.
MISSED = 3
_PATH = "/api/v2/alerts"
# The end of an open alert, as Alertmanager writes it.
_NOT_YET = "0001-01-01T00:00:00Z"


class AlertmanagerSink(HttpSink):
    """Posts alerts, and repeats those that are still open.

    For Alertmanager, the labels identify an alert. An incident that became more urgent is therefore another alert, and
    the one with the lower severity is ended in the same request. After a restart it is forgotten, and expires.
    """

    keeps_open = False  # what is not repeated expires; what ends at once, Alertmanager tells nobody

    def __init__(self, settings: AlertmanagerSettings, monitor: Settings) -> None:
        super().__init__(settings, monitor)
        check_labels(settings.labels)
        self.refresh = settings.refresh
        self._levels: dict[int, str] = {}  # the severity under which each incident was sent

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        if status == "firing":
            await self._send_open([(incident, signal)])
            return
        level = self._levels.get(incident.id)
        await self._post(_PATH, [self._over(incident, signal, level)])
        self._levels.pop(incident.id, None)

    async def repeat(self, incidents: Sequence[tuple[IncidentRow, SignalRow]]) -> None:
        await self._send_open(incidents)

    def keep_only(self, numbers: Set[int]) -> None:
        self._levels = {number: level for number, level in self._levels.items() if number in numbers}

    async def _send_open(self, incidents: Sequence[tuple[IncidentRow, SignalRow]]) -> None:
        alerts: list[dict[str, Any]] = []
        until = time.time_ns() + int(MISSED * self._settings.refresh * 1e9)
        for incident, signal in incidents:
            sent, level = self._levels.get(incident.id), told_level(incident)
            if sent not in (None, level):
                alerts.append(self._over(incident, signal, sent))
            link = link_to(self._monitor, incident)
            alert = alert_of(incident, signal, link, "firing", more=self._settings.labels)
            alerts.append(plain(alert, until))
        await self._post(_PATH, alerts)
        self._levels |= {incident.id: told_level(incident) for incident, _ in incidents}

    def _over(self, incident: IncidentRow, signal: SignalRow, level: str | None) -> dict[str, Any]:
        link = link_to(self._monitor, incident)
        alert = alert_of(incident, signal, link, "resolved", level=level, more=self._settings.labels)
        # Not in the future: Alertmanager would wait until then.
        return plain(alert, max(alert.starts, min(alert.ends or time.time_ns(), time.time_ns())))


class WebhookSink(HttpSink):
    """Posts each message as Alertmanager would (payload version 4), as a group of one alert.

    A message without a reply is sent again: receivers recognise it by `groupKey` or `fingerprint`, which stay the same
    for the whole incident. Its severity may rise in the meantime.
    """

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

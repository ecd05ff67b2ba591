"""Chats, phones and pagers: a notice becomes one document, posted to one address."""

import re
from abc import abstractmethod
from collections.abc import Sequence, Set
from typing import Any

from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import PagerDutySettings, TextSettings
from tocsin_monitor.outgoing import Client, open_client, without_user
from tocsin_monitor.sinks.alerts import fingerprint
from tocsin_monitor.sinks.base import DeliveryError, HttpSink
from tocsin_monitor.sinks.notices import Notice, Notices, shortened
from tocsin_monitor.store import IncidentRow, Message, SignalRow


class NoticeSink(HttpSink):
    """A sink that writes to people."""

    def __init__(self, settings: TextSettings, monitor: Settings) -> None:
        super().__init__(settings, monitor)
        self._notices = Notices(settings, monitor)


class ChatSink(NoticeSink):
    """Posts each notice to an incoming webhook."""

    keeps_open = False

    @abstractmethod
    def _body(self, notice: Notice) -> dict[str, Any]:
        """The document that the chat's webhook takes."""

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        notice = self._notices.write(incident, signal, status)
        await self._post(without_user(self._settings.url), self._body(notice))


# Slack's limits, in characters.
_SLACK_HEADER, _SLACK_TEXT, _SLACK_FIELD = 150, 3000, 2000


class SlackSink(ChatSink):
    """Posts blocks: a header, the text, the facts and a link. `text` is what notifications show."""

    def _body(self, notice: Notice) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [
            {
                "type": "header",
                "text": {"type": "plain_text", "text": shortened(notice.title or "Incident", _SLACK_HEADER)},
            }
        ]
        if notice.text:
            blocks.append({"type": "section", "text": _slack_text(_slack_escaped(notice.text), _SLACK_TEXT)})
        facts = [
            _slack_text(f"*{name}*\n{_slack_escaped(value)}", _SLACK_FIELD) for name, value in notice.facts.items()
        ]
        blocks.append({"type": "section", "fields": facts})
        if notice.link:
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": f"<{notice.link}|Open the incident>"}})
        return {"text": shortened(_slack_escaped(notice.title), _SLACK_TEXT), "blocks": blocks}


def _slack_text(escaped: str, most: int) -> dict[str, Any]:
    """A text in which nothing is a link or a mention. `verbatim`: not even what looks like a channel or a person."""
    return {"type": "mrkdwn", "text": shortened(escaped, most), "verbatim": True}


def _slack_escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_MATTERMOST_TITLE, _MATTERMOST_TEXT = 200, 6000  # characters; all attachments together may have 7,600


class MattermostSink(ChatSink):
    """Posts a message attachment with the colour of the severity."""

    def _body(self, notice: Notice) -> dict[str, Any]:
        title = shortened(notice.title, _MATTERMOST_TITLE)
        attachment = {
            "fallback": title,
            "color": notice.colour,
            "title": title,
            "text": shortened(_mattermost_escaped(notice.text), _MATTERMOST_TEXT),
            "fields": [
                {"short": name != "Members", "title": name, "value": _mattermost_escaped(value)}
                for name, value in notice.facts.items()
            ],
        }
        if notice.link:
            attachment["title_link"] = notice.link
        where = {"channel": self._settings.channel, "username": self._settings.username}
        return {name: value for name, value in where.items() if value} | {"attachments": [attachment]}


def _mattermost_escaped(text: str) -> str:
    """A text without marks of Markdown, and without @channel."""
    return re.sub(r"([\\`*_~#|<>\[\]])", r"\\\1", text).replace("@", "@\u200b")


_TEAMS_TEXT = 10_000  # characters; a whole message may have 28 KB
_TEAMS_STYLES = {"over": "good", "critical": "attention", "warning": "warning", "info": "accent"}


class TeamsSink(ChatSink):
    """Posts an adaptive card, as the workflow "Send webhook alerts to a channel" takes it."""

    def _body(self, notice: Notice) -> dict[str, Any]:
        style = _TEAMS_STYLES[notice.level]
        title = {
            "type": "TextBlock",
            "text": _teams_escaped(shortened(notice.title, 500)),
            "size": "large",
            "weight": "bolder",
            "color": style,
            "wrap": True,
        }
        facts = [{"title": name, "value": _teams_escaped(value)} for name, value in notice.facts.items()]
        text = {"type": "TextBlock", "text": _teams_escaped(shortened(notice.text, _TEAMS_TEXT)), "wrap": True}
        card: dict[str, Any] = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "msteams": {"width": "Full"},
            "body": [title, text, {"type": "FactSet", "facts": facts}],
        }
        if notice.link:
            card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the incident", "url": notice.link}]
        content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return {"type": "message", "attachments": [content]}


def _teams_escaped(text: str) -> str:
    """A text without marks of Markdown: names of signals may have any."""
    for mark in "\\*_[]":
        text = text.replace(mark, f"\\{mark}")
    return text


# ntfy turns a longer message into a file. It counts bytes, and a character may have four.
_NTFY_TEXT, _NTFY_TITLE = 1000, 200
_NTFY_SIGNS = {
    "over": "white_check_mark", "critical": "rotating_light", "warning": "warning", "info": "information_source",
}  # fmt: skip


class NtfySink(NoticeSink):
    """Publishes to a topic: urgent if the incident is critical, quiet when it has ended; with its picture."""

    keeps_open = False

    def _connect(self) -> Client:
        return open_client(self._settings.url, timeout=self._settings.timeout, bearer_token=self._settings.token)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        notice = self._notices.write(incident, signal, status)
        picture = None if self.pictures is None else await self.pictures.draw(incident, signal)
        if picture is not None:
            try:
                await self._send("PUT", f"/{self._settings.topic}", params=self._options(notice), content=picture)
                return
            except DeliveryError as error:
                if not error.refused:
                    raise
                # The server takes no attachments, or no more of them: the message itself is what matters.
        await self._post("", self._message(notice))

    def _message(self, notice: Notice) -> dict[str, object]:
        message = {
            "topic": self._settings.topic,
            "title": shortened(notice.title, _NTFY_TITLE),
            "message": shortened(notice.text, _NTFY_TEXT),
            "priority": self._priority(notice),
            "tags": self._tags(notice),
        }
        return message | ({"click": notice.link} if notice.link else {})

    def _options(self, notice: Notice) -> dict[str, str]:
        """The same in the address, since the body is the picture."""
        message = self._message(notice)
        tags = ",".join(self._tags(notice))
        options = {name: str(value) for name, value in message.items() if name != "topic"}
        return options | {"tags": tags, "filename": f"incident-{notice.fields['id']}.png"}

    def _priority(self, notice: Notice) -> int:
        settings = self._settings
        if notice.over:
            return int(settings.priority_ended)
        return int(settings.priority_critical if notice.critical else settings.priority)

    def _tags(self, notice: Notice) -> list[str]:
        return [_NTFY_SIGNS[notice.level], *self._settings.tags]


_PAGERDUTY_PATH = "/v2/enqueue"
_PAGERDUTY_SUMMARY = 1024  # characters


class PagerDutySink(NoticeSink):
    """Triggers an alert, acknowledges it when somebody acknowledges the incident here, and resolves it.

    All events of an incident have the same `dedup_key`: one that arrives twice changes nothing. Acknowledgements are
    looked for every `refresh` seconds; after a restart they are sent once more.
    """

    def __init__(self, settings: PagerDutySettings, monitor: Settings) -> None:
        super().__init__(settings, monitor)
        self.refresh = settings.refresh
        self._acknowledged: set[int] = set()

    def _connect(self) -> Client:
        key = self._settings.routing_key.get_secret_value()
        client = super()._connect()
        client.secrets = (key, *client.secrets)
        return client

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        if status == "resolved":
            await self._event("resolve", incident, signal)
            return
        notice = self._notices.write(incident, signal, status)
        payload = {
            "summary": shortened(notice.title, _PAGERDUTY_SUMMARY),
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
        await self._post(_PAGERDUTY_PATH, event | more)

"""Mattermost, by an incoming webhook."""

import re
from typing import Any

from tocsin.service.config import Settings
from tocsin.service.config.sinks import MattermostSettings
from tocsin.service.sinks.chat import ChatSink
from tocsin.service.sinks.notices import Notice, shortened

_TITLE, _TEXT = 200, 6000  # characters; all attachments together may have 7,600


class MattermostSink(ChatSink):
    """Posts a message attachment with the colour of the severity."""

    kind = "mattermost"

    def __init__(self, settings: MattermostSettings, monitor: Settings) -> None:
        super().__init__(settings, monitor)
        self._where = {"channel": settings.channel, "username": settings.username}

    def _body(self, notice: Notice) -> dict[str, Any]:
        title = shortened(notice.title, _TITLE)
        attachment = {
            "fallback": title,
            "color": notice.colour,
            "title": title,
            "text": shortened(_escaped(notice.text), _TEXT),
            "fields": [
                {"short": name != "Members", "title": name, "value": _escaped(value)}
                for name, value in notice.facts.items()
            ],
        }
        if notice.link:
            attachment["title_link"] = notice.link
        return {name: value for name, value in self._where.items() if value} | {"attachments": [attachment]}


def _escaped(text: str) -> str:
    """A text without marks of Markdown, and without @channel."""
    return re.sub(r"([\\`*_~#|<>\[\]])", r"\\\1", text).replace("@", "@\u200b")

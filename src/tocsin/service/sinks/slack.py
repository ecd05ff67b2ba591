"""Slack, by an incoming webhook."""

from typing import Any

from tocsin.service.sinks.chat import ChatSink
from tocsin.service.sinks.notices import Notice, shortened

# Slack's limits, in characters.
_HEADER, _TEXT, _FIELD = 150, 3000, 2000


class SlackSink(ChatSink):
    """Posts blocks: a header, the text, the facts and a link. `text` is what notifications show."""

    kind = "slack"

    def _body(self, notice: Notice) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [
            {"type": "header", "text": {"type": "plain_text", "text": shortened(notice.title or "Incident", _HEADER)}}
        ]
        if notice.text:
            blocks.append({"type": "section", "text": _text(notice.text, _TEXT)})
        facts = [_text(f"*{name}*\n{{}}", _FIELD, value) for name, value in notice.facts.items()]
        blocks.append({"type": "section", "fields": facts})
        if notice.link:
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": f"<{notice.link}|Open the incident>"}})
        return {"text": shortened(_escaped(notice.title), _TEXT), "blocks": blocks}


def _text(text: str, most: int, *values: str) -> dict[str, Any]:
    """A text in which nothing is a link or a mention. `verbatim`: not even what looks like a channel or a person."""
    written = text.format(*map(_escaped, values)) if values else _escaped(text)
    return {"type": "mrkdwn", "text": shortened(written, most), "verbatim": True}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""Microsoft Teams, by the webhook of a workflow."""

from typing import Any

from tocsin.service.sinks.chat import ChatSink
from tocsin.service.sinks.notices import Notice, shortened

_TEXT = 10_000  # characters; a whole message may have 28 KB


class TeamsSink(ChatSink):
    """Posts an adaptive card, as the workflow "Send webhook alerts to a channel" takes it."""

    kind = "teams"

    def _body(self, notice: Notice) -> dict[str, Any]:
        style = "good" if notice.over else "attention" if notice.critical else "warning"
        title = {
            "type": "TextBlock",
            "text": _escaped(shortened(notice.title, 500)),
            "size": "large",
            "weight": "bolder",
            "color": style,
            "wrap": True,
        }
        facts = [{"title": name, "value": _escaped(value)} for name, value in notice.facts.items()]
        text = {"type": "TextBlock", "text": _escaped(shortened(notice.text, _TEXT)), "wrap": True}
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


def _escaped(text: str) -> str:
    """A text without marks of Markdown: names of signals may have any."""
    for mark in "\\*_[]":
        text = text.replace(mark, f"\\{mark}")
    return text

"""The other ends of channels: servers that refuse what the documentation of the real ones does not allow."""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


def expect(condition: object, what: str) -> None:
    """Refuse a request for this reason."""
    if not condition:
        raise ValueError(what)


class Channel:
    """Checks each request, and answers with `status`, or 400 and the reason. `answers` come first."""

    def __init__(self, check: Callable[[Asked], None], status: int = 200) -> None:
        self.taken: list[Asked] = []
        self.refused: list[str] = []
        self.answers: list[int] = []
        channel = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body)
                answer, text = channel.answers.pop(0) if channel.answers else status, "ok"
                try:
                    check(asked)
                except (ValueError, KeyError, TypeError) as error:
                    answer, text = 400, repr(error)
                    channel.refused.append(text)
                if answer == status:
                    channel.taken.append(asked)
                self.send_response(answer)
                self.end_headers()
                self.wfile.write(text.encode())

            do_PUT = do_POST

            def log_message(self, *message: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def slack(asked: Asked) -> None:
    """https://docs.slack.dev/reference/block-kit/blocks: header and section."""
    body = asked.json
    expect(asked.headers["Content-Type"] == "application/json", "invalid_payload")
    expect(set(body) <= {"text", "blocks"} and body["text"] and 0 < len(body["blocks"]) <= 50, "invalid_blocks")
    for block in body["blocks"]:
        if block["type"] == "header":
            text = block["text"]
            expect(text["type"] == "plain_text" and 0 < len(text["text"]) <= 150, "invalid_blocks")
        else:
            expect(block["type"] == "section" and ("text" in block) != ("fields" in block), "invalid_blocks")
            expect(len(block.get("fields", [])) <= 10, "invalid_blocks")
            for text in [block["text"]] if "text" in block else block["fields"]:
                most = 3000 if "text" in block else 2000
                expect(text["type"] == "mrkdwn" and 0 < len(text["text"]) <= most, "invalid_blocks")


def mattermost(asked: Asked) -> None:
    """https://developers.mattermost.com/integrate/reference/message-attachments/"""
    body = asked.json
    expect(set(body) <= {"text", "channel", "username", "attachments"}, "unknown field")
    for attachment in body["attachments"]:
        expect(set(attachment) <= {"fallback", "color", "title", "title_link", "text", "fields"}, "unknown field")
        expect(re.fullmatch("#[0-9a-f]{6}", attachment["color"]), "colour")
        expect(len(json.dumps(body["attachments"])) < 10_000, "too long")
        for field in attachment["fields"]:
            expect(set(field) == {"short", "title", "value"} and isinstance(field["short"], bool), "field")


def teams(asked: Asked) -> None:
    """An adaptive card as a workflow takes it; https://adaptivecards.io/explorer/"""
    body = asked.json
    expect(len(asked.body) < 28 * 1024, "too long")
    expect(body["type"] == "message", "type")
    (attachment,) = body["attachments"]
    expect(attachment["contentType"] == "application/vnd.microsoft.card.adaptive", "contentType")
    card = attachment["content"]
    expect(card["type"] == "AdaptiveCard" and card["version"] in ("1.2", "1.3", "1.4", "1.5"), "card")
    expect(card["$schema"] == "http://adaptivecards.io/schemas/adaptive-card.json", "schema")
    for element in card["body"]:
        if element["type"] == "TextBlock":
            expect(isinstance(element["text"], str), "text")
            expect(element.get("color", "default") in ("default", "accent", "good", "warning", "attention"), "colour")
        else:
            expect(element["type"] == "FactSet" and element["facts"], "element")
            expect(all(set(fact) == {"title", "value"} for fact in element["facts"]), "fact")
    for action in card.get("actions", []):
        expect(action["type"] == "Action.OpenUrl" and action["url"].startswith("https://"), "action")


def pagerduty(asked: Asked) -> None:
    """https://developer.pagerduty.com/docs/events-api-v2/trigger-events/"""
    event = asked.json
    expect(asked.path == "/v2/enqueue", "path")
    expect(len(event["routing_key"]) == 32, "routing_key")
    expect(0 < len(event["dedup_key"]) <= 255, "dedup_key")
    expect(event["event_action"] in ("trigger", "acknowledge", "resolve"), "event_action")
    if event["event_action"] == "trigger":
        payload = event["payload"]
        expect(0 < len(payload["summary"]) <= 1024 and payload["source"], "summary, source")
        expect(payload["severity"] in ("critical", "error", "warning", "info"), "severity")
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", payload["timestamp"]), "timestamp")
        expect(set(payload) <= {
            "summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details",
        }, "payload")  # fmt: skip
        expect(all(set(link) == {"href", "text"} for link in event["links"]), "links")


def ntfy(asked: Asked) -> None:
    """https://docs.ntfy.sh/publish/: as JSON to the root, or with an attachment to the topic."""
    if asked.method == "PUT":
        expect(re.fullmatch(r"/[A-Za-z0-9_-]{1,64}", asked.path), "topic")
        expect(asked.body.startswith(PNG) and asked.query["filename"].endswith(".png"), "attachment")
        told: dict[str, Any] = {**asked.query, "priority": int(asked.query["priority"])}
        told["tags"] = told["tags"].split(",")
    else:
        told = asked.json
        expect(asked.path == "/" and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", told["topic"]), "topic")
    expect(1 <= told["priority"] <= 5, "priority")
    expect(all(isinstance(tag, str) for tag in told["tags"]), "tags")
    expect(len(told["message"].encode()) <= 4096, "message")
    expect(told.get("click", "https://").startswith("https://"), "click")

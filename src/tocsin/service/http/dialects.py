"""Refusals in the words of the protocols that others speak."""

import json
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

REMOTE_WRITE, OTLP, INFLUX, INFLUX_1 = "/api/v1/write", "/v1/metrics", "/api/v2/write", "/write"
#: Where observations are pushed in formats of others.
PUSHED = frozenset((REMOTE_WRITE, OTLP, INFLUX, INFLUX_1))
PROTOBUF = "application/x-protobuf"

_INFLUX_CODES = {
    400: "invalid", 401: "unauthorized", 403: "forbidden", 413: "request too large", 415: "invalid",
    422: "unprocessable entity", 429: "too many requests", 503: "unavailable",
}  # fmt: skip
# The codes of gRPC.
_OTLP_CODES = {400: 3, 401: 16, 403: 7, 429: 8, 501: 12, 503: 14}
_UNKNOWN = 2
#: What is to be sent again, where clients give up on the status that it has elsewhere: Prometheus throws samples away
#: unless the status is 5xx, and OTLP's clients do so after 408.
SENT_AGAIN: dict[str, tuple[int, ...]] = {REMOTE_WRITE: (408, 429), OTLP: (408,)}


def in_dialect(scope: Scope, response: Response) -> Response:
    """A refusal as the clients of this address expect it."""
    write = _DIALECTS.get(scope["path"])
    if write is None:
        return response
    message = json.loads(bytes(response.body))["error"]["message"]
    status = response.status_code
    headers = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    if status in SENT_AGAIN.get(scope["path"], ()):
        status = 503
        headers.setdefault("retry-after", "1")
    body, media_type = write(status, message, Headers(scope=scope).get("content-type", ""))
    return Response(body, status, headers, media_type)


def status_message(code: int, message: str) -> bytes:
    """A google.rpc.Status. It is written by hand, since it is also needed where protobuf is not installed."""
    text = message.encode()
    length, varint = len(text), bytearray()
    while length > 0x7F:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    varint.append(length)
    return bytes([0x08, code, 0x12, *varint]) + text


def _otlp(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    code = _OTLP_CODES.get(status, _UNKNOWN)
    if content_type.startswith("application/json"):
        return json.dumps({"code": code, "message": message}).encode(), "application/json"
    return status_message(code, message), PROTOBUF


def _influx(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    code = _INFLUX_CODES.get(status, "internal error")
    return json.dumps({"code": code, "message": message}).encode(), "application/json"


def _influx_1(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    return json.dumps({"error": message}).encode(), "application/json"


def _plain(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    return message.encode(), "text/plain"


_DIALECTS: dict[str, Callable[[int, str, str], tuple[bytes, str]]] = {
    REMOTE_WRITE: _plain,  # Prometheus writes it into its log
    OTLP: _otlp,
    INFLUX: _influx,
    INFLUX_1: _influx_1,
}

"""The route of OpenTelemetry metrics."""

import json

from fastapi import APIRouter, Request, Response

from tocsin_monitor.http.auth import SENDER
from tocsin_monitor.http.bodies import media_type
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.monitor_access import Monitor
from tocsin_monitor.http.push import BINARY, PROTOBUF, Dialect, Pushed, PushFormat, check_installed, push

PATH = "/v1/metrics"
_JSON = "application/json"
_CONTENT = {PROTOBUF: {"schema": BINARY}, _JSON: {"schema": {"type": "object"}}}

# The codes of gRPC.
_CODES = {400: 3, 401: 16, 403: 7, 429: 8, 501: 12, 503: 14}
_UNKNOWN = 2


def status_message(code: int, message: str) -> bytes:
    """A google.rpc.Status. It is written by hand, since it is also needed where protobuf is not installed."""
    text = message.encode()
    length, varint = len(text), bytearray()
    while length > 0x7F:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    varint.append(length)
    return bytes([0x08, code, 0x12, *varint]) + text


def _refusal(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    code = _CODES.get(status, _UNKNOWN)
    if content_type.startswith(_JSON):
        return json.dumps({"code": code, "message": message}).encode(), _JSON
    return status_message(code, message), PROTOBUF


DIALECT = Dialect(_refusal, sent_again=(408,))
router = APIRouter(tags=["push"])
FORMAT = PushFormat(router, {PATH: DIALECT})


@router.post(
    PATH,
    summary="OpenTelemetry metrics",
    response_class=Response,
    responses={
        200: {"content": _CONTENT, "description": "How many points were refused, if any."},
        **DIALECT.replies(_CONTENT),
    },
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}},
)
async def export(request: Request, monitor: Monitor, caller: SENDER, receivers: Pushed) -> Response:
    """An ExportMetricsServiceRequest in protobuf or JSON, plain or gzip. The reply comes once all of it is durable.

    Points that were refused are counted in `partial_success`, and all others are kept.
    """
    kind = media_type(request.headers)
    if kind not in _CONTENT:
        raise HttpError(415, f"the body must be {' or '.join(_CONTENT)}, got {kind!r:.100}", "Content-Type")
    check_installed("protobuf", "google.protobuf", "opentelemetry.proto")
    from tocsin_monitor.plugins.otlp.reading import read_otlp, reply_otlp

    receiver, as_json = receivers["otlp"], kind == _JSON
    done = await push(
        request, monitor, caller, receiver, lambda body, intake: read_otlp(body, as_json, receiver.naming, intake)
    )
    return Response(reply_otlp(done.refused, done.why, as_json), media_type=kind)

"""OpenTelemetry metrics over HTTP."""

from fastapi import APIRouter, Request, Response

from tocsin.service.http.auth import SENDER
from tocsin.service.http.content_type import media_type
from tocsin.service.http.dialects import OTLP, PROTOBUF, SENT_AGAIN
from tocsin.service.http.error_replies import BINARY, pushed
from tocsin.service.http.errors import HttpError
from tocsin.service.http.monitor_access import Monitor
from tocsin.service.http.push import Pushed, check_installed, push
from tocsin.service.push import Intake

router = APIRouter(tags=["push"])

_JSON = "application/json"
_CONTENT = {PROTOBUF: {"schema": BINARY}, _JSON: {"schema": {"type": "object"}}}


@router.post(
    OTLP,
    summary="OpenTelemetry metrics",
    response_class=Response,
    responses={
        200: {"content": _CONTENT, "description": "How many points were refused, if any."},
        **pushed(_CONTENT, SENT_AGAIN[OTLP]),
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
    from tocsin.service.push.otlp import read_otlp, reply_otlp

    def read(body: bytes, intake: Intake) -> None:
        read_otlp(body, kind == _JSON, receivers.otlp_names, intake)

    done = await push(request, monitor, caller, receivers.otlp, read)
    return Response(reply_otlp(done.refused, done.why, kind == _JSON), media_type=kind)

"""The routes of InfluxDB's line protocol."""

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tocsin_monitor.http.auth import SENDER
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.monitor_access import Monitor
from tocsin_monitor.http.push import Dialect, Pushed, PushFormat, push
from tocsin_monitor.plugins.influx.reading import PRECISIONS, read_lines

PATH, PATH_1 = "/api/v2/write", "/write"
_CODES = {
    400: "invalid", 401: "unauthorized", 403: "forbidden", 413: "request too large", 415: "invalid",
    422: "unprocessable entity", 429: "too many requests", 503: "unavailable",
}  # fmt: skip
_TEXT = {"text/plain": {"schema": {"type": "string"}, "example": "cpu,host=a usage_user=2.5 1767225600000000000"}}
_STRING = {"type": "string"}


def _error(*fields: str) -> dict[str, object]:
    schema = {"type": "object", "properties": dict.fromkeys(fields, _STRING), "required": list(fields)}
    return {"application/json": {"schema": schema}}


def _refusal(status: int, message: str, content_type: str) -> tuple[bytes, str]:
    code = _CODES.get(status, "internal error")
    return json.dumps({"code": code, "message": message}).encode(), "application/json"


_DIALECT_1 = Dialect(lambda status, message, kind: (json.dumps({"error": message}).encode(), "application/json"))
router = APIRouter(tags=["push"])
FORMAT = PushFormat(router, {PATH: Dialect(_refusal), PATH_1: _DIALECT_1})


@router.post(
    PATH,
    summary="InfluxDB's line protocol (version 2)",
    status_code=204,
    response_class=Response,
    responses=FORMAT.dialects[PATH].replies(_error("code", "message")),
    openapi_extra={"requestBody": {"required": True, "content": _TEXT}},
)
@router.post(
    PATH_1,
    summary="InfluxDB's line protocol (version 1)",
    status_code=204,
    response_class=Response,
    responses=FORMAT.dialects[PATH_1].replies(_error("error")),
    openapi_extra={"requestBody": {"required": True, "content": _TEXT}},
)
async def write_lines(
    request: Request,
    monitor: Monitor,
    caller: SENDER,
    receivers: Pushed,
    precision: Annotated[
        str, Query(description="The unit of times.", json_schema_extra={"enum": [*PRECISIONS]})
    ] = "ns",
) -> Response:
    """Points, one per line; the body may be compressed with gzip. The reply comes once they are durable.

    400 if some points were refused: all others are kept. Organisation, bucket and database are ignored.
    """
    unit = PRECISIONS.get(precision)
    if unit is None:
        raise HttpError(400, f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r:.60}", "precision")
    receiver = receivers["influx"]
    done = await push(
        request, monitor, caller, receiver, lambda body, intake: read_lines(body, unit, receiver.naming, intake)
    )
    if done.refused:
        raise HttpError(400, f"partial write: {done.why} dropped={done.refused}", "body")
    return Response(status_code=204)

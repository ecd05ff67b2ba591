"""InfluxDB's line protocol, as Telegraf and InfluxDB's clients send it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tocsin.service.http.auth import SENDER
from tocsin.service.http.dialects import INFLUX, INFLUX_1
from tocsin.service.http.error_replies import pushed
from tocsin.service.http.errors import HttpError
from tocsin.service.http.monitor_access import Monitor
from tocsin.service.http.push import Pushed, push
from tocsin.service.push import Intake
from tocsin.service.push.line_protocol import PRECISIONS, read_lines

router = APIRouter(tags=["push"])

_TEXT = {"text/plain": {"schema": {"type": "string"}, "example": "cpu,host=a usage_user=2.5 1767225600000000000"}}
_STRING = {"type": "string"}


def _error(*fields: str) -> dict[str, object]:
    schema = {"type": "object", "properties": dict.fromkeys(fields, _STRING), "required": list(fields)}
    return {"application/json": {"schema": schema}}


@router.post(
    INFLUX,
    summary="InfluxDB's line protocol (version 2)",
    status_code=204,
    response_class=Response,
    responses=pushed(_error("code", "message")),
    openapi_extra={"requestBody": {"required": True, "content": _TEXT}},
)
@router.post(
    INFLUX_1,
    summary="InfluxDB's line protocol (version 1)",
    status_code=204,
    response_class=Response,
    responses=pushed(_error("error")),
    openapi_extra={"requestBody": {"required": True, "content": _TEXT}},
)
async def write(
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

    def read(body: bytes, intake: Intake) -> None:
        read_lines(body, unit, receivers.influx_names, intake)

    done = await push(request, monitor, caller, receivers.influx, read)
    if done.refused:
        raise HttpError(400, f"partial write: {done.why} dropped={done.refused}", "body")
    return Response(status_code=204)

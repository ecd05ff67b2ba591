"""Formats that others push: Prometheus remote write, OpenTelemetry, and InfluxDB's line protocol.

What is common to them: a body is unpacked, read and made durable, and only then acknowledged.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from tocsin_monitor.http.auth import SENDER, Caller
from tocsin_monitor.http.bodies import media_type, unpacked
from tocsin_monitor.http.errors import (
    BINARY,
    INFLUX,
    INFLUX_1,
    OTLP,
    PROTOBUF,
    REMOTE_WRITE,
    SENT_AGAIN,
    HttpError,
    pushed,
)
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess, done
from tocsin_monitor.http.observations import MOST_OBSERVATIONS, sender_of
from tocsin_monitor.observations import Batch, Status
from tocsin_monitor.push import Intake, MalformedError, Receiver, Receivers, TooManyError
from tocsin_monitor.push.line_protocol import PRECISIONS, read_lines

if TYPE_CHECKING:
    from tocsin_monitor.http.limits import LimitedBody

# Points of one request: senders split what they have into far smaller ones.
MOST_POINTS = 50_000
router = APIRouter(tags=["push"])


async def _receivers(request: Request) -> Receivers:
    receivers: Receivers = request.app.state.receivers
    return receivers


Pushed = Annotated[Receivers, Depends(_receivers)]


@dataclass(frozen=True)
class Pushing:
    """What became of a request's points: how many are kept, how many refused and why, and which were left out."""

    kept: int
    refused: int
    why: str | None
    left_out: Counter[str]


def check_installed(extra: str, *modules: str) -> None:
    """Say which extra is missing."""
    if not all(map(_is_installed, modules)):
        raise HttpError(501, f"this needs an extra: pip install 'tocsin-monitor[{extra}]', and start the monitor again")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


async def push(
    request: Request,
    monitor: MonitorAccess,
    caller: Caller,
    receiver: Receiver,
    read: Callable[[bytes, Intake], None],
    coding: str = "identity",
) -> Pushing:
    """Take a request's points. When this returns, all that are kept are durable. `coding` is how the body is
    compressed if its headers do not say it.

    A request that is sent again, as after 429 or 503, gives the same observations: those that are stored already are
    known by their times.
    """
    receivers: Receivers = request.app.state.receivers
    latest = time.time_ns() + round(monitor.settings.engine.future_tolerance * 1e9)
    intake = Intake(receiver.rates.open(), caller.may_see, MOST_POINTS, latest)
    body: LimitedBody = request.scope["limited_body"]
    raw, sender = await request.body(), sender_of(request, caller)
    try:
        async with receivers.reading:
            coding = request.headers.get("content-encoding", coding)
            plain = await asyncio.to_thread(unpacked, raw, coding, monitor.settings.server.max_body_bytes)
            body.hold(len(plain))
            await asyncio.to_thread(partial(_read, read, plain, intake))
    except HttpError as error:
        if error.status_code < 500:
            receiver.failed(error.detail, sender)
        raise
    refused, why = await _submit(monitor, receiver.name, sender, intake)
    intake.commit()
    receiver.succeeded(intake, refused, why, sender)
    return Pushing(len(intake.observations) - refused, intake.refused + refused, intake.why or why, intake.left_out)


def _read(read: Callable[[bytes, Intake], None], body: bytes, intake: Intake) -> None:
    try:
        read(body, intake)
    except MalformedError as error:
        raise HttpError(400, str(error), "body") from None
    except TooManyError as error:
        raise HttpError(413, str(error), "body") from None


async def _submit(monitor: MonitorAccess, source: str, sender: str, intake: Intake) -> tuple[int, str | None]:
    """Have the engine take the observations, in pieces that it takes; how many it refused, and why the first."""
    most = min(MOST_OBSERVATIONS, monitor.settings.engine.max_waiting)
    observations, refused, why = intake.observations, 0, None
    for begin in range(0, len(observations), most):
        batch = Batch(tuple(observations[begin : begin + most]), source=source, sender=sender)
        for outcome in await done(monitor.engine.submit(batch)):
            if outcome.status in (Status.REFUSED, Status.FUTURE):
                refused += 1
                why = why or f"{outcome.signal!r}: {outcome.message}"
    return refused, why


_VERSIONS = {"": 1, "prometheus.WriteRequest": 1, "io.prometheus.write.v2.Request": 2}
_PROTO = re.compile(r';\s*proto\s*=\s*"?([^";\s]+)"?')
_SNAPPY = "snappy"
_WRITTEN = "X-Prometheus-Remote-Write-{}-Written"


@router.post(
    REMOTE_WRITE,
    summary="Prometheus remote write",
    status_code=204,
    response_class=Response,
    responses=pushed({"text/plain": {"schema": {"type": "string"}}}, SENT_AGAIN[REMOTE_WRITE]),
    openapi_extra={"requestBody": {"required": True, "content": {PROTOBUF: {"schema": BINARY}}}},
)
async def write_remote(request: Request, monitor: Monitor, caller: SENDER, receivers: Pushed) -> Response:
    """Samples as Prometheus sends them, version 1 or 2, compressed with snappy. The reply comes once they are durable.

    400 if some samples were refused: all others are kept, and Prometheus does not send them again.
    """
    version = _version(request)
    check_installed("protobuf", "google.protobuf", "cramjam")
    from tocsin_monitor.push.remote_write import NATIVE_HISTOGRAMS, read_remote_write

    def read(body: bytes, intake: Intake) -> None:
        read_remote_write(body, version, receivers.remote_write_names, intake)

    done = await push(request, monitor, caller, receivers.remote_write, read, _SNAPPY)
    left_out = done.left_out.total() - done.left_out[NATIVE_HISTOGRAMS]
    headers = _counts(done.kept + left_out) if version == 2 else {}
    if done.refused:
        raise HttpError(400, f"{done.refused} samples were refused, {done.kept} kept: {done.why}", headers=headers)
    return Response(status_code=204, headers=headers)


def _version(request: Request) -> int:
    """Of the message, by its type; what has none is of the first version."""
    kind = request.headers.get("content-type", PROTOBUF)
    found = _PROTO.search(kind)
    version = _VERSIONS.get(found[1] if found else "")
    if (media_type(request.headers) or PROTOBUF) != PROTOBUF or version is None:
        accepted = " or ".join(f"{PROTOBUF};proto={name}" for name in _VERSIONS if name)
        raise HttpError(415, f"the body must be {accepted}, got {kind!r:.100}", "Content-Type")
    coding = request.headers.get("content-encoding", _SNAPPY)
    if coding.strip().lower() != _SNAPPY:
        raise HttpError(415, f"the body must be compressed with snappy, got {coding!r:.100}", "Content-Encoding")
    return version


def _counts(samples: int) -> dict[str, str]:
    """What was written. Samples that the rules leave out count: Prometheus takes the others for lost, and complains."""
    written = {"Samples": samples, "Histograms": 0, "Exemplars": 0}
    return {_WRITTEN.format(what): str(count) for what, count in written.items()}


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
    from tocsin_monitor.push.otlp import read_otlp, reply_otlp

    def read(body: bytes, intake: Intake) -> None:
        read_otlp(body, kind == _JSON, receivers.otlp_names, intake)

    done = await push(request, monitor, caller, receivers.otlp, read)
    return Response(reply_otlp(done.refused, done.why, kind == _JSON), media_type=kind)


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

    def read(body: bytes, intake: Intake) -> None:
        read_lines(body, unit, receivers.influx_names, intake)

    done = await push(request, monitor, caller, receivers.influx, read)
    if done.refused:
        raise HttpError(400, f"partial write: {done.why} dropped={done.refused}", "body")
    return Response(status_code=204)

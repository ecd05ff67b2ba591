"""Prometheus remote write."""

import re

from fastapi import APIRouter, Request, Response

from tocsin.service.http.auth import SENDER
from tocsin.service.http.content_type import media_type
from tocsin.service.http.dialects import PROTOBUF, REMOTE_WRITE, SENT_AGAIN
from tocsin.service.http.error_replies import BINARY, pushed
from tocsin.service.http.errors import HttpError
from tocsin.service.http.monitor_access import Monitor
from tocsin.service.http.push import Pushed, check_installed, push
from tocsin.service.push import Intake

router = APIRouter(tags=["push"])

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
async def write(request: Request, monitor: Monitor, caller: SENDER, receivers: Pushed) -> Response:
    """Samples as Prometheus sends them, version 1 or 2, compressed with snappy. The reply comes once they are durable.

    400 if some samples were refused: all others are kept, and Prometheus does not send them again.
    """
    version = _version(request)
    check_installed("protobuf", "google.protobuf", "cramjam")
    from tocsin.service.push.remote_write import NATIVE_HISTOGRAMS, read_remote_write

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

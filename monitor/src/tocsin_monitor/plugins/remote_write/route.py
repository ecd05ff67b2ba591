"""The route of Prometheus remote write."""

import re

from fastapi import APIRouter, Request, Response

from tocsin_monitor.http.auth import SENDER
from tocsin_monitor.http.bodies import media_type
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.monitor_access import Monitor
from tocsin_monitor.http.push import BINARY, PROTOBUF, Dialect, Pushed, PushFormat, check_installed, push

PATH = "/api/v1/write"
_VERSIONS = {"": 1, "prometheus.WriteRequest": 1, "io.prometheus.write.v2.Request": 2}
_PROTO = re.compile(r';\s*proto\s*=\s*"?([^";\s]+)"?')
_SNAPPY = "snappy"
_WRITTEN = "X-Prometheus-Remote-Write-{}-Written"


# Prometheus writes refusals into its log, and throws samples away unless the status is 5xx.
DIALECT = Dialect(lambda status, message, content_type: (message.encode(), "text/plain"), sent_again=(408, 429))
router = APIRouter(tags=["push"])
FORMAT = PushFormat(router, {PATH: DIALECT})


@router.post(
    PATH,
    summary="Prometheus remote write",
    status_code=204,
    response_class=Response,
    responses=DIALECT.replies({"text/plain": {"schema": {"type": "string"}}}),
    openapi_extra={"requestBody": {"required": True, "content": {PROTOBUF: {"schema": BINARY}}}},
)
async def write_remote(request: Request, monitor: Monitor, caller: SENDER, receivers: Pushed) -> Response:
    """Samples as Prometheus sends them, version 1 or 2, compressed with snappy. The reply comes once they are durable.

    400 if some samples were refused: all others are kept, and Prometheus does not send them again.
    """
    version = _version(request)
    check_installed("protobuf", "google.protobuf", "cramjam")
    from tocsin_monitor.plugins.remote_write.reading import NATIVE_HISTOGRAMS, read_remote_write

    receiver = receivers["remote_write"]
    done = await push(
        request, monitor, caller, receiver,
        lambda body, intake: read_remote_write(body, version, receiver.naming, intake), _SNAPPY,
    )  # fmt: skip
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

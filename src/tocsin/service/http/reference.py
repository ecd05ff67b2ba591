"""References: known-good stretches of signals."""

from fastapi import APIRouter, Response

from tocsin.service.as_json import reference_json
from tocsin.service.errors import UnknownError
from tocsin.service.http.auth import READER, WRITER
from tocsin.service.http.content_type import TAKES_JSON
from tocsin.service.http.error_replies import COMMON, UNKNOWN, WITH_BODY
from tocsin.service.http.monitor_access import Monitor, check_ready, done, reply
from tocsin.service.http.replies import ReferenceOut
from tocsin.service.http.requests import ReferenceIn
from tocsin.service.http.signals import Name

router = APIRouter(prefix="/signals/{name:path}/-/reference", tags=["signals"])


@router.get("", summary="A signal's reference", response_model=ReferenceOut, responses=COMMON | UNKNOWN)
async def reference(name: Name, monitor: Monitor, caller: READER) -> Response:
    """The stretch that the signal is compared with."""
    check_ready(monitor)
    found = monitor.engine.status(name).reference
    if found is None:
        raise UnknownError(f"signal {name!r} has no reference")
    return reply(reference_json(found))


@router.put(
    "", summary="Compare a signal with a known-good stretch", response_model=ReferenceOut,
    responses=WITH_BODY | UNKNOWN, dependencies=[TAKES_JSON],
)  # fmt: skip
async def put(name: Name, given: ReferenceIn, monitor: Monitor, caller: WRITER) -> Response:
    """The detector relearns from the observations stored in it, and nothing else; then it judges the later ones."""
    return reply(
        reference_json(await done(monitor.engine.signals.put_reference(name, given.start, given.end, caller.name)))
    )


@router.delete(
    "", summary="Remove a signal's reference", status_code=204, response_class=Response, responses=COMMON | UNKNOWN,
)  # fmt: skip
async def remove(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """The detector learns from the signal's recent past again."""
    await done(monitor.engine.signals.remove_reference(name))
    return Response(status_code=204)

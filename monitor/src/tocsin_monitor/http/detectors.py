"""A signal's detector: what it has learned, its state, its reference and its clock."""

import time

from fastapi import Request, Response

from tocsin_monitor.as_json import json_of
from tocsin_monitor.engine import SignalDetails
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import ADMIN, READER, WRITER
from tocsin_monitor.http.bodies import check_type
from tocsin_monitor.http.monitor_access import Monitor, check_ready, done, reply
from tocsin_monitor.http.replies import AuditOut, Details, ReferenceOut, SignalOut
from tocsin_monitor.http.requests import ClockIn, ReferenceIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.http.signals import Name, status_json
from tocsin_monitor.store import ReferenceRow

_BYTES = "application/octet-stream"
_STATE = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}
_REFERENCE = "/signals/{name:path}/-/reference"
router = ApiRouter(tags=["signals"])
clock_router = ApiRouter(tags=["observations"])


@router.get("/signals/{name:path}/-/details", summary="What a signal's detector has learned", response_model=Details)
async def details(name: Name, monitor: Monitor, caller: READER) -> Response:
    """Its weights, its settings, and whether it keeps its promise."""
    found = await done(monitor.engine.signals.details(name))
    audit = {name: getattr(found.audit, name) for name in AuditOut.model_fields}
    window = len(found.weights[0]) if found.weights else 0
    return reply({**json_of(SignalDetails, found), "audit": audit, "window": window})


@router.post("/signals/{name:path}/-/reset", summary="Reset a detector", response_model=SignalOut)
async def reset(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """The detector starts afresh, with its reference if it has one; stored observations stay."""
    await done(monitor.engine.signals.reset(name))
    return reply(status_json(monitor.engine.status(name)))


@router.get(
    "/signals/{name:path}/-/state",
    summary="A detector's state",
    response_class=Response,
    responses={200: {"content": _STATE, "description": "The state."}},
)
async def state(name: Name, monitor: Monitor, caller: ADMIN) -> Response:
    """Everything that the detector has learned, for backup or transfer."""
    return Response(await done(monitor.engine.signals.state(name)), media_type=_BYTES)


@router.put(
    "/signals/{name:path}/-/state",
    summary="Restore a detector's state",
    response_model=SignalOut,
    openapi_extra={"requestBody": {"required": True, "content": _STATE}},
)
async def restore(name: Name, request: Request, monitor: Monitor, caller: ADMIN) -> Response:
    """The detector resumes from the state of one with the same settings."""
    check_type(request.headers, _BYTES)
    await done(monitor.engine.signals.restore(name, await request.body()))
    return reply(status_json(monitor.engine.status(name)))


@router.get(_REFERENCE, summary="A signal's reference", response_model=ReferenceOut)
async def get_reference(name: Name, monitor: Monitor, caller: READER) -> Response:
    """The stretch that the signal is compared with."""
    check_ready(monitor)
    found = monitor.engine.status(name).reference
    if found is None:
        raise UnknownError(f"signal {name!r} has no reference")
    return reply(json_of(ReferenceRow, found, ("signal",)))


@router.put(_REFERENCE, summary="Compare a signal with a known-good stretch", response_model=ReferenceOut)
async def put_reference(name: Name, given: ReferenceIn, monitor: Monitor, caller: WRITER) -> Response:
    """The detector relearns from the observations stored in it, and nothing else; then it judges the later ones."""
    row = await done(monitor.engine.signals.put_reference(name, given.start, given.end, caller.name))
    return reply(json_of(ReferenceRow, row, ("signal",)))


@router.delete(_REFERENCE, summary="Remove a signal's reference", status_code=204)
async def remove_reference(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """The detector learns from the signal's recent past again."""
    await done(monitor.engine.signals.remove_reference(name))
    return Response(status_code=204)


@clock_router.post("/signals/{name:path}/-/clock", summary="Correct a signal's clock", response_model=SignalOut)
async def set_clock(name: Name, given: ClockIn, monitor: Monitor, caller: WRITER) -> Response:
    """Observations after that time are listed as refused, and the detector relearns from those before."""
    to = time.time_ns() if given.to is None else given.to
    await done(monitor.engine.signals.set_clock(name, to))
    return reply(status_json(monitor.engine.status(name)))

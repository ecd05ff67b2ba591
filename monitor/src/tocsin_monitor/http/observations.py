"""Ingestion of observations, and those that were refused."""

from typing import Annotated

from fastapi import Header, Query, Request, Response
from pydantic_core import to_json

from tocsin_monitor.as_json import json_of, outcome_json
from tocsin_monitor.http.auth import READER, SENDER, Caller
from tocsin_monitor.http.bodies import JSON, NDJSON, check_type, read_body
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import Outcomes, RefusedObservations
from tocsin_monitor.http.requests import ObservationIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.observations import Batch, Observation, Outcome
from tocsin_monitor.store import RefusedRow

MOST_OBSERVATIONS = 10_000
LONGEST_KEY = 200
router = ApiRouter(tags=["observations"])

_ONE = ObservationIn.model_json_schema()
_BODY = {
    "required": True,
    "content": {
        JSON: {"schema": {"anyOf": [_ONE, {"type": "array", "items": _ONE, "maxItems": MOST_OBSERVATIONS}]}},
        NDJSON[0]: {"schema": {"type": "string", "description": "One JSON observation per line."}},
    },
}
_LINES = {"schema": {"type": "string", "description": "One JSON outcome per line."}}


@router.post(
    "/observations",
    summary="Send observations",
    response_model=Outcomes,
    responses={200: {"content": {NDJSON[0]: _LINES}, "description": "One outcome for each observation."}},
    openapi_extra={"requestBody": _BODY},
)
async def take(
    request: Request,
    monitor: Monitor,
    caller: SENDER,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1, max_length=LONGEST_KEY, pattern=r"^[!-~]+$", description="A key that identifies this request."
        ),
    ] = None,
) -> Response:
    """Observations of any signals: one, an array, or one per line. The reply comes once they are durable.

    The outcome of an invalid observation is "refused"; the others are accepted. If the body is not JSON, none is.
    Sending the same again is harmless if observations have times, or if the request has the same `Idempotency-Key` (for
    a day): repeated ones are a "duplicate".
    """
    lines = check_type(request.headers, JSON, *NDJSON) != JSON
    most = min(MOST_OBSERVATIONS, monitor.settings.engine.max_waiting)
    taken = read_body(await request.body(), lines=lines, most=most, may_send=caller.may_see)
    observations = tuple(one for one in taken if isinstance(one, Observation))
    outcomes: list[Outcome] = []
    if observations:
        # A key is its sender's: others may use the same.
        key = None if idempotency_key is None else f"{caller.name}/{idempotency_key}"
        batch = Batch(observations, key=key, sender=sender_of(request, caller))
        outcomes = await done(monitor.engine.submit(batch))
    if len(observations) < len(taken):
        monitor.metrics.observations.labels("refused", "http").inc(len(taken) - len(observations))
    judged = map(outcome_json, outcomes)
    written = [next(judged) if isinstance(one, Observation) else one for one in taken]
    if not lines:
        return reply({"outcomes": written})
    body = b"".join(to_json(outcome, inf_nan_mode="null") + b"\n" for outcome in written)
    return Response(body, media_type=NDJSON[0])


@router.get("/refused", summary="Refused observations", response_model=RefusedObservations)
async def refused(
    monitor: Monitor,
    caller: READER,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only those with a smaller id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The most observations.")] = 100,
) -> Response:
    """Observations that were not added to their signal, and why, the newest first."""
    rows = await from_store(monitor, lambda reader: reader.refused(limit=limit, before_id=before))
    return reply({"refused": [json_of(RefusedRow, row) for row in rows if caller.may_see(row.signal)]})


def sender_of(request: Request, caller: Caller) -> str:
    """Who sends: the name of the token, or else the address."""
    return caller.name if caller.token is not None or request.client is None else request.client.host

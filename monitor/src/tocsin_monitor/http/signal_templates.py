"""Signal templates: those of the settings file, and those that administrators store."""

from typing import Annotated, Any

from fastapi import Path, Response

from tocsin_monitor.as_json import json_of, time_or_none
from tocsin_monitor.config import SignalTemplate
from tocsin_monitor.engine import Affected, KnownTemplate
from tocsin_monitor.http.auth import ADMIN, READER
from tocsin_monitor.http.monitor_access import Monitor, check_ready, done, reply
from tocsin_monitor.http.replies import AffectedOut, Templates
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.observations import LONGEST_NAME

router = ApiRouter(prefix="/templates", tags=["templates"])


Match = Annotated[
    str,
    Path(
        description="Its pattern, percent-encoded; it may contain slashes, encoded or not.",
        min_length=1,
        max_length=LONGEST_NAME,
        examples=["pump/*"],
    ),
]


@router.get("", summary="Templates of signals", response_model=Templates)
async def list_templates(monitor: Monitor, caller: READER) -> Response:
    """In the order in which they are tried for a new signal; stored ones that cannot be used come last."""
    return reply({"templates": [_json(one) for one in monitor.engine.templates.known]})


@router.post("", summary="Store a template", response_model=AffectedOut)
async def put(given: SignalTemplate, monitor: Monitor, caller: ADMIN) -> Response:
    """It takes the place of the one with the same `match`. Signals that exist stay as they are."""
    check_ready(monitor)
    return reply(json_of(Affected, await done(monitor.engine.templates.put(given, caller.name))))


@router.delete("/{match:path}", summary="Remove a stored template", response_model=AffectedOut)
async def remove(match: Match, monitor: Monitor, caller: ADMIN) -> Response:
    """If the settings file has one with this pattern, it applies again. Signals that exist stay as they are."""
    check_ready(monitor)
    return reply(json_of(Affected, await done(monitor.engine.templates.remove(match))))


def _json(known: KnownTemplate) -> dict[str, Any]:
    stored = known.stored
    return {
        **known.template.model_dump(),
        "stored": stored is not None,
        "file": None if known.of_file is None else known.of_file.model_dump(),
        "changed": time_or_none(None if stored is None else stored.changed),
        "changed_by": None if stored is None else stored.changed_by,
        "problem": known.problem,
    }

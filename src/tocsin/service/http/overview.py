"""All signals at a glance, for a page that shows thousands of them: as columns, without their newest observations."""

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from tocsin.service.as_json import time_or_none
from tocsin.service.engine import Point as RecentPoint
from tocsin.service.engine import SignalStatus
from tocsin.service.errors import UnknownError
from tocsin.service.http.auth import READER
from tocsin.service.http.error_replies import COMMON
from tocsin.service.http.monitor_access import Monitor, check_ready, reply
from tocsin.service.http.replies import Moment, Number, Point
from tocsin.service.http.signals import overview_of, recent_json
from tocsin.service.observations import LONGEST_NAME

# As many rows as are in sight at once; with the longest names, they still fit into an address.
MOST_RECENT = 60
router = APIRouter(tags=["signals"])


class Overview(BaseModel):
    """All signals as columns of one length."""

    name: list[str]
    features: list[list[str] | None] = Field(description="Feature names; null for a single one called value.")
    unit: list[str | None]
    template: list[str | None]
    alarm_rate: list[Number]
    promise: list[str]
    last_time: list[Moment | None]
    value: list[list[Number]]
    p: list[Number]
    severity: list[Number]
    warm: list[bool]
    observations: list[int]
    warm_up: list[int]
    own_past_after: list[int]
    silent: list[bool]
    aside: list[str | None]
    pace: list[Number] = Field(description="The usual time between observations, in seconds.")


class RecentReply(BaseModel):
    """The newest observations of some signals."""

    recent: dict[str, list[Point]]


def _pace(points: Sequence[RecentPoint]) -> float | None:
    gaps = [(after.time - before.time) / 1e9 for before, after in pairwise(points[-16:])]
    return statistics.median(gaps) if gaps else None


_COLUMNS: dict[str, Callable[[SignalStatus], Any]] = {
    "name": lambda one: one.name,
    "features": lambda one: None if one.features == ("value",) else one.features,
    "unit": lambda one: one.unit,
    "template": lambda one: one.template,
    "alarm_rate": lambda one: one.alarm_rate,
    "promise": lambda one: one.promise,
    "last_time": lambda one: time_or_none(one.last_time),
    "value": lambda one: one.value,
    "p": lambda one: one.p,
    "severity": lambda one: one.severity,
    "warm": lambda one: one.warm,
    "observations": lambda one: one.observations,
    "warm_up": lambda one: one.warm_up,
    "own_past_after": lambda one: one.own_past_after,
    "silent": lambda one: one.silent,
    "aside": lambda one: one.aside,
    "pace": lambda one: _pace(one.recent),
}


@router.get("/overview", summary="All signals as columns", response_model=Overview, responses=COMMON)
async def overview(monitor: Monitor, caller: READER) -> Response:
    """The state of each signal, for a list of thousands; `/recent` has the newest observations of some of them."""

    def make() -> Response:
        seen = [one for one in overview_of(monitor) if caller.may_see(one.name)]
        return reply({name: [column(one) for one in seen] for name, column in _COLUMNS.items()})

    return await run_in_threadpool(make)  # thousands take a while, and others wait


@router.get(
    "/recent", summary="The newest observations of some signals", response_model=RecentReply, responses=COMMON,
)  # fmt: skip
async def recent(
    monitor: Monitor,
    caller: READER,
    signals: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_NAME)]],
        Query(min_length=1, max_length=MOST_RECENT, description="Their names."),
    ],
) -> Response:
    """Up to 60 observations each, oldest first; signals that do not exist are left out."""
    check_ready(monitor)
    found = {}
    for name in filter(caller.may_see, signals):
        with suppress(UnknownError):
            found[name] = recent_json(monitor.engine.status(name))
    return reply({"recent": found})

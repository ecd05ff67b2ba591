"""Trials of other settings on stored observations."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import AfterValidator, BaseModel, Field

from tocsin.service.as_json import time_or_none, time_text
from tocsin.service.engine import TrialProgress, TrialStage
from tocsin.service.http.auth import READER, WRITER
from tocsin.service.http.content_type import TAKES_JSON
from tocsin.service.http.error_replies import COMMON, UNKNOWN, WITH_BODY
from tocsin.service.http.monitor_access import Monitor, check_ready, reply
from tocsin.service.http.replies import Moment
from tocsin.service.http.requests import Given, Model, finite
from tocsin.service.http.signals import Name

router = APIRouter(prefix="/signals/{name:path}/-/trial", tags=["signals"])


class TrialIn(Model):
    """Settings to try."""

    detector: Annotated[dict[str, Any], AfterValidator(finite)] = Field(
        description="Settings of the detector; those not given come from the template.",
        examples=[{"alarm_rate": 0.001}],
    )
    since: Given | None = Field(None, description="Count incidents from then on; by default for the last week.")


class TrialOut(BaseModel):
    """How far a trial is, and what it found."""

    stage: TrialStage
    since: Moment
    until: Moment | None = Field(description="The newest observation that was judged.")
    done: int = Field(description="How many observations were judged, including those learned before `since`.")
    total: int
    incidents: int = Field(description="How many incidents these settings would have raised.")
    raised: int = Field(description="How many incidents there were.")
    complete: bool = Field(description="Whether the newest stored observation was reached.")
    warm: bool = Field(description="Whether the detector was warm when it came to `since`.")
    message: str = Field(description="Why it failed.")


@router.post(
    "", summary="Try other settings on stored observations", status_code=202, response_model=TrialOut,
    responses=WITH_BODY | UNKNOWN, dependencies=[TAKES_JSON],
)  # fmt: skip
async def start(name: Name, given: TrialIn, monitor: Monitor, caller: WRITER) -> Response:
    """Starts in the background; nothing of the signal changes. A running trial of the same signal is ended."""
    check_ready(monitor)
    return reply(_json(monitor.engine.trials.start(name, given.detector, given.since)), 202)


@router.get("", summary="How far a trial is", response_model=TrialOut, responses=COMMON | UNKNOWN)
async def progress(name: Name, monitor: Monitor, caller: READER) -> Response:
    """The newest trial of the signal."""
    return reply(_json(monitor.engine.trials.progress(name)))


@router.delete("", summary="End a trial", status_code=204, response_class=Response, responses=COMMON | UNKNOWN)
async def cancel(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """What it found so far can still be read."""
    monitor.engine.trials.cancel(name)
    return Response(status_code=204)


def _json(trial: TrialProgress) -> dict[str, Any]:
    return {
        "stage": trial.stage,
        "since": time_text(trial.since),
        "until": time_or_none(trial.until),
        "done": trial.done,
        "total": trial.total,
        "incidents": trial.incidents,
        "raised": trial.raised,
        "complete": trial.complete,
        "warm": trial.warm,
        "message": trial.message,
    }

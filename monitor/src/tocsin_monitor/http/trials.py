"""Trials on stored observations: of other settings, and of which faults would be found."""

from dataclasses import asdict
from types import GenericAlias
from typing import Annotated, Any, ClassVar

from fastapi import Path, Response
from pydantic import AfterValidator, BaseModel, Field

from tocsin.evaluation import Finding
from tocsin_monitor.as_json import json_of
from tocsin_monitor.config import SignalTemplate
from tocsin_monitor.engine import DetectableProgress, ManyProgress, SignalFinding, TemplateDetectable, TrialProgress
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.http.auth import READER, WRITER, Caller
from tocsin_monitor.http.bulk import Chosen, chosen_names
from tocsin_monitor.http.incidents import LARGEST_ID
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess, check_ready, reply
from tocsin_monitor.http.replies import model_of
from tocsin_monitor.http.requests import Given, Groups, Model, finite
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.http.signal_templates import Match
from tocsin_monitor.http.signals import Name

router = ApiRouter(prefix="/signals/{name:path}/-/trial", tags=["signals"])


class TrialIn(Model):
    """Settings to try."""

    detector: Annotated[dict[str, Any], AfterValidator(finite)] = Field(
        description="Settings of the detector; those not given come from the template.",
        examples=[{"alarm_rate": 0.001}],
    )
    since: Given | None = Field(None, description="Count incidents from then on; by default for the last week.")


TrialOut = model_of("TrialOut", "How far a trial is, and what it found.", TrialProgress)


@router.post("", summary="Try other settings on stored observations", status_code=202, response_model=TrialOut)
async def start(name: Name, given: TrialIn, monitor: Monitor, caller: WRITER) -> Response:
    """Starts in the background; nothing of the signal changes. A running trial of the same signal is ended."""
    check_ready(monitor)
    return reply(json_of(TrialProgress, monitor.engine.trials.start(name, given.detector, given.since)), 202)


@router.get("", summary="How far a trial is", response_model=TrialOut)
async def progress(name: Name, monitor: Monitor, caller: READER) -> Response:
    """The newest trial of the signal."""
    return reply(json_of(TrialProgress, monitor.engine.trials.progress(name)))


@router.delete("", summary="End a trial", status_code=204)
async def cancel(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """What it found so far can still be read."""
    monitor.engine.trials.cancel(name)
    return Response(status_code=204)


faults_router = ApiRouter(prefix="/signals/{name:path}/-/detectable", tags=["signals"])

DetectableOut = model_of(
    "DetectableOut", "Which faults a signal's detector finds.", DetectableProgress, findings=list[Finding]
)


def _detectable_json(found: DetectableProgress) -> dict[str, Any]:
    return {**json_of(DetectableProgress, found), "findings": [asdict(one) for one in found.findings]}


@faults_router.post("", summary="Find out which faults would be found", status_code=202, response_model=DetectableOut)
async def inject(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """Starts in the background: faults are injected into copies of the newest 10,000 observations."""
    check_ready(monitor)
    return reply(_detectable_json(monitor.engine.trials.start_faults(name)), 202)


@faults_router.get("", summary="Which faults would be found", response_model=DetectableOut)
async def injected(name: Name, monitor: Monitor, caller: READER) -> Response:
    """How far the newest injection of faults is, and what was found."""
    return reply(_detectable_json(monitor.engine.trials.progress_of_faults(name)))


@faults_router.delete("", summary="End the injection of faults", status_code=204)
async def end_injecting(name: Name, monitor: Monitor, caller: WRITER) -> Response:
    """Nothing happens if there is none."""
    monitor.engine.trials.cancel_faults(name)
    return Response(status_code=204)


template_faults_router = ApiRouter(prefix="/templates/{match:path}/-/detectable", tags=["templates"])

SignalDetectableOut = model_of(
    "SignalDetectableOut", "Which faults a signal of a template finds.", DetectableProgress, signal=str,
    findings=list[Finding],
)  # fmt: skip

TemplateDetectableOut = model_of(
    "TemplateDetectableOut", "Which faults the signals of a template find.", TemplateDetectable,
    tried=Annotated[
        GenericAlias(list, (SignalDetectableOut,)),
        Field(description="The signals tried so far, each as if it were asked for alone; the last one may be running."),
    ],
)  # fmt: skip


@template_faults_router.post(
    "", summary="Find out which faults a template's signals find", status_code=202, response_model=TemplateDetectableOut
)
async def inject_for_template(match: Match, monitor: Monitor, caller: WRITER) -> Response:
    """Starts in the background: faults are injected into up to 5 of its signals that the token is for."""
    check_ready(monitor)
    key = _template_key(match, monitor, caller)
    names = [one.name for one in monitor.engine.overview() if one.template == match and caller.may_see(one.name)]
    return reply(_template_json(monitor.engine.trials.start_template_faults(key, names)), 202)


@template_faults_router.get("", summary="Which faults a template's signals find", response_model=TemplateDetectableOut)
async def injected_for_template(match: Match, monitor: Monitor, caller: READER) -> Response:
    """How far the newest run is, and what was found. Tokens for the same signals share a run."""
    key = _template_key(match, monitor, caller)
    return reply(_template_json(monitor.engine.trials.progress_of_template_faults(key)))


@template_faults_router.delete("", summary="End the injection of faults into a template's signals", status_code=204)
async def end_injecting_for_template(match: Match, monitor: Monitor, caller: WRITER) -> Response:
    """What was found so far can still be read."""
    monitor.engine.trials.cancel_template_faults(_template_key(match, monitor, caller))
    return Response(status_code=204)


def _template_key(match: str, monitor: MonitorAccess, caller: Caller) -> tuple[str, tuple[str, ...]]:
    """By what a template's run is known to those who may see the same signals; UnknownError without such a template."""
    if match not in {one.template.match for one in monitor.engine.templates.known}:
        raise UnknownError(f"there is no template {match!r:.210}")
    return match, caller.patterns


def _template_json(found: TemplateDetectable) -> dict[str, Any]:
    tried = [{"signal": name, **_detectable_json(one)} for name, one in found.tried]
    return {**json_of(TemplateDetectable, found), "tried": tried}


many_router = ApiRouter(prefix="/trials", tags=["bulk"])

Number = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The trial's number.")]


class ManyTrialIn(Chosen):
    """What to try on these signals: give detector or template."""

    one_of: ClassVar[Groups] = (*Chosen.one_of, ("detector", "template"))
    detector: Annotated[dict[str, Any], AfterValidator(finite)] | None = Field(
        None, description="Settings of the detector to change; all others stay.", examples=[{"alarm_rate": 0.001}]
    )
    template: SignalTemplate | None = Field(
        None, description="A template, as if it were stored and applied to those of the signals that it is for."
    )
    own: bool = Field(
        True, description="With a template: also try signals with other settings than templates gave them."
    )
    since: Given | None = Field(
        None, description="Count incidents from then on; by default for the last week of each signal."
    )


FindingOut = model_of("FindingOut", "What a trial found for one signal.", SignalFinding)


class FailureOut(BaseModel):
    """Why a signal cannot be tried."""

    signal: str
    error: str


ManyTrialOut = model_of(
    "ManyTrialOut", "How far a trial is, and what it found.", ManyProgress,
    number=int,
    tried=Annotated[int, Field(description="How many were tried so far.")],
    incidents=Annotated[int, Field(description="How many incidents the signals tried would have had.")],
    raised=Annotated[int, Field(description="How many incidents they had.")],
    found=GenericAlias(list, (FindingOut,)), failed=list[FailureOut],
)  # fmt: skip


@many_router.post(
    "", summary="Try settings or a template on many signals", status_code=202, response_model=ManyTrialOut
)
async def start_many(given: ManyTrialIn, monitor: Monitor, caller: WRITER) -> Response:
    """Starts in the background, on up to 20 of the signals; nothing of them changes."""
    names, trials = chosen_names(given, monitor, caller), monitor.engine.trials
    if given.template is not None:
        number = trials.start_template(given.template, names, own=given.own, by=caller.name, since=given.since)
    else:
        number = trials.start_change(names, given.detector or {}, caller.name, given.since)
    return reply(_many_json(number, trials.progress_of_many(number, caller.name)), 202)


@many_router.get("/{number}", summary="How far a trial is", response_model=ManyTrialOut)
async def progress_of_many(number: Number, monitor: Monitor, caller: WRITER) -> Response:
    """A trial that the same token began."""
    return reply(_many_json(number, monitor.engine.trials.progress_of_many(number, caller.name)))


@many_router.delete("/{number}", summary="End a trial", status_code=204)
async def cancel_many(number: Number, monitor: Monitor, caller: WRITER) -> Response:
    """What it found so far can still be read."""
    monitor.engine.trials.cancel_many(number, caller.name)
    return Response(status_code=204)


def _many_json(number: int, trial: ManyProgress) -> dict[str, Any]:
    return {
        **json_of(ManyProgress, trial),
        "number": number,
        "tried": len(trial.found),
        "incidents": sum(one.incidents for one in trial.found),
        "raised": sum(one.raised for one in trial.found),
        "found": [json_of(SignalFinding, one) for one in trial.found],
        "failed": [{"signal": name, "error": error} for name, error in trial.failed],
    }

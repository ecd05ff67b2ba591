"""What replies look like; the OpenAPI document is made of this."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from tocsin.service.engine import Stage
from tocsin.service.store import Ended, Role

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-15T12:00:00.123Z"])]
Number = float | None
Became = Literal["scored", "late", "maintenance", "duplicate", "future", "refused", "aside", "imported", "part"]
OneOrAll = float | list[Number] | None
Point = Annotated[
    tuple[str, Number, Number, bool],
    # As pydantic would write it, the framework makes something of it that is no JSON Schema.
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": ["string", "number", "boolean", "null"]},
            "minItems": 4,
            "maxItems": 4,
            "example": ["2026-11-15T12:00:00.123Z", 4.21, 0.35, False],
        }
    ),
]


class ErrorDetail(BaseModel):
    """What is wrong."""

    message: str = Field(description="What is wrong, and what is accepted.")
    field: str | None = Field(None, description="The part of the request that is to blame, where there is one.")


class ErrorReply(BaseModel):
    """Every reply with a status of 400 or more."""

    error: ErrorDetail


class OutcomeOut(BaseModel):
    """What became of an observation. All that a verdict says is null where there is none."""

    signal: str | None = Field(description="The signal's name.")
    time: Moment | None = Field(description="The observation's time.")
    status: Became = Field(
        description="scored: it got a verdict. late: it came after a later one, and is kept without verdict. "
        "maintenance: it is kept, and the detector took it as missing. duplicate: one of this time is there already, "
        "and its verdict is given. future: its time is too far ahead, it is not kept. refused: see message. "
        "aside: its signal is set aside; it is kept, and learned once the signal is mended. imported: it is of a past "
        "that was imported. part: it is put together with others of its time, and the whole gets the verdict."
    )
    p: Number = Field(description="How often so strange an observation is to be expected.")
    severity: Number = Field(description="How strange it is in all views together: it orders observations.")
    alarm: bool | None = Field(description="Whether it is an alarm.")
    forecast: OneOrAll = Field(description="What was forecast; a list where there are several features.")
    low: OneOrAll = Field(description="Below this the error by itself would have been an alarm.")
    high: OneOrAll = Field(description="Above this the error by itself would have been an alarm.")
    warm: bool | None = Field(description="Whether the signal has been watched for long enough.")
    incident: int | None = Field(description="The incident that its alarm belongs to.")
    message: str | None = Field(description="Why it was refused.")


class Outcomes(BaseModel):
    """One outcome for each observation, in their order."""

    outcomes: list[OutcomeOut]


class ReferenceOut(BaseModel):
    """A stretch of a signal that somebody says was good."""

    start: Moment
    end: Moment
    observations: int = Field(description="How many observations are in it, missing ones included.")
    created: Moment
    created_by: str


class SignalOut(BaseModel):
    """How a signal is doing."""

    name: str
    features: list[str]
    unit: str | None
    template: str | None = Field(description="The pattern of the template that its settings came from.")
    alarm_rate: Number = Field(description="The tolerated rate of what `promise` names, per observation.")
    promise: Literal["incidents", "observations"] = Field(
        description="What the alarm rate counts: false incidents, or observations with a p under it."
    )
    last_time: Moment | None = Field(description="The time of the newest observation.")
    last_arrival: Moment | None = Field(description="When the newest observation came.")
    value: list[Number] = Field(description="The newest value of each feature.")
    p: Number
    severity: Number
    alarm: bool
    warm: bool
    observations: int = Field(description="How many observations it has learned from.")
    warm_up: int = Field(description="How many it needs until it is warm.")
    own_past_after: int = Field(
        description="How many it needs until its own past tells how rare something is; before, that is estimated."
    )
    silent: bool
    incident: int | None = Field(description="The incident that goes on.")
    recent: list[Point] = Field(description="The newest observations: time, value of the first feature, p, alarm.")
    reference: ReferenceOut | None = Field(description="What it is compared with in place of its own past.")
    aside: str | None = Field(description="Why it is set aside: its detector cannot be rebuilt, and others go on.")


class SignalsReply(BaseModel):
    """All signals that were asked for."""

    signals: list[SignalOut]


class History(BaseModel):
    """Observations of a signal as columns; value, forecast, low and high have one column for each feature."""

    times: list[Moment]
    value: list[list[Number]]
    forecast: list[list[Number]]
    low: list[list[Number]]
    high: list[list[Number]]
    p: list[Number]
    alarm: list[bool]
    warm: list[bool]
    status: list[Literal["scored", "late", "maintenance", "aside"]]


class RefusedOut(BaseModel):
    """An observation that is not among those of its signal."""

    id: int
    signal: str
    time: Moment
    value: str = Field(description="Its values, one for each feature, as JSON.")
    source: str
    reason: str
    noted: Moment


class RefusedObservations(BaseModel):
    """Observations that the store refuses, or whose time was ahead of the clock."""

    refused: list[RefusedOut]


class AuditOut(BaseModel):
    """The alarm rate that was promised, and the one that was seen; alarms are counted as the promise counts them."""

    promised: float
    rate: Number
    observations: int
    alarms: int
    low: Number = Field(description="The true rate lies between low and high with probability level.")
    high: Number
    level: float
    finding: str = Field(description="as promised, too many, too few, or cannot tell yet.")
    faults: int = Field(description="Those of the alarms that people labelled as faults: they do not count.")
    ratio: Number = Field(description="What was seen over what was promised, since then.")
    since: int | None = Field(description="The number of the observation since which the finding holds.")
    unit: str = Field(description="What is promised, and counted as alarms here: incidents or alarms.")


class Details(BaseModel):
    """What a signal's detector has learned."""

    weights: list[list[Number]] = Field(description="For each feature the weight of each lag.")
    window: int = Field(description="How many lags there are.")
    audit: AuditOut
    guarantee: str
    settings: dict[str, Any]
    silent_after: Number
    memory_bytes: int


class IncidentOut(BaseModel):
    """Alarms of one signal that belong together, or its silence."""

    id: int
    signal: str
    kind: Literal["alarm", "silence"]
    start: Moment
    end: Moment
    peak: Moment
    alarms: int
    duration: int = Field(description="Observations from its start to its end.")
    p: Number = Field(description="The smallest p of its alarms.")
    severity: Number = Field(description="How strange its peak is in all views together.")
    return_period: Number = Field(
        description="After how many observations an incident with as much evidence comes again, on average."
    )
    view: str | None = Field(description="The view that says most at the peak.")
    explanation: str | None = Field(description="What was seen at the peak, in words.")
    direction: str | None
    deviation: Number = Field(description="Value minus forecast at the peak.")
    features: dict[str, Number] = Field(description="How much each feature contributed.")
    open: bool
    opened: Moment
    closed: Moment | None
    ended: Ended | None = Field(
        description="Why it is over. returned: the signal is as it was before; a silence: it sends again. accepted: it "
        "stays otherwise, and that is taken for normal now. silent: it has no values any more. labelled: somebody said "
        "that it is a false alarm. reset, relearned: its detector was reset, or learned anew. imported: it was "
        "found in a past that was imported, and nobody was told. null while it is open, "
        "and of incidents from before this was stored."
    )
    acknowledged: Moment | None
    acknowledged_by: str | None
    snoozed_until: Moment | None
    label: str | None
    note: str | None
    excluded: bool = Field(description="Whether its observations were taken out of calibration.")
    withheld: bool = Field(description="Whether sinks are not told, since a budget is for rarer incidents.")


class Incidents(BaseModel):
    """Incidents, the newest first."""

    incidents: list[IncidentOut]


class MaintenanceOut(BaseModel):
    """A maintenance window."""

    id: int
    pattern: str
    start: Moment
    end: Moment
    reason: str
    created_by: str


class MaintenanceWindows(BaseModel):
    """All maintenance windows."""

    maintenance: list[MaintenanceOut]


class TokenOut(BaseModel):
    """A token, of which only the hash is kept."""

    name: str
    role: Role
    created: Moment
    expires: Moment | None
    match: list[str] = Field(description="Patterns of the names of signals that it is limited to; none for all.")


class NewToken(TokenOut):
    """A token that was just made."""

    token: str = Field(description="The token itself: it is shown this once.")


class Tokens(BaseModel):
    """All tokens."""

    tokens: list[TokenOut]


class TemplateOut(BaseModel):
    """Settings of the signals whose name fits a pattern."""

    match: str
    features: list[str] | None
    silent_after: Number
    unit: str | None
    detector: dict[str, Any]


class Templates(BaseModel):
    """All templates, in the order in which they are tried."""

    templates: list[TemplateOut]


class NeighbourOut(BaseModel):
    """A source or a sink."""

    name: str
    last_success: Moment | None
    last_error: str | None
    last_error_time: Moment | None


class AsideOut(BaseModel):
    """A signal that is set aside, since its detector cannot be rebuilt."""

    name: str
    reason: str


class StatusOut(BaseModel):
    """How the monitor is doing."""

    version: str
    ready: bool
    progress: str = Field(description="What it is doing while it is not ready.")
    started: Moment
    uptime: float = Field(description="Seconds since it was started.")
    signals: int
    silent: int
    aside: list[AsideOut] = Field(description="SignalsReply that are set aside: configure, reset or remove them.")
    ahead: list[str] = Field(description="SignalsReply whose newest observation is ahead of the clock, at most 100.")
    clock_jumped: Moment | None = Field(description="When the system's clock last jumped.")
    clock_jump: float | None = Field(description="By how many seconds it jumped then.")
    open_incidents: int
    waiting: int = Field(description="Observations that wait for the engine.")
    store_bytes: int
    outbox: dict[str, int] = Field(description="Messages that wait, for each sink.")
    sources: list[NeighbourOut]
    sinks: list[NeighbourOut]


class ImportedSignal(BaseModel):
    """What became of one signal of a file."""

    signal: str
    observations: int = Field(description="How many were in the file.")
    duplicates: int = Field(description="How many were there already, and stand as they were.")
    refused: int = Field(description="How many could not be taken, or are ahead of the clock.")
    older: int = Field(description="How many are older than observations are kept: they are learned, then removed.")


class Imported(BaseModel):
    """What became of a file. It is durable; it is learned meanwhile."""

    file: str
    understood: str = Field(description="How the file was taken, in one line.")
    problems: list[str] = Field(description="What is wrong with it, besides.")
    signals: list[ImportedSignal]


class ImportProgress(BaseModel):
    """How far the history of a signal is learned."""

    signal: str
    stage: Stage
    done: int = Field(description="Observations that were taken, with those that were there before.")
    total: int
    incidents: int = Field(description="Incidents of the past that were found.")
    message: str | None = Field(description="Why it failed.")


class Imports(BaseModel):
    """How far imported history is learned."""

    imports: list[ImportProgress]


class Me(BaseModel):
    """Who asks."""

    name: str
    role: Role
    may: list[Role] = Field(description="The roles whose work it may do.")
    match: list[str] = Field(description="Patterns of the names of signals that it is limited to; none for all.")


class DeedOut(BaseModel):
    """What somebody did."""

    id: int
    time: Moment
    who: str = Field(description="The name of the token, or who used the command line.")
    action: str = Field(description="The method of the request.")
    target: str = Field(description="The address of the request.")
    details: str = Field(description="The beginning of the request's body.")


class AuditTrailReply(BaseModel):
    """Who did what, the newest first."""

    audit: list[DeedOut]


class Health(BaseModel):
    """Whether the monitor is there."""

    status: str

"""The models of replies, from which the OpenAPI document is generated."""

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
    # From pydantic's own form, FastAPI would make something that is not JSON Schema.
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


class OutcomeOut(BaseModel):
    """The outcome of an observation. All verdict fields are null if there is no verdict."""

    signal: str | None = Field(description="The signal's name.")
    time: Moment | None = Field(description="The observation's time.")
    status: Became = Field(
        description="scored: it got a verdict. late: it came after a later one and is stored without a verdict. "
        "maintenance: it is stored, and the detector treated it as missing. duplicate: there is already one of this "
        "time, and this is its verdict. future: its time is too far ahead; it is not stored. refused: see message. "
        "aside: its signal is set aside; it is stored, and learned once the signal is repaired. imported: it is "
        "imported history. part: it is aggregated with others, and the aggregate gets the verdict."
    )
    p: Number = Field(description="The p-value: how often to expect an observation this anomalous.")
    severity: Number = Field(description="How anomalous it is over all views; it orders observations.")
    alarm: bool | None = Field(description="Whether it is an alarm.")
    forecast: OneOrAll = Field(description="The forecast; a list if there are several features.")
    low: OneOrAll = Field(description="Below this the error alone would have raised an alarm.")
    high: OneOrAll = Field(description="Above this the error alone would have raised an alarm.")
    warm: bool | None = Field(description="Whether the warm-up is over.")
    incident: int | None = Field(description="The incident that its alarm belongs to.")
    message: str | None = Field(description="Why it was refused.")


class Outcomes(BaseModel):
    """One outcome for each observation, in order."""

    outcomes: list[OutcomeOut]


class ReferenceOut(BaseModel):
    """A known-good stretch of a signal."""

    start: Moment
    end: Moment
    observations: int = Field(description="How many observations it has, including missing ones.")
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
        description="What the alarm rate limits: false incidents, or observations with p below it."
    )
    last_time: Moment | None = Field(description="The time of the newest observation.")
    last_arrival: Moment | None = Field(description="When the newest observation arrived.")
    value: list[Number] = Field(description="The newest value of each feature.")
    p: Number
    severity: Number
    alarm: bool
    warm: bool
    observations: int = Field(description="How many observations it has learned from.")
    warm_up: int = Field(description="How many observations the warm-up takes.")
    own_past_after: int = Field(
        description="How many it needs until its own past determines how rare something is; before, that is estimated."
    )
    silent: bool
    incident: int | None = Field(description="The open incident.")
    recent: list[Point] = Field(description="The newest observations: time, value of the first feature, p, alarm.")
    reference: ReferenceOut | None = Field(description="The reference it is compared with instead of its own past.")
    aside: str | None = Field(description="Why it is set aside: its detector cannot be rebuilt.")


class SignalsReply(BaseModel):
    """All requested signals."""

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
    status: list[Literal["scored", "late", "maintenance", "aside", "imported"]]
    thinned: bool = Field(description="Whether observations in between were left out, to keep to `points`.")


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
    """Observations that the store rejects, or whose time was ahead of the clock."""

    refused: list[RefusedOut]


class AuditOut(BaseModel):
    """The promised and the observed alarm rate; alarms are counted as in the promise."""

    promised: float
    rate: Number
    observations: int
    alarms: int
    low: Number = Field(description="The true rate lies between low and high with probability level.")
    high: Number
    level: float
    finding: str = Field(description="as promised, too many, too few, or cannot tell yet.")
    faults: int = Field(description="The alarms labelled as faults: they do not count.")
    ratio: Number = Field(description="The ratio of observed to promised, since then.")
    since: int | None = Field(description="The number of the observation from which the finding holds.")
    unit: str = Field(description="What is promised and counted here: incidents or alarms.")


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
    severity: Number = Field(description="How anomalous its peak is over all views.")
    return_period: Number = Field(
        description="The average number of observations until an incident with this much evidence recurs."
    )
    view: str | None = Field(description="The view that contributes most at the peak.")
    explanation: str | None = Field(description="An explanation of the peak.")
    direction: str | None
    deviation: Number = Field(description="Value minus forecast at the peak.")
    features: dict[str, Number] = Field(description="How much each feature contributed.")
    open: bool
    opened: Moment
    closed: Moment | None
    ended: Ended | None = Field(
        description="Why it ended. returned: the signal is back to normal, or sending again after a silence. accepted: "
        "its new behaviour is accepted as normal. silent: it has no more values. labelled: a user labelled it a false "
        "alarm. reset, relearned: its detector was reset or retrained. removed: its signal was removed. imported: it "
        "was found in imported history, and no alert was sent. null while it is open, and for incidents from before "
        "this was stored."
    )
    acknowledged: Moment | None
    acknowledged_by: str | None
    snoozed_until: Moment | None
    label: str | None
    note: str | None
    excluded: bool = Field(description="Whether its observations are excluded from the calibration set.")
    withheld: bool = Field(description="Whether it is withheld from sinks because the budget went to rarer incidents.")
    event: int | None = Field(description="The event it belongs to; null if it is withheld or imported.")


class Incidents(BaseModel):
    """Incidents, the newest first."""

    incidents: list[IncidentOut]


class AnnotationOut(BaseModel):
    """An incident as an annotation of a chart."""

    id: int = Field(description="The incident's number.")
    time: int = Field(description="Its start, in milliseconds since 1970.")
    timeEnd: int = Field(  # noqa: N815 as Grafana calls it
        description="Its end so far, in milliseconds since 1970."
    )
    title: str = Field(description="The signal's name.")
    text: str = Field(description="What was seen.")
    tags: list[str] = Field(description="Its kind, its level, and whether it is open or why it ended.")


class Annotations(BaseModel):
    """Incidents as annotations, the newest first."""

    annotations: list[AnnotationOut]


class MemberOut(BaseModel):
    """An incident of an event, in short."""

    incident: int
    signal: str
    start: Moment
    severity: Number
    open: bool


class EventOut(BaseModel):
    """Incidents that belong together."""

    id: int
    kind: Literal["alarm", "silence"]
    title: str = Field(description="What happened, in a few words.")
    source: str | None = Field(description="The source that all its silent signals come from.")
    place: str | None = Field(description="The levels that the names of all its signals begin with.")
    count: int = Field(description="How many incidents it has.")
    signals: int = Field(description="On how many signals.")
    open_count: int = Field(description="How many of its incidents are open.")
    first: MemberOut = Field(description="The first to start.")
    strongest: MemberOut = Field(description="The one with the highest severity.")
    start: Moment = Field(description="The start of its first incident.")
    last_start: Moment = Field(description="The start of its last incident.")
    open: bool = Field(description="Whether any of its incidents is open.")
    opened: Moment
    closed: Moment | None
    acknowledged: Moment | None
    acknowledged_by: str | None
    snoozed_until: Moment | None
    label: str | None
    note: str | None


class EventsReply(BaseModel):
    """Events, the newest first."""

    events: list[EventOut]


class TogetherOut(BaseModel):
    """A signal that had incidents near those of another."""

    signal: str
    times: int = Field(description="Near how many of those it had one.")


class SuspectOut(BaseModel):
    """A signal that moved early in an event: where to look first. Order and coincidence do not show a cause."""

    signal: str
    start: Moment
    seconds_after_first: float = Field(description="How long after the first incident of the event its own started.")
    past_incidents: int = Field(description="How many incidents it had before, up to 100.")
    together: list[TogetherOut] = Field(
        description="The members of the event that most often had an incident within the window of its past ones."
    )


class EventDetails(EventOut):
    """An event with its members in the order of their start."""

    members: list[IncidentOut]
    suspects: list[SuspectOut] = Field(description="The first signals to move, at most 5.")


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
    """A token, of which only the hash is stored."""

    name: str
    role: Role
    created: Moment
    expires: Moment | None
    match: list[str] = Field(description="Name patterns of the signals it is limited to; none for all.")


class NewToken(TokenOut):
    """A new token."""

    token: str = Field(description="The token itself, shown only once.")


class Tokens(BaseModel):
    """All tokens."""

    tokens: list[TokenOut]


class TemplateSettings(BaseModel):
    """Settings of signals whose names match a pattern."""

    match: str
    features: list[str] | None
    silent_after: Number
    unit: str | None
    every: Number
    aggregate: str
    detector: dict[str, Any]


class TemplateOut(TemplateSettings):
    """A template, and where it is from."""

    stored: bool = Field(description="Whether it is stored; false: it is from the settings file.")
    file: TemplateSettings | None = Field(description="The template of the settings file whose place it takes.")
    changed: Moment | None = Field(description="When it was stored.")
    changed_by: str | None
    problem: str | None = Field(description="Why it is not in force.")


class Templates(BaseModel):
    """All templates, in the order in which they are tried."""

    templates: list[TemplateOut]


class AffectedOut(BaseModel):
    """The signals to which a changed template applies. They stay as they are."""

    signals: list[str] = Field(description="Those with the settings that templates gave them so far.")
    own: list[str] = Field(description="Those with other settings.")


class NeighbourOut(BaseModel):
    """A source or a sink."""

    name: str
    last_success: Moment | None
    last_error: str | None
    last_error_time: Moment | None


class SourceOut(NeighbourOut):
    """A source, or a format that others push."""

    received: int = Field(description="How many observations came from it since the monitor started.")
    skipped: int = Field(description="How many things that are no observation, and never will be, it brought.")
    left_out: dict[str, int] = Field(
        description="How many points are no observations, such as native histograms, by what they are."
    )


class AsideOut(BaseModel):
    """A signal set aside because its detector cannot be rebuilt."""

    name: str
    reason: str


class StatusOut(BaseModel):
    """The state of the monitor."""

    version: str
    ready: bool
    progress: str = Field(description="What it is doing while it is not ready.")
    started: Moment
    uptime: float = Field(description="Seconds since it was started.")
    signals: int
    silent: int
    aside: list[AsideOut] = Field(description="Signals set aside: configure, reset or remove them.")
    ahead: list[str] = Field(description="Signals whose newest observation is ahead of the clock, at most 100.")
    clock_jumped: Moment | None = Field(description="When the system clock last jumped.")
    clock_jump: float | None = Field(description="By how many seconds it jumped then.")
    open_incidents: int
    waiting: int = Field(description="The backlog of observations waiting for the engine.")
    store_bytes: int
    outbox: dict[str, int] = Field(description="Waiting messages, by sink.")
    sources: list[SourceOut]
    sinks: list[NeighbourOut]


class ImportedSignal(BaseModel):
    """The import of one signal of a file."""

    signal: str
    observations: int = Field(description="How many were in the file.")
    duplicates: int = Field(description="How many were already there and are unchanged.")
    refused: int = Field(description="How many were invalid or ahead of the clock.")
    older: int = Field(description="How many are older than the retention time: they are learned, then removed.")


class Imported(BaseModel):
    """The result of an import. It is durable; learning continues."""

    file: str
    understood: str = Field(description="How the file was read, in one line.")
    problems: list[str] = Field(description="Other problems with it.")
    signals: list[ImportedSignal]


class ImportProgress(BaseModel):
    """The progress of learning a signal's history."""

    signal: str
    stage: Stage
    done: int = Field(description="Observations processed, including earlier ones.")
    total: int
    incidents: int = Field(description="Past incidents found.")
    message: str | None = Field(description="Why it failed.")


class Imports(BaseModel):
    """The progress of imports."""

    imports: list[ImportProgress]


class Me(BaseModel):
    """The caller."""

    name: str
    role: Role
    may: list[Role] = Field(description="The roles it includes.")
    match: list[str] = Field(description="Name patterns of the signals it is limited to; none for all.")


class AccessEntryOut(BaseModel):
    """One action."""

    id: int
    time: Moment
    who: str = Field(description="The name of the token, or of the command-line user.")
    action: str = Field(description="The method of the request.")
    target: str = Field(description="The address of the request.")
    details: str = Field(description="The beginning of the request's body.")


class AccessLogReply(BaseModel):
    """The access log, the newest first."""

    access_log: list[AccessEntryOut]


class Health(BaseModel):
    """Whether the monitor is alive."""

    status: str

"""The models of replies, from which the OpenAPI document is generated.

What has a dataclass in the store or in the engine is declared there; its model is made from it.
"""

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, WithJsonSchema, create_model

from tocsin_monitor.engine import Affected, Progress, SignalDetails, SignalStatus
from tocsin_monitor.fields import DeclaredField, declared
from tocsin_monitor.levels import Level
from tocsin_monitor.metrics import SinkHealth, SourceHealth
from tocsin_monitor.reloading import Reloaded
from tocsin_monitor.rules import LimitHigh, LimitLow, ValidRange
from tocsin_monitor.store import (
    AccessLogRow,
    EventRow,
    EventSummary,
    IncidentRow,
    MaintenanceRow,
    ReferenceRow,
    RefusedRow,
    TokenRow,
)
from tocsin_monitor.tokens import Role

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-15T12:00:00.123Z"])]
Number = float | None
Became = Literal[
    "scored", "late", "maintenance", "duplicate", "future", "refused", "quarantined", "imported", "part", "out_of_range"
]
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


#: What JSON has in place of a type.
_IN_JSON: dict[Any, Any] = {
    float: Number,
    tuple[float, ...]: list[Number],
    tuple[str, ...]: list[str],
    Mapping[str, float]: dict[str, Number],
}


def model_of(
    name: str, about: str, /, *sources: type, leave_out: tuple[str, ...] = (), **types: Any
) -> type[BaseModel]:
    """The model of what `json_of` writes of dataclasses. `types` are those of new fields, and of some that differ."""
    found: dict[str, Any] = {}
    for field in (field for source in sources for field in declared(source)):
        if field.name not in leave_out and field.shown not in found:
            kind = types.pop(field.shown) if field.shown in types else _type_in_json(field)
            found[field.shown] = (kind, Field(description=field.about))
    return create_model(name, __doc__=about, **found, **types)


def _type_in_json(field: DeclaredField) -> Any:
    kind = Moment if field.is_time else _IN_JSON.get(field.type, field.type)
    return kind | None if field.optional else kind


def list_of(name: str, about: str, field: str, model: type[BaseModel]) -> type[BaseModel]:
    """The model of a reply with a list of others."""
    fields: dict[str, Any] = {field: (GenericAlias(list, (model,)), ...)}
    return create_model(name, __doc__=about, **fields)


class OutcomeOut(BaseModel):
    """The outcome of an observation. All verdict fields are null if there is no verdict."""

    signal: str | None = Field(description="The signal's name.")
    time: Moment | None = Field(description="The observation's time.")
    status: Became = Field(
        description="scored: it got a verdict. late: it came after a later one and is stored without a verdict. "
        "maintenance: it is stored, and the detector treated it as missing. duplicate: there is already one of this "
        "time, and this is its verdict. future: its time is too far ahead; it is not stored. refused: see message. "
        "quarantined: its signal is; it is stored, and learned once the signal is repaired. imported: it is "
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
    message: str | None = Field(description="Why it was refused, or a warning about its signal's sampling.")


Outcomes = list_of("Outcomes", "One outcome for each observation, in order.", "outcomes", OutcomeOut)

ReferenceOut = model_of("ReferenceOut", "A known-good stretch of a signal.", ReferenceRow, leave_out=("signal",))

SignalOut = model_of(
    "SignalOut", "How a signal is doing.", SignalStatus, leave_out=("id",),
    promise=Literal["incidents", "observations"], recent=list[Point], reference=ReferenceOut | None,
)  # fmt: skip


SignalsReply = list_of("SignalsReply", "All requested signals.", "signals", SignalOut)


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
    status: list[Literal["scored", "late", "maintenance", "quarantined", "imported", "out_of_range"]]
    thinned: bool = Field(description="Whether observations in between were left out, to keep to `points`.")


RefusedOut = model_of("RefusedOut", "An observation that is not among those of its signal.", RefusedRow)

RefusedObservations = list_of(
    "RefusedObservations", "Observations that the store rejects, or whose time was ahead of the clock.", "refused",
    RefusedOut,
)  # fmt: skip


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


Details = model_of(
    "Details", "What a signal's detector has learned.", SignalDetails,
    weights=list[list[Number]], window=Annotated[int, Field(description="How many lags there are.")], audit=AuditOut,
)  # fmt: skip

IncidentOut = model_of(
    "IncidentOut", "Alarms of one signal that belong together, or its silence.", IncidentRow, signal=str,
    level=Annotated[Level, Field(description="How urgent it is on its own.")],
)  # fmt: skip

Incidents = list_of("Incidents", "Incidents, the newest first.", "incidents", IncidentOut)


class IncidentCount(BaseModel):
    """How many incidents there are."""

    count: int


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


Annotations = list_of("Annotations", "Incidents as annotations, the newest first.", "annotations", AnnotationOut)


class MemberOut(BaseModel):
    """An incident of an event, in short."""

    incident: int
    signal: str
    start: Moment
    severity: Number
    open: bool


#: What messages need of an event, but replies do not show.
_NOT_SHOWN = ("event", "members", "source_signals", "ended", "age")
EventOut = model_of(
    "EventOut", "Incidents that belong together.", EventRow, EventSummary,
    leave_out=("shared", *_NOT_SHOWN),
    title=Annotated[str, Field(description="What happened, in a few words.")],
    level=Annotated[Level, Field(description="How urgent it is, by its strongest incident and its number of signals.")],
    source=Annotated[str | None, Field(description="The source that all its silent signals come from.")],
    place=Annotated[str | None, Field(description="The levels that the names of all its signals begin with.")],
    first=MemberOut, strongest=MemberOut,
)  # fmt: skip


EventsReply = list_of("EventsReply", "Events, the newest first.", "events", EventOut)


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


class MoverOut(BaseModel):
    """When a signal of an event began to move, and how far it went."""

    signal: str
    earliest: Moment
    latest: Moment
    score: Number = Field(
        description="Its largest distance from its median before the event, in units of its interquartile range then."
    )
    needed_by: list[str] = Field(description="The signals of the event that depend on it, as the settings say.")


class CausesOut(BaseModel):
    """Which signal of an event moved first, if that can be told."""

    text: str = Field(description="The answer in a sentence.")
    first: str | None = Field(description="The signal that moved first; null if that cannot be told.")
    p: Number = Field(
        description="The p-value of the first of `signals`, if it was as usual until the others could have begun."
    )
    lead_seconds: Number = Field(description="How long before any other could have begun it had, at least.")
    signals: list[MoverOut] = Field(
        description="In the order in which they began; what others depend on comes first where that cannot be told."
    )


EventDetails = create_model(
    "EventDetails",
    __base__=EventOut,
    __doc__="An event with its members in the order of their start.",
    members=(cast("Any", GenericAlias(list, (IncidentOut,))), ...),
    suspects=(list[SuspectOut], Field(description="The first signals to move, at most 5.")),
)


class OccurrenceOut(BaseModel):
    """One time of a window that recurs."""

    start: Moment
    end: Moment


MaintenanceOut = model_of(
    "MaintenanceOut", "A maintenance window.", MaintenanceRow, end=Moment | None, occurrences=list[OccurrenceOut]
)

MaintenanceWindows = list_of("MaintenanceWindows", "All maintenance windows.", "maintenance", MaintenanceOut)


#: What is stored of a token, but told nobody.
SECRET = ("id", "hash")
TokenOut = model_of("TokenOut", "A token, of which only the hash is stored.", TokenRow, leave_out=SECRET)

NewToken = create_model(
    "NewToken",
    __base__=TokenOut,
    __doc__="A new token.",
    token=(str, Field(description="The token itself, shown only once.")),
)

Tokens = list_of("Tokens", "All tokens.", "tokens", TokenOut)


class TemplateSettings(BaseModel):
    """Settings of signals whose names match a pattern."""

    match: str
    features: list[str] | None
    silent_after: Number
    unit: str | None
    valid_range: ValidRange
    limit_high: LimitHigh
    limit_low: LimitLow
    min_deviation: Number
    min_level: Number
    no_data_is_zero: bool | None
    every: Number
    aggregate: str
    peers: bool
    detector: dict[str, Any]


class TemplateOut(TemplateSettings):
    """A template, and where it is from."""

    stored: bool = Field(description="Whether it is stored; false: it is from the settings file.")
    file: TemplateSettings | None = Field(description="The template of the settings file whose place it takes.")
    changed: Moment | None = Field(description="When it was stored.")
    changed_by: str | None
    problem: str | None = Field(description="Why it is not in force.")


Templates = list_of("Templates", "All templates, in the order in which they are tried.", "templates", TemplateOut)


AffectedOut = model_of(
    "AffectedOut", "The signals to which a changed template applies. They stay as they are.", Affected
)


ConnectionOut = model_of("ConnectionOut", "A source or a sink.", SinkHealth, name=str)

SourceOut = model_of(
    "SourceOut", "A source, or a format that others push.", SourceHealth, name=str, left_out=dict[str, int]
)


class QuarantinedOut(BaseModel):
    """A signal quarantined because its detector cannot be rebuilt."""

    name: str
    reason: str


class WarningOut(BaseModel):
    """A signal whose sampling is wrong."""

    name: str
    reason: str = Field(description="What is wrong, and which setting would do.")


class StatusOut(BaseModel):
    """The state of the monitor."""

    version: str
    ready: bool
    progress: str = Field(description="What it is doing while it is not ready.")
    started: Moment
    uptime: float = Field(description="Seconds since it was started.")
    signals: int
    silent: int
    learning: int = Field(description="Signals whose imported history is still being stored or learned.")
    quarantined: list[QuarantinedOut] = Field(description="Quarantined signals: configure, reset or remove them.")
    ahead: list[str] = Field(description="Signals whose newest observation is ahead of the clock, at most 100.")
    warnings: list[WarningOut] = Field(description="Signals whose sampling is wrong, at most 100.")
    clock_jumped: Moment | None = Field(description="When the system clock last jumped.")
    clock_jump: float | None = Field(description="By how many seconds it jumped then.")
    open_incidents: int
    expected_false_incidents: float = Field(description="False incidents to expect in a week, by the alarm rates.")
    expected_false_reported: float = Field(description="How many of them shared budgets let through at most.")
    waiting: int = Field(description="The backlog of observations waiting for the engine.")
    store_bytes: int
    outbox: dict[str, int] = Field(description="Waiting messages, by sink.")
    sources: list[SourceOut]  # type: ignore[valid-type]
    sinks: list[ConnectionOut]  # type: ignore[valid-type]


class TestMessageOut(BaseModel):
    """What became of the test message to a sink."""

    name: str = Field(description="The sink's name.")
    delivered: bool = Field(description="Whether it has accepted the message.")
    error: str | None = Field(description="Why it has not.")


TestMessages = list_of("TestMessages", "What became of the test message to each sink.", "sinks", TestMessageOut)


ReloadedOut = model_of("ReloadedOut", "What became of the settings file.", Reloaded)


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


ImportProgress = model_of("ImportProgress", "The progress of learning a signal's history.", Progress)

Imports = list_of("Imports", "The progress of imports.", "imports", ImportProgress)


class Me(BaseModel):
    """The caller."""

    name: str
    role: Role
    may: list[Role] = Field(description="The roles it includes.")
    match: list[str] = Field(description="Name patterns of the signals it is limited to; none for all.")


AccessEntryOut = model_of("AccessEntryOut", "One action.", AccessLogRow)

AccessLogReply = list_of("AccessLogReply", "The access log, the newest first.", "access_log", AccessEntryOut)


class Health(BaseModel):
    """Whether the monitor is alive."""

    status: str

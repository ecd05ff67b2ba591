"""The rows of the store."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import peer_features
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.observations import Status, StoredVerdict, record
from tocsin_monitor.rules import NO_RULES, SignalRules
from tocsin_monitor.schedules import Schedule
from tocsin_monitor.tokens import Role

Kind = Literal["alarm", "silence", "range", "limit"]
Message = Literal["firing", "resolved"]
#: Why an incident ended. A detector gives the first four reasons; the next two mean that its detector was replaced.
#: "removed" means that its signal was removed. The last means that the incident was found in imported history, and
#: nobody was notified.
Ended = Literal["returned", "subsided", "accepted", "silent", "labelled", "reset", "relearned", "removed", "imported"]
#: What people may say an incident was.
LabelName = Literal["fault", "false alarm", "expected", "not interesting"]
#: How what the incidents of an event share is written.
#: In place of the settings of a signal whose row is damaged; no detector has such a setting.
DAMAGE = "damaged row"
PLACE, SOURCE, BUDGET = "place:", "source:", "budget:"
#: Before the patterns, one a line, that all signals of an event match, because somebody acted who may see no others.
LIMIT = "match:"


@cache
def given_features(features: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a signal's features that are sent: all, or without the distances from peers."""
    given = features[: len(features) // 2]
    return given if given and peer_features(given) == features else features


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal. `settings` are those of its detector, as given."""

    id: int
    name: str
    features: tuple[str, ...]
    settings: dict[str, Any]
    silent_after: float | None
    unit: str | None
    template: str | None
    created: int
    #: Observations are aggregated over this many seconds, and the aggregate is judged; None: each one is judged.
    every: float | None = None
    aggregate: str = "mean"
    #: Who sends it, as far as that was stored.
    source: str | None = None
    rules: SignalRules = NO_RULES

    @property
    def given_features(self) -> tuple[str, ...]:
        return given_features(self.features)

    @property
    def damage(self) -> str | None:
        """Why its row in the store cannot be read, if it cannot."""
        return self.settings.get(DAMAGE)


@record
class ObservationRow:
    """An observation of the signal with this id. Without a verdict, `judged` is NaN except for its `value`."""

    signal: int
    time: int
    status: Status
    judged: StoredVerdict


@dataclass(frozen=True, slots=True)
class ObservationColumns:
    """Stored observations of one signal, as columns: `[T]`, and the values `[T, F]`."""

    times: NDArray[np.int64]
    statuses: NDArray[np.int64]
    values: NDArray[np.float64]

    def at(self, chosen: NDArray[np.bool_]) -> "ObservationColumns":
        """Those that are chosen."""
        return ObservationColumns(self.times[chosen], self.statuses[chosen], self.values[chosen])


@dataclass(frozen=True, slots=True)
class PartRow:
    """An observation that is aggregated with others of its signal."""

    signal: int
    time: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state of a signal's detector. `time` is that of the newest observation it includes; None: it has none."""

    signal: int
    time: int | None
    taken: int
    state: bytes


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """The known-good stretch of a signal, from `start` to `end`, both included, and its number of observations."""

    signal: int
    start: Time
    end: Time
    observations: Annotated[int, Shown("How many observations it has, including missing ones.")]
    created: Time
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFacts:
    """What the engine knows about an incident. Signal, kind and start identify it."""

    signal: int
    kind: Kind
    start: Time
    end: Time
    peak: Time
    alarms: int
    duration: Annotated[int, Shown("Observations from its start to its end.")]
    p: Annotated[float, Shown("The smallest p of its alarms.")]
    severity: Annotated[float, Shown("How anomalous its peak is over all views.")]
    return_period: Annotated[
        float, Shown("The average number of observations until an incident with this much evidence recurs.")
    ]
    seen: Annotated[int, Shown("How many observations of the signal came before it.")] = 0
    began_earliest: Annotated[Time | None, Shown("When it began at the earliest; null if unknown.")] = None
    began_latest: Annotated[Time | None, Shown("When it began at the latest; null if unknown.")] = None
    view: Annotated[str | None, Shown("The view that contributes most at the peak.")]
    explanation: Annotated[str | None, Shown("An explanation of the peak.")]
    direction: str | None
    rarity: Annotated[
        float, Shown("How rare it is on its signal, minus the log rate per observation: it orders incidents.")
    ] = math.nan
    side: Annotated[str | None, Shown("On which side of its forecast the value was at the first alarm.")] = None
    deviation: Annotated[
        float,
        Shown("Value minus forecast at the peak; of a limit, value minus limit, null as long as it is not crossed."),
    ]
    contributions: Annotated[Mapping[str, float], Shown("How much each feature contributed.", name="features")]
    feature_p: Annotated[
        Mapping[str, float], Shown("The p-value of each feature at the peak, from its own views; none without a score.")
    ] = field(default_factory=dict)
    suspects: Annotated[
        tuple[str, ...],
        Shown("The features that contributed most; if there are several, which was at fault cannot be told."),
    ] = ()
    alike: Annotated[
        str | None,
        Shown("Incidents of a signal with the same of this are alike: the view, the main feature, the direction."),
    ] = None
    advice: Annotated[str | None, Shown("What would show such an incident sooner, if it was noticed late.")] = None
    below_minimum: Annotated[
        bool,
        Shown("Whether no alerts are sent about it because it is below the signal's `min_deviation` or `min_level`."),
    ] = False
    open: bool
    opened: Time
    closed: Time | None
    ended: Annotated[
        Ended | None,
        Shown(
            "Why it ended. returned: the signal is back to normal, or sending again after a silence. subsided: "
            "nothing has been unusual since, or it no longer heads for its limit, but Tocsin cannot tell whether its "
            "cause is gone. accepted: "
            "its new behaviour is accepted as normal. silent: it has no more values. labelled: a user labelled it a "
            "false alarm. reset, relearned: its detector was reset or retrained. removed: its signal was removed. "
            "imported: it was found in imported history, and no alert was sent. null while it is open, and for "
            "incidents from before this was stored."
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow(IncidentFacts):
    """An incident and what people did about it. Its table, its JSON and its OpenAPI model follow from these fields."""

    id: int
    acknowledged: Time | None
    acknowledged_by: str | None
    snoozed_until: Time | None
    label: str | None
    note: str | None
    given_back: Annotated[
        Time | None,
        Shown(
            "The newest observation when it was labelled a fault: from then on, it no longer counts as a false "
            "incident, and what it took from the tolerated rate is given back."
        ),
    ] = None
    occurrence: Annotated[int, Shown("Its number among the incidents like it, those half as severe at least.")] = 1
    first_alike: Annotated[Time | None, Shown("The start of the first one like it; null if it is the first.")] = None
    holds: Annotated[bool, Shown("Whether its label holds for the next ones like it, until it is withdrawn.")] = False
    label_of: Annotated[int | None, Shown("The incident like it whose label it has, because that label holds.")] = None
    suppressed: Annotated[bool, Shown("Whether no alerts are sent about it because of that label.")] = False
    excluded: Annotated[bool, Shown("Whether its observations are excluded from the calibration set.")]
    withheld: Annotated[bool, Shown("Whether it is withheld from sinks because the budget went to rarer incidents.")]
    event: Annotated[
        int | None, Shown("Its event; null if it is withheld, suppressed, below a minimum or imported.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Incidents of one kind that belong together: from the first to the last start, and what they all share."""

    id: int
    kind: Kind
    first: Annotated[Time, Shown("The start of its first incident.", name="start")]
    last: Annotated[Time, Shown("The start of its last incident.", name="last_start")]
    shared: tuple[str, ...]
    open: Annotated[bool, Shown("Whether any of its incidents is open.")]
    opened: Time
    closed: Time | None
    acknowledged: Time | None
    acknowledged_by: str | None
    snoozed_until: Time | None
    label: str | None
    note: str | None

    @property
    def source(self) -> str | None:
        """The source that all its silent signals come from."""
        return self._shared(SOURCE)

    @property
    def place(self) -> str | None:
        """The levels that all its signals' names begin with."""
        return self._shared(PLACE)

    def _shared(self, prefix: str) -> str | None:
        return next((one.removeprefix(prefix) for one in self.shared if one.startswith(prefix)), None)


@dataclass(frozen=True, slots=True)
class Member:
    """An incident of an event, with the name of its signal."""

    incident: IncidentRow
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSummary:
    """An event with what there is to say of its incidents at once."""

    event: EventRow
    count: Annotated[int, Shown("How many incidents it has.")]
    signals: Annotated[int, Shown("On how many signals.")]
    open_count: Annotated[int, Shown("How many of its incidents are open.")]
    first: Annotated[Member, Shown("The first to start.")]
    strongest: Annotated[Member, Shown("The one with the highest severity.")]
    #: The first few in the order of their start.
    members: tuple[Member, ...]
    places: Annotated[tuple[str, ...], Shown("The places of its signals, that of the strongest first.")]
    #: How many signals their common source sends, if they have one.
    source_signals: int
    #: Until when all of them are snoozed; None if one is not.
    snoozed_until: int | None
    #: Why all of them ended; None if one goes on, or if they ended for different reasons.
    ended: Ended | None
    #: How long ago the newest observation of an incident was when the incident became known, of the most recent one.
    age: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadRow(IncidentRow):
    """An incident that stands for its event in a message: open as long as the event is."""

    whole: EventSummary


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message about an incident for a sink."""

    id: int
    sink: str
    incident: int
    status: Message
    created: int
    attempts: int
    next_attempt: int
    delivered: int | None
    error: str | None
    event: int | None = None
    #: When the sink got it last, and how often there has been something new to tell.
    told: int | None = None
    news: int = 0


@dataclass(frozen=True, slots=True)
class MaintenanceRow:
    """A maintenance window, from `start` up to but not including `end`, for signals whose names match `pattern`."""

    id: int
    pattern: str
    start: Time
    end: Time
    reason: str
    created_by: str
    schedule: Annotated[
        str | None,
        Shown('When it recurs from `start` to `end`, as in cron: "0 22 * * sat". null: it lasts all that time.'),
    ] = None
    duration: Annotated[float | None, Shown("How many seconds it lasts each time.")] = None
    time_zone: Annotated[str | None, Shown("The time zone of the schedule.")] = None

    @property
    def recurs(self) -> Schedule | None:
        if self.schedule is None:
            return None
        return Schedule(self.schedule, self.time_zone or "UTC", self.duration or 0.0)

    def covers(self, time: int) -> bool:
        return self.start <= time < self.end and ((recurs := self.recurs) is None or recurs.covers(time))


#: The end of what recurs until it is removed.
FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """A stored signal template: its pattern, its other settings, and who changed it last."""

    pattern: str
    template: dict[str, Any]
    changed: int
    changed_by: str


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token. Only its hash is stored."""

    id: int
    name: str
    role: Role
    hash: str
    created: Time
    expires: Time | None
    patterns: Annotated[
        tuple[str, ...], Shown("Name patterns of the signals it is limited to; none for all.", name="match")
    ] = ()


@dataclass(frozen=True, slots=True)
class AccessLogRow:
    """An entry of the access log."""

    id: int
    time: Time
    who: Annotated[str, Shown("The name of the token, or of the command-line user.")]
    action: Annotated[str, Shown("The method of the request.")]
    target: Annotated[str, Shown("The address of the request.")]
    details: Annotated[str, Shown("The beginning of the request's body.")]


@dataclass(frozen=True, slots=True)
class Refused:
    """An observation that was not added to its signal, and why. `value` is the JSON text of its values."""

    signal: str
    time: Time
    value: Annotated[str, Shown("Its values, one for each feature, as JSON.")]
    source: str
    reason: str
    noted: Time


@dataclass(frozen=True, slots=True)
class RefusedRow(Refused):
    """A refused observation as listed."""

    id: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows one call of `prune` removed. If `more`, call it again."""

    observations: int
    incidents: int
    more: bool

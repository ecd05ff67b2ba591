"""What is in the store, row by row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tocsin.service.observations import Status, StoredVerdict

Kind = Literal["alarm", "silence"]
Message = Literal["firing", "resolved"]
#: Why an incident is over. The first four are what a detector says of it, the next two are about its detector; the last
#: one was over before: it was found in an imported past, and nobody was told.
Ended = Literal["returned", "accepted", "silent", "labelled", "reset", "relearned", "imported"]
Role = Literal["read", "ingest", "operate", "write", "admin"]


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal. `settings` are the detector's as they were given."""

    id: int
    name: str
    features: tuple[str, ...]
    settings: dict[str, Any]
    silent_after: float | None
    unit: str | None
    template: str | None
    created: int
    #: It is judged every so many seconds, on what is put together in between; None for every observation.
    every: float | None = None
    aggregate: str = "mean"


@dataclass(frozen=True, slots=True)
class ObservationRow:
    """An observation of the signal with this id. Without a verdict, all of `judged` but its `value` is NaN."""

    signal: int
    time: int
    status: Status
    judged: StoredVerdict


@dataclass(frozen=True, slots=True)
class PartRow:
    """An observation that is put together with others of its signal."""

    signal: int
    time: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StateRow:
    """The stored state of a signal's detector. `time` is that of the newest observation in it, None for none."""

    signal: int
    time: int | None
    taken: int
    state: bytes


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """From when to when, both included, somebody says that a signal was good, and how many observations that are."""

    signal: int
    start: int
    end: int
    observations: int
    created: int
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFacts:
    """What the engine knows of an incident. Signal, kind and start tell which one it is."""

    signal: int
    kind: Kind
    start: int
    end: int
    peak: int
    alarms: int
    duration: int
    p: float
    severity: float
    return_period: float
    view: str | None
    explanation: str | None
    direction: str | None
    deviation: float
    contributions: Mapping[str, float]
    open: bool
    opened: int
    closed: int | None
    #: Why it is over; None while it is not, and of incidents from before this was stored.
    ended: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow(IncidentFacts):
    """An incident with what people did about it."""

    id: int
    acknowledged: int | None
    acknowledged_by: str | None
    snoozed_until: int | None
    label: str | None
    note: str | None
    excluded: bool
    #: Whether nobody was told, since the budget was for rarer ones.
    withheld: bool


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message about an incident that a sink is to get."""

    id: int
    sink: str
    incident: int
    status: Message
    created: int
    attempts: int
    next_attempt: int
    delivered: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class MaintenanceRow:
    """A maintenance window, from `start` up to but not including `end`, of the signals whose name fits `pattern`."""

    id: int
    pattern: str
    start: int
    end: int
    reason: str
    created_by: str


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token, of which only the hash is known."""

    id: int
    name: str
    role: Role
    hash: str
    created: int
    expires: int | None
    #: The names of signals that it is limited to; none for all.
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What somebody did: `who` is the name of a token."""

    id: int
    time: int
    who: str
    action: str
    target: str
    details: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An observation that is not among those of its signal, and why. `value` is a JSON text of its values."""

    signal: str
    time: int
    value: str
    source: str
    reason: str
    noted: int


@dataclass(frozen=True, slots=True)
class RefusedRow(Refused):
    """One that is listed."""

    id: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much one piece of pruning removed. `more` says that there is more to remove: prune again."""

    observations: int
    incidents: int
    more: bool

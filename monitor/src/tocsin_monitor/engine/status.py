"""What the engine tells about a signal."""

from dataclasses import dataclass
from typing import Annotated, Any

from tocsin.detection import Audit
from tocsin_monitor.fields import Shown, Time
from tocsin_monitor.store import ReferenceRow


@dataclass(frozen=True, slots=True)
class Point:
    """One of the newest observations, for a sparkline: the value of the first feature."""

    time: int
    value: float
    p: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class SignalStatus:
    """The status of a signal; its JSON and its OpenAPI model follow from these fields. NaN is an unknown number."""

    id: int
    name: str
    features: tuple[str, ...]
    unit: str | None
    template: Annotated[str | None, Shown("The pattern of the template that its settings came from.")]
    alarm_rate: Annotated[float, Shown("The tolerated rate of what `promise` names, per observation.")]
    promise: Annotated[str, Shown("What the alarm rate limits: false incidents, or observations with p below it.")]
    last_time: Annotated[Time | None, Shown("The time of the newest observation.")]
    last_arrival: Annotated[Time | None, Shown("When the newest observation arrived.")]
    value: Annotated[tuple[float, ...], Shown("The newest value of each feature.")]
    p: float
    severity: float
    alarm: bool
    warm: bool
    observations: Annotated[int, Shown("How many observations it has learned from.")]
    warm_up: Annotated[int, Shown("How many observations the warm-up takes.")]
    own_past_after: Annotated[
        int,
        Shown("How many it needs until its own past determines how rare something is; before, that is estimated."),
    ]
    silent: bool
    #: That of alarms, if there is one, else the silence.
    incident: Annotated[int | None, Shown("The open incident.")]
    recent: Annotated[tuple[Point, ...], Shown("The newest observations: time, value of the first feature, p, alarm.")]
    reference: Annotated[ReferenceRow | None, Shown("The reference it is compared with instead of its own past.")]
    quarantined: Annotated[str | None, Shown("Why it is quarantined: its detector cannot be rebuilt.")] = None


@dataclass(frozen=True, slots=True)
class SignalDetails:
    """What a signal's detector has learned, and its audit."""

    #: For each feature, the mean weight of each lag in its calibration set.
    weights: list[list[float]]
    audit: Audit
    guarantee: str
    settings: dict[str, Any]
    silent_after: float | None
    memory_bytes: int

"""What can be asked of the engine about a signal."""

from dataclasses import dataclass
from typing import Any

from tocsin.detection import Audit
from tocsin.service.store import ReferenceRow


@dataclass(frozen=True, slots=True)
class Point:
    """One of the newest observations, for a small picture: the first feature's value."""

    time: int
    value: float
    p: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class SignalStatus:
    """How a signal is doing. NaN stands for what is not there."""

    id: int
    name: str
    features: tuple[str, ...]
    unit: str | None
    template: str | None
    alarm_rate: float
    promise: str
    last_time: int | None
    last_arrival: int | None
    value: tuple[float, ...]
    p: float
    severity: float
    alarm: bool
    warm: bool
    observations: int
    warm_up: int
    #: How many it needs until its own past tells how rare something is; before, that is estimated.
    own_past_after: int
    silent: bool
    #: The number of the open incident, if there is one: that of its alarms, else that of its silence.
    incident: int | None
    recent: tuple[Point, ...]
    reference: ReferenceRow | None
    #: Why it is set aside, since its detector cannot be rebuilt; None for one that is watched.
    aside: str | None = None


@dataclass(frozen=True, slots=True)
class SignalDetails:
    """What a signal's detector has learned, and whether it keeps its promise."""

    #: For each feature, the weight of each lag, the mean over what was learned of its errors.
    weights: list[list[float]]
    audit: Audit
    guarantee: str
    settings: dict[str, Any]
    silent_after: float | None
    memory_bytes: int

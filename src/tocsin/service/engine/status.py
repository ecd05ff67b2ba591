"""What the engine tells about a signal."""

from dataclasses import dataclass
from typing import Any

from tocsin.detection import Audit
from tocsin.service.store import ReferenceRow


@dataclass(frozen=True, slots=True)
class Point:
    """One of the newest observations, for a sparkline: the value of the first feature."""

    time: int
    value: float
    p: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class SignalStatus:
    """The status of a signal. NaN stands for unknown numbers."""

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
    #: The number of observations after which rarity is measured on its own past; before, it is estimated.
    own_past_after: int
    silent: bool
    #: The number of the open incident, if there is one: the alarm incident, else the silence.
    incident: int | None
    recent: tuple[Point, ...]
    reference: ReferenceRow | None
    #: Why it is set aside: its detector cannot be rebuilt. None if it is monitored.
    aside: str | None = None


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

"""Observations that enter the monitor, their names and times, and their outcomes."""

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from math import log10, nan
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from tocsin.data import parse_time

if TYPE_CHECKING:
    from tocsin.detection import Verdicts

T = TypeVar("T")

# Names end up in addresses, topics and labels: long ones would be cut off somewhere.
LONGEST_NAME = 200
MOST_FEATURES = 64


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A frozen type, of which there are several for each observation.

    Only the type checker enforces that it is frozen: at run time, making one would take several times as long.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Status(IntEnum):
    """The outcome of an observation. The store uses these numbers: never change them."""

    #: It got a verdict, and the detector has learned from it.
    SCORED = 0
    #: It came after a later one of its signal: it is stored, but gets no verdict.
    LATE = 1
    #: It came in a maintenance window: it is stored, and the detector treated it as missing.
    MAINTENANCE = 2
    #: There is already one of this signal and time, which is kept; the verdict is on that one.
    DUPLICATE = 3
    #: Its time is too far ahead of the clock: it is not stored, since all later ones would be late.
    FUTURE = 4
    #: It is invalid: the message says why. It is not stored.
    REFUSED = 5
    #: Its signal is quarantined: it is stored, and learned once the signal is repaired.
    QUARANTINED = 6
    #: It is imported history: it is stored in its place, learned and judged, but sends no alerts.
    IMPORTED = 7
    #: It is aggregated with others: it is stored, and the aggregate gets the verdict.
    PART = 8
    #: It is outside the signal's valid range: it is stored, and the detector treated it as missing.
    OUT_OF_RANGE = 9


@record
class Observation:
    """One observation of one signal, as a source submits it.

    `time` is in nanoseconds since 1970 (UTC), None for now. `values` has a number for each feature, NaN if missing.
    `features` are the names of the features; None if there is one, or if the values are in their order.
    """

    signal: str
    time: int | None
    values: tuple[float, ...]
    features: tuple[str, ...] | None = None
    #: Who measured it, if one source brings observations of several that may stop one by one.
    sender: str | None = None


@record
class StoredVerdict:
    """The verdict on one observation, as stored. The tuples have an entry for each feature; NaN is a missing number."""

    value: tuple[float, ...]
    forecast: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    p: float
    #: The mean of the largest votes as a number from 0 to 1; not a p-value.
    merged: float
    feature_p: tuple[float, ...]
    alarm: bool
    warm: bool

    @property
    def severity(self) -> float:
        """-log10(merged), by which observations are ordered; NaN if there is no verdict."""
        return -log10(self.merged) if self.merged > 0 else nan


@dataclass(frozen=True, slots=True)
class VerdictColumns:
    """The verdicts on several observations of one signal, as columns; `[T, F]` where there is one for each feature."""

    forecast: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]
    merged: NDArray[np.float64]
    feature_p: NDArray[np.float64]
    alarm: NDArray[np.bool_]
    warm: NDArray[np.bool_]

    @classmethod
    def of(cls, verdicts: "Verdicts", steps: Sequence[int], signal: int) -> Self:
        """Those at some steps, of one of the signals that were judged together."""
        return cls(*(getattr(verdicts, name)[steps, signal] for name in _VERDICT_COLUMNS))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in _VERDICT_COLUMNS))

    def at(self, chosen: NDArray[np.bool_]) -> Self:
        """Those that are chosen."""
        return type(self)(*(getattr(self, name)[chosen] for name in _VERDICT_COLUMNS))


_VERDICT_COLUMNS = tuple(one.name for one in fields(VerdictColumns))


@record
class Outcome:
    """The outcome of one observation. `incident` is the number of the incident that its alarm belongs to."""

    signal: str
    time: int
    status: Status
    judged: StoredVerdict | None = None
    incident: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a source has read, stored in the same transaction as what it read."""

    source: str
    position: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Observations that a source submits together."""

    observations: tuple[Observation, ...]
    cursor: Cursor | None = None
    source: str = field(default="http")
    #: The sender's key that identifies a repeated request.
    key: str | None = None
    #: Which times its observations got, kept under its key.
    request: Cursor | None = None
    #: Whether it is history: stored in its place, learned and judged later, without alerts.
    history: bool = False
    #: Whether its observations are already aggregated.
    whole: bool = False
    #: Who sent it, if that can be told more exactly than by its source: a token, a machine.
    sender: str | None = None


def moment_of(time: object) -> int:
    """Nanoseconds since 1970 of an ISO 8601 text or a Unix time (seconds; ms, us or ns by their size)."""
    if isinstance(time, bool) or not isinstance(time, (str, int, float)):
        raise ValueError(f"a time must be an ISO 8601 time or a Unix time, got {time!r}")
    moment = parse_time(time)
    if isinstance(moment, float):
        raise ValueError(f"a time must be an ISO 8601 time or a Unix time, got {time!r}")
    return int(moment.astype("datetime64[ns]").astype("int64"))


def check_name(name: str) -> str:
    """A signal's name, or ValueError: any printable text that is not too long and can stand in an address."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or name != name.strip() or not name.isprintable():
        raise ValueError(
            f"a signal's name must be 1 to {LONGEST_NAME} printable characters without leading or trailing spaces, "
            f"got {name!r}"
        )
    # Browsers remove . and .. from addresses, and /-/ separates a name from the operation on its signal.
    if not {".", "..", "-"}.isdisjoint(name.split("/")):
        raise ValueError(f"a signal's name must not have '.', '..' or '-' alone between slashes, got {name!r}")
    return name


_EPOCH = datetime(1970, 1, 1)
_SECOND = 10**9
_COMMON = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\dT\d\d:\d\d):([0-5]\d)(?:\.(\d{1,9}))?Z", re.ASCII)
# Unix times by size, as in `parse_time`, within 64-bit nanoseconds: from, up to, and the unit in nanoseconds.
_UNIX = tuple((10**digits, 2**63 // unit, unit) for digits, unit in ((9, 10**9), (12, 10**6), (15, 10**3), (18, 1)))


def time_of(time: Any) -> int:
    """The same as `moment_of`, but faster for common forms."""
    if type(time) is str:
        match = _COMMON.fullmatch(time)
        minute = _minute_of(match[1]) if match else None
        if match and minute is not None:
            return minute + int(match[2]) * _SECOND + int((match[3] or "0").ljust(9, "0"))
    elif type(time) is int:
        for least, limit, unit in _UNIX:
            if least <= time < limit:
                return time * unit
    elif type(time) is float and 1e9 <= time < 9e9:
        whole = math.floor(time)
        return whole * _SECOND + round((time - whole) * 1e6) * 1000
    try:
        return moment_of(time)
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"a time must be an ISO 8601 time or a Unix time, got {time!r:.100}") from error


@lru_cache(maxsize=4096)
def _minute_of(text: str) -> int | None:
    """The nanoseconds of a minute; None if it does not exist."""
    try:
        moment = datetime.fromisoformat(text) - _EPOCH
    except ValueError:
        return None
    return (moment.days * 86400 + moment.seconds) * _SECOND


class Stamps:
    """The current time, never the same twice, so that messages without a time stay distinct."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Nanoseconds since 1970."""
        self._last = max(time.time_ns(), self._last + 1)
        return self._last


_LABELS = re.compile(r"\{[^}]*")


def place_of(name: str, levels: int | None = None) -> str:
    """The place that a signal's name begins with, of at most so many levels; empty if it has none.

    The last level of a name is the signal itself.

    >>> place_of("plant/line-3/pump/temperature", 2), place_of('host-1/free{mount="/var/log"}'), place_of("load")
    ('plant/line-3', 'host-1', '')
    """
    # A slash in the value of a label begins no level.
    hidden = _LABELS.sub(lambda labels: labels[0].replace("/", "\0"), name)
    return "/".join(hidden.split("/")[:-1][:levels]).replace("\0", "/")

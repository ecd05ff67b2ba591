"""What comes into the monitor and what it answers."""

from dataclasses import dataclass, field
from enum import IntEnum
from math import log10, nan

from tocsin.data import parse_time

# Names end up in addresses, topics and labels: long ones would be cut off somewhere.
LONGEST_NAME = 200
MOST_FEATURES = 64


class Status(IntEnum):
    """What became of an observation. The numbers are those of the store: never change them."""

    #: It got a verdict, and the detector has learned from it.
    SCORED = 0
    #: It came after a later one of its signal: it is kept, but no verdict can be given any more.
    LATE = 1
    #: It came in a maintenance window: it is kept, and the detector took it as missing.
    MAINTENANCE = 2
    #: There is one of this signal and time already, which stands; the verdict is the one on that.
    DUPLICATE = 3
    #: Its time is too far ahead of the clock: it is not kept, since all others after it would be late.
    FUTURE = 4
    #: It cannot be taken: the message says why. It is not kept.
    REFUSED = 5
    #: Its signal is set aside: it is kept, and learned once the signal is mended.
    ASIDE = 6
    #: It is of a past that was imported: it is kept in its place, learned and judged, and nobody is told of it.
    IMPORTED = 7
    #: It is a part of what its signal puts together: it is kept, and the whole gets the verdict.
    PART = 8

    @property
    def kept(self) -> bool:
        """Whether it is in the store now, once."""
        return self <= Status.DUPLICATE or self >= Status.ASIDE


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation of one signal, as a source hands it over.

    `time` is in nanoseconds since 1970 (UTC), None for now. `values` has a number for each feature, NaN for what is
    missing. `features` are the features' names, None where there is one, or where they go by their order.
    """

    signal: str
    time: int | None
    values: tuple[float, ...]
    features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one observation, as it is stored; with several features the tuples have an entry for each.

    NaN stands for what is not there.
    """

    value: tuple[float, ...]
    forecast: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    p: float
    #: The mean rank in all views together: no p-value.
    merged: float
    feature_p: tuple[float, ...]
    alarm: bool
    warm: bool

    @property
    def severity(self) -> float:
        """-log10(merged), which orders observations; NaN where there is none."""
        return -log10(self.merged) if self.merged > 0 else nan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one observation. `incident` is the number of the incident that its alarm belongs to."""

    signal: str
    time: int
    status: Status
    judged: Judged | None = None
    incident: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a source has read, stored in the same transaction as what it read."""

    source: str
    position: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Observations that a source hands over together."""

    observations: tuple[Observation, ...]
    cursor: Cursor | None = None
    source: str = field(default="http")
    #: What tells a request that is sent again, as its sender calls it.
    key: str | None = None
    #: Which times its observations got, kept under its key.
    request: Cursor | None = None
    #: Whether it is of the past: put in its place, learned and judged later, and told to nobody.
    history: bool = False
    #: Whether its observations are put together already, of signals that do so.
    whole: bool = False


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
            f"a signal's name must be 1 to {LONGEST_NAME} printable characters without spaces at its ends, got {name!r}"
        )
    # Browsers leave out . and .. from addresses, and /-/ separates a name from what is asked of its signal.
    if not {".", "..", "-"}.isdisjoint(name.split("/")):
        raise ValueError(f"a signal's name must not have '.', '..' or '-' alone between slashes, got {name!r}")
    return name

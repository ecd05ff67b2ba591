"""The caller's options for reading a table from any source."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tocsin import checks
from tocsin.data.resampling import AGGREGATES
from tocsin.data.spool import LIMIT
from tocsin.data.timeline import LONGEST_GAP, as_interval


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """See `read_signals`. With `guess`, labels, counters and sentinels are detected."""

    time: str | None = None
    values: str | Iterable[str] | None = None
    id: str | None = None
    ignore: str | Iterable[str] = ()
    separate: bool = False
    interval: Any = None
    every: Any = None
    aggregate: str = "mean"
    time_format: str | None = None
    day_first: bool | None = None
    decimal: str | None = None
    missing: str | float | Iterable[str | float] | None = None
    longest_gap: int = LONGEST_GAP
    most_lost: float = 1.0
    limit: int = LIMIT
    guess: bool = False

    def __post_init__(self) -> None:
        if self.decimal is not None:
            checks.choice("decimal", self.decimal, (".", ","))
        checks.choice("aggregate", self.aggregate, AGGREGATES)
        checks.integer("longest_gap", self.longest_gap, least=0)
        checks.number("most_lost", self.most_lost, least=0, most=1)
        checks.integer("limit", self.limit, least=1)
        for name in ("interval", "every"):
            if getattr(self, name) is not None:
                as_interval(getattr(self, name), dated=True, name=name)
        if self.interval is not None and self.every is not None:
            raise ValueError(f"interval must not be given with every, which sets it, got {self.interval!r}")

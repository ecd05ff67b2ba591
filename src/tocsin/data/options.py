"""What a caller asks of a reader, and how the table was read."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, Message
from tocsin.data.columns import Columns
from tocsin.data.numbers import PLAIN, NumberFormat
from tocsin.data.resampling import AGGREGATES
from tocsin.data.spool import LIMIT
from tocsin.data.timeline import LONGEST_GAP, Interval, as_interval, duration_text
from tocsin.data.times import TimeParser

OFTEN = 0.01  # of all steps: more irregular steps than this are mentioned


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
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
            given = f", which sets it, got {self.interval!r}"
            raise ArgumentError("interval", Message("must not be given with ", Argument("every", subject=True), given))


@dataclass
class ReadSummary:
    """How a table was read. Its signals add their part as they are assembled."""

    columns: Columns
    parser: TimeParser | None = None
    notes: Sequence[str] = ()
    number_format: NumberFormat = PLAIN
    excluded: Sequence[str] = ()  # labels and counters
    aggregate: str | None = None
    signals: int = 1
    separate: bool = False
    intervals: set[Interval | None] = field(default_factory=set)
    steps: int = 0  # from one observation to the next; of these,
    irregular: int = 0  # irregular ones that are not gaps,
    gaps: int = 0  # gaps,
    filled: int = 0  # and observations inserted for the gaps
    sentinels: Counter[float] = field(default_factory=Counter)

    def __str__(self) -> str:
        return str(self.message)

    @property
    def message(self) -> Message:
        """The line, in which arguments are marked."""
        features = len(self.columns.values)
        parts: list[str] = [self._time(), *self.notes, *self.number_format.in_words()]
        if self.signals > 1 or self.separate:
            parts.append(_count(self.signals, "signal"))
        if not self.separate:
            parts.append(_count(features, "feature"))
        if self.excluded:
            parts.append(f"not {', '.join(self.excluded)}")
        parts.extend(self._steps())
        parts.extend(
            f"{count:,} {'values were' if count > 1 else 'value was'} {value:g} and "
            f"{'count' if count > 1 else 'counts'} as missing"
            for value, count in self.sentinels.items()
        )
        return Message.joined("; ", parts)

    def _time(self) -> str:
        if self.columns.time is None:
            return "no time: rows in file order"
        names = " + ".join(name for name in (self.columns.time, self.columns.time_of_day) if name is not None)
        order = f", {self.parser.order}" if self.parser is not None and self.parser.order else ""
        return f"time: {names}{order}"

    def _steps(self) -> Iterable[str]:
        known = [interval for interval in self.intervals if interval is not None]
        by = f" ({self.aggregate})" if self.aggregate else ""
        if len(known) == 1:
            yield f"every {duration_text(known[0])}{by}"
        elif known:
            yield f"every {duration_text(min(known))} to {duration_text(max(known))}"
        if self.irregular > OFTEN * self.steps:
            off = f"{self.irregular:,} of {self.steps:,} steps"
            yield Message(f"{off} are irregular and count as one each (", Argument("every"), " regularises them)")
        if self.gaps > OFTEN * self.steps:
            yield f"{self.gaps:,} gaps, {self.filled:,} observations in all, count as missing"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

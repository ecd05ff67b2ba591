"""How a table was read, in one line."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tocsin.data.columns import Columns
from tocsin.data.durations import duration_text
from tocsin.data.numerals import PLAIN, Numerals
from tocsin.data.signal import Interval
from tocsin.data.times import TimeRule

OFTEN = 0.01  # of all steps: more irregular steps than this are mentioned


@dataclass
class Understood:
    """How a table was read. Its signals add their part as they are assembled."""

    columns: Columns
    rule: TimeRule | None = None
    notes: Sequence[str] = ()
    numerals: Numerals = PLAIN
    left_out: Sequence[str] = ()  # labels and counters
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
        features = len(self.columns.values)
        parts = [self._time(), *self.notes, *self.numerals.in_words()]
        if self.signals > 1 or self.separate:
            parts.append(_count(self.signals, "signal"))
        if not self.separate:
            parts.append(_count(features, "feature"))
        if self.left_out:
            parts.append(f"not {', '.join(self.left_out)}")
        parts.extend(self._steps())
        parts.extend(
            f"{count:,} {'values were' if count > 1 else 'value was'} {value:g} and "
            f"{'count' if count > 1 else 'counts'} as missing"
            for value, count in self.sentinels.items()
        )
        return "; ".join(parts)

    def _time(self) -> str:
        if self.columns.time is None:
            return "no time: rows in file order"
        names = " + ".join(name for name in (self.columns.time, self.columns.clock) if name is not None)
        order = f", {self.rule.order}" if self.rule is not None and self.rule.order else ""
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
            yield f"{off} are irregular and count as one each (`every` regularises them)"
        if self.gaps > OFTEN * self.steps:
            yield f"{self.gaps:,} gaps, {self.filled:,} observations in all, count as missing"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

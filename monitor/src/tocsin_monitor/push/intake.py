"""What becomes of the series in one request: which are signals, under which names, with which observations.

Counters that only grow become rates. Each pushed format has a receiver, which keeps its counters and its health.
"""

import asyncio
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from time import time_ns
from typing import Any, Generic, TypeVar

from tocsin_monitor.config import PushRule, PushSettings
from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import LONGEST_NAME, Observation, check_name
from tocsin_monitor.sources.base import Reporter
from tocsin_monitor.sources.payloads import series_signal

R = TypeVar("R", bound=PushRule)

# Limits on the labels of a series. A request can repeat labels without sending them again.
MOST_LABELS = 256
LONGEST_LABELS = 8192  # characters, of the labels in its name
MOST_COUNTERS = 200_000
SECOND = 10**9  # ns

_NO_LABEL = re.compile(r"[^A-Za-z0-9_]")
_TIMES = 2**63  # ns, of either sign

NO_INCREASE = "the first point of a counter, or one that is not newer than the last"


@dataclass(frozen=True, slots=True)
class Increase:
    """What the totals of a counter grew by, and in how many seconds."""

    seconds: float
    totals: tuple[float, ...]


class Rates:
    """The newest totals of each counter, in memory: those seen last.

    A request changes them only once its observations are durable: when it is sent again, it finds what it found the
    first time.
    """

    def __init__(self, most: int = MOST_COUNTERS) -> None:
        self._most = most
        self._newest: OrderedDict[str, tuple[int, tuple[float, ...]]] = OrderedDict()

    def newest(self, counter: str) -> tuple[int, tuple[float, ...]] | None:
        """The time and the totals of a counter's newest point."""
        return self._newest.get(counter)

    def put(self, changes: dict[str, tuple[int, tuple[float, ...]]]) -> None:
        """Take over what a request brought; what another one brought meanwhile may be newer."""
        for counter, point in changes.items():
            known = self._newest.get(counter)
            if known is None or known[0] < point[0]:
                self._newest[counter] = point
            self._newest.move_to_end(counter)
        while len(self._newest) > self._most:
            self._newest.popitem(last=False)


class MalformedError(ValueError):
    """A body that is not in its declared format."""


class TooManyError(ValueError):
    """A body with more points than one request may have."""


def label_name(text: str) -> str:
    """The name of a label as a template can have it: service.name is service_name, as Prometheus writes it."""
    name = _NO_LABEL.sub("_", text)
    return f"_{name}" if name[:1].isdecimal() else name


class Naming(Generic[R]):
    """The rules of one format. The first match applies; without rules everything is a signal."""

    def __init__(self, rules: Sequence[R], default: R) -> None:
        self._rules = [(rule, None if rule.signal is None else NameTemplate(rule.signal)) for rule in rules]
        self._rules = self._rules or [(default, None)]
        self._found: dict[str, tuple[R, NameTemplate | None] | None] = {}

    def rule_for(self, name: str) -> tuple[R, NameTemplate | None] | None:
        """The rule for a series of this name with its template, None if it is no signal."""
        if len(name) > LONGEST_LABELS:
            return None
        if len(name) > LONGEST_NAME:
            return self._find(name)
        if name not in self._found:
            if len(self._found) >= 10_000:  # names come from outside
                self._found.clear()
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> tuple[R, NameTemplate | None] | None:
        return next((one for one in self._rules if fnmatchcase(name, one[0].match)), None)


class Intake:
    """Collects the observations of one request, and counts the points that are none.

    Every point is one of three: an observation, refused (the reply says so), or left out on purpose (what nobody asked
    for, such as a text, or a counter's first point). `latest` is how far ahead times may be, in nanoseconds since 1970.
    """

    def __init__(self, rates: Rates, may_send: Callable[[str], bool], most: int, latest: int = _TIMES - 1) -> None:
        self._rates, self._may_send, self._most, self._latest = rates, may_send, most, latest
        self.observations: list[Observation] = []
        self.refused = 0
        #: Why the first refused one was.
        self.why: str | None = None
        #: By what they are, the points that were left out, and those of a kind that is always refused.
        self.left_out: Counter[str] = Counter()
        self._points = self._parts = 0
        self._series_of: dict[str, int] = {}
        #: The newest points of counters in this request.
        self._newest: dict[str, tuple[int, tuple[float, ...]]] = {}

    def visit(self, parts: int) -> None:
        """Count series or lines, which may be empty: a request may have as many of them as points."""
        self._parts += parts
        if self._parts > self._most:
            raise TooManyError(f"a request may contain at most {self._most} series or lines, got more")

    def signal(
        self,
        template: NameTemplate | None,
        labels: Mapping[str, str],
        points: int = 1,
        more: Mapping[str, str] | None = None,
    ) -> str | None:
        """The name of the signal that a series is; None, and its points are refused, if it may be none.

        `more` are labels that belong to the series, but to its name only if the template asks for them.
        """
        try:
            if len(labels) + len(more or ()) > MOST_LABELS:
                raise ValueError(f"a series may have at most {MOST_LABELS} labels, got more")
            whole = {**more, **labels} if more else labels
            named = labels if template is None else {field: whole.get(field, "") for field in template.fields}
            if sum(len(name) + len(value) for name, value in named.items()) > LONGEST_LABELS:
                raise ValueError(f"the labels in a name may have at most {LONGEST_LABELS} characters, got more")
            signal = check_name(series_signal(template, named, "unnamed"))
            if not self._may_send(signal):
                raise ValueError(f"this token does not allow the signal {signal!r}")
            series = hash(frozenset(whole.items()))  # takes far less memory
            if self._series_of.setdefault(signal, series) != series:
                raise ValueError(f"two series map to the same signal {signal!r}: use more labels in `signal`")
        except ValueError as error:
            self.refuse(str(error), points)
            return None
        return signal

    def add(self, signal: str, time: int | None, *values: float, features: tuple[str, ...] | None = None) -> None:
        """An observation; values that are not finite are missing."""
        if time is not None and not self._in_time(signal, time):
            return
        self._count(1)
        finite = tuple(value if math.isfinite(value) else math.nan for value in values)
        self.observations.append(Observation(signal, time, finite, features))

    def add_rate(self, signal: str, time: int | None, *totals: float, features: tuple[str, ...] | None = None) -> None:
        """The increase per second of each of a signal's counters since its last point."""
        time = time_ns() if time is None else time
        if not self._in_time(signal, time):
            return
        found = [self._per_second(f"{signal}\0{place}", time, total) for place, total in enumerate(totals)]
        if all(rate is None for rate in found):
            self.ignore(NO_INCREASE)
        else:
            self.add(signal, time, *(math.nan if rate is None else rate for rate in found), features=features)

    def _per_second(self, counter: str, time: int, total: float) -> float | None:
        """None if it is not known; a total that is not finite is a missing value."""
        if not math.isfinite(total):
            return math.nan
        increase = self._grown(counter, time, (total,))
        return None if increase is None else increase.totals[0] / increase.seconds

    def increase(self, signal: str, time: int, totals: Sequence[float], start: int | None) -> Increase | None:
        """What a signal's counter grew by since its last point; None, and the point is counted, if it is no
        observation."""
        if not self._in_time(signal, time):
            return None
        increase = self._grown(signal, time, totals, start)
        if increase is None:
            self.ignore(NO_INCREASE)
        return increase

    def _grown(self, counter: str, time: int, totals: Sequence[float], start: int | None = None) -> Increase | None:
        """None for a counter's first point, and for one that is not newer than the last.

        The first of the totals decides whether the counter began again: then it grew since `start`, if that is known.
        """
        known = self._newest.get(counter) or self._rates.newest(counter)
        now = tuple(totals)
        if known is None:
            self._newest[counter] = time, now
            return None
        then, before = known
        if time <= then:
            return None
        self._newest[counter] = time, now
        if now[0] >= before[0] and (start is None or start <= then):
            grown = tuple(new - old for new, old in zip(now, before, strict=True))
            return Increase((time - then) / SECOND, grown)
        if start is not None and then <= start < time:
            return Increase((time - start) / SECOND, now)
        return None

    def _in_time(self, signal: str, time: int) -> bool:
        """Whether a time can be taken, else the point is refused: after a counter's point from the future, all that
        follow would be older than the last."""
        if not -_TIMES < time < _TIMES:
            self.refuse(f"{signal!r}: a time must be between 1678 and 2262, got {time} ns since 1970")
        elif time > self._latest:
            ahead = (time - self._latest) / 1e9
            self.refuse(f"{signal!r}: its time is {ahead:.0f} s further ahead than engine.future_tolerance allows")
        else:
            return True
        return False

    def commit(self) -> None:
        """The observations are durable."""
        self._rates.put(self._newest)

    def refuse(self, why: str, points: int = 1, kind: str | None = None) -> None:
        """Points that can never be observations; `kind` names those that the monitor cannot take, whatever they say."""
        self._count(points)
        self.refused += points
        self.why = self.why or why
        if kind is not None:
            self.left_out[kind] += points

    def ignore(self, what: str, points: int = 1) -> None:
        """Points that are left out on purpose."""
        self._count(points)
        self.left_out[what] += points

    def _count(self, points: int) -> None:
        self._points += points
        if self._points > self._most:
            raise TooManyError(f"a request may contain at most {self._most} points, got more")


class Receiver(Reporter):
    """One format: its rules, the counters that it knows, and its health."""

    def __init__(self, name: str, naming: Naming[Any], metrics: Metrics) -> None:
        super().__init__(name, metrics)
        self.naming = naming
        self.rates = Rates()
        self._refusals = metrics.observations.labels("refused", name)
        self._left_out = metrics.left_out

    @property
    def used(self) -> bool:
        return self.health.last_success is not None or self.health.last_error is not None

    def failed(self, why: str, sender: str) -> None:
        """A request was refused as a whole."""
        self._skipped(why, sender=sender)

    def succeeded(self, intake: Intake, refused_by_engine: int, why: str | None, sender: str) -> None:
        """A request was taken, and these of its points were refused."""
        self.health.received += len(intake.observations)
        self._succeeded()
        self._refusals.inc(intake.refused)
        refused = intake.refused + refused_by_engine
        if refused:
            self._skipped(intake.why or why or "refused", refused, sender)
        for kind, points in intake.left_out.items():
            self.health.left_out[kind] += points
            self._left_out.labels(self.name, kind).inc(points)


class Receivers:
    """All formats."""

    def __init__(self, settings: PushSettings, metrics: Metrics) -> None:
        self._all = {
            name: Receiver(name, Naming(getattr(settings, name), kind()), metrics)
            for name, kind in settings.kinds.items()
        }
        #: One body at a time is unpacked and read: it may take many times the memory of what was sent.
        self.reading = asyncio.Lock()

    def __getitem__(self, name: str) -> Receiver:
        return self._all[name]

    @property
    def used(self) -> list[Receiver]:
        return [one for one in self._all.values() if one.used]

"""Limits that people know: a value beyond one is told at once, and a steady rise or fall to one ahead.

What is known of a signal follows from its observations that were judged, in the order of time. The store keeps it with
every so many of them, in their transaction, and those since then are taken again after a restart: nothing changes.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tocsin.detection import length_text
from tocsin_monitor.engine.trend import Reach, Trend
from tocsin_monitor.rules import SignalRules

# The signal is back when the newest values, so many, stay away from the limit by as much as they vary: a noisy value at
# its limit is one incident. With half as far away, it would be ten a day.
BACK_AFTER = 10
# After so many nanoseconds within the limit it is back all the same.
BACK_ANYHOW = 86400 * 10**9
# It is stored with this many observations: more would take longer to take again, fewer would be more to write.
SAVED_AFTER = 100

Values = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LimitIncident:
    """A limit that is crossed or will be, as known after an observation."""

    start: int
    #: The newest observation that says so, and how many there were from the start to it.
    end: int
    duration: int
    #: The observation that is told: that furthest beyond the limit; before, the newest one that the forecast is from.
    peak: int
    feature: str
    value: float
    limit: float
    high: bool
    #: When the limit is reached; None if it is crossed.
    reach: Reach | None
    ended: Literal["returned", "subsided"] | None = None

    @property
    def beyond(self) -> float:
        """How far the value is beyond the limit, negative if below; NaN before it is."""
        return math.nan if self.reach is not None else self.value - self.limit

    def is_crossing_of(self, before: "LimitIncident") -> bool:
        """Whether what was told ahead has come."""
        return self.start == before.start and self.reach is None and before.reach is not None


class _Side:
    """One limit of a feature. Values and limit change their sign if it is a low one, so that it is never exceeded."""

    def __init__(self, feature: str, place: int, high: bool, limit: float) -> None:
        self.feature, self.place, self.high = feature, place, high
        self.sign = 1.0 if high else -1.0
        self.limit = self.sign * limit
        self.trend = Trend()
        #: The newest values, and when the last one beyond the limit came, if the signal is not back yet.
        self.recent: deque[float] = deque(maxlen=BACK_AFTER)
        self.crossed: int | None = None

    def take(self, time: int, value: float) -> None:
        self.recent.append(value)
        if value > self.limit:
            self.crossed = time
        elif self.crossed is not None and (self._is_clear() or time - self.crossed >= BACK_ANYHOW):
            self.crossed = None
        self.trend.add(time / 1e9, value, self.limit, looking=self.crossed is None)

    def _is_clear(self) -> bool:
        high, low = max(self.recent), min(self.recent)
        return len(self.recent) == BACK_AFTER and self.limit - high >= high - low

    def state(self) -> list[Any]:
        return [self.feature, self.high, self.sign * self.limit, list(self.recent), self.crossed, self.trend.state()]


class LimitWatch:
    """The limits of a signal, and the incident if one is crossed or will be."""

    def __init__(self, features: Sequence[str], rules: SignalRules) -> None:
        limits = [(place, name, rules.limits(name)) for place, name in enumerate(features)]
        self._sides = [
            _Side(name, place, high, limit)
            for place, name, (low, top) in limits
            for high, limit in ((False, low), (True, top))
            if limit is not None
        ]
        self._features = tuple(features)
        self.limits = limits_of(features, rules)
        self.incident: LimitIncident | None = None
        #: The newest observation, and how many there were since the start of the incident.
        self.time: int | None = None
        self._count = 0
        #: How many observations are not stored with it.
        self.unsaved = SAVED_AFTER

    def take(self, time: int, values: Values) -> LimitIncident | None:
        """Take an observation; returns the incident as it now is, if it began, changed or ended."""
        self.time = time
        self.unsaved += 1
        for side in self._sides:
            value = side.sign * values[side.place]
            if not math.isnan(value):
                side.take(time, value)
        before = self.incident
        self._count = 1 if before is None else self._count + 1
        self.incident = self._found(time, values)
        if self.incident is None and before is not None:
            return replace(before, ended="subsided" if before.reach is not None else "returned")
        return None if self.incident == before else self.incident

    def take_all(self, observations: Iterable[tuple[int, Values]]) -> list[LimitIncident]:
        """Take observations; returns the incidents that began, changed or ended, as they are after the last one."""
        found = [self.take(time, values) for time, values in observations]
        return list({one.start: one for one in found if one is not None}.values())

    def _found(self, time: int, values: Values) -> LimitIncident | None:
        """The incident after an observation, if there is one."""
        old = self.incident
        start = time if old is None else old.start
        beyond = [side for side in self._sides if side.crossed == time]
        if beyond:
            side = max(beyond, key=lambda one: one.sign * values[one.place] - one.limit)
            new = self._told(side, start, time, values, None)
            worse = old is None or old.reach is not None or abs(new.beyond) > abs(old.beyond)
            return new if worse or old is None else replace(old, end=time, duration=self._count)
        if any(side.crossed is not None for side in self._sides):
            return old
        ahead = [(side.trend.reach, side) for side in self._sides if side.trend.reach is not None]
        if not ahead:
            return None
        reach, side = min(ahead, key=lambda one: one[0].expected)
        # What was crossed stays so until nothing is ahead any more.
        return old if old is not None and old.reach in (None, reach) else self._told(side, start, time, values, reach)

    def _told(self, side: _Side, start: int, time: int, values: Values, reach: Reach | None) -> LimitIncident:
        value, limit = values[side.place], side.sign * side.limit
        return LimitIncident(start, time, self._count, time, side.feature, value, limit, side.high, reach)

    def following(self, features: Sequence[str], rules: SignalRules) -> "LimitWatch":
        """The same with the limits that the rules now have; what is known of trends stays."""
        made = LimitWatch(features, rules)
        known = {(side.feature, side.high): side.trend for side in self._sides}
        for side in made._sides:
            side.trend = known.get((side.feature, side.high), side.trend)
        return made

    def saved(self, first: int = 0) -> str:
        """What is known, as text to store; as if so many observations had come since."""
        self.unsaved = first
        incident = None if self.incident is None else asdict(self.incident)
        return json.dumps([self.time, self._count, self._features, [one.state() for one in self._sides], incident])

    @classmethod
    def restored(cls, text: str) -> "LimitWatch":
        """Continue with what was stored."""
        time, count, features, sides, incident = json.loads(text)
        rules = {
            name: {feature: limit for feature, high, limit, *_ in sides if high is of} or None
            for name, of in (("limit_high", True), ("limit_low", False))
        }
        made = cls(features, SignalRules.model_validate(rules))
        made.time, made._count, made.unsaved = time, count, 0
        for side, (*_, recent, crossed, trend) in zip(made._sides, sides, strict=True):
            side.recent.extend(recent)
            side.crossed, side.trend = crossed, Trend.from_state(trend)
        if incident is not None:
            reach = None if incident["reach"] is None else Reach(*incident["reach"])
            made.incident = LimitIncident(**{**incident, "reach": reach})
        return made


def limits_of(features: Sequence[str], rules: SignalRules) -> tuple[tuple[float | None, float | None], ...] | None:
    """The limits of all features; None if there are none."""
    if rules.limit_high is None and rules.limit_low is None:
        return None
    return tuple(rules.limits(name) for name in features)


def cursor_of(signal_id: int) -> str:
    """The key under which the store keeps what is known of a signal's limits."""
    return f"limits/{signal_id}"


def limit_text(incident: LimitIncident, unit: str | None, name: str) -> str:
    """The incident in words; `name` is that of the feature, if there are several."""
    measure = f" {unit}" if unit else ""
    value, limit = f"{f'{name} ' if name else ''}{incident.value:.6g}{measure}", f"{incident.limit:g}{measure}"
    if incident.reach is None:
        return f"{value}, limit {limit}"
    expected, earliest, latest = (max(one - incident.end / 1e9, 0.0) for one in incident.reach)
    return f"{value}, reaches {limit} in about {length_text(1, expected)} ({_between(earliest, latest)})"


def _between(earliest: float, latest: float) -> str:
    first, last = length_text(1, earliest), length_text(1, latest)
    if first.partition(" ")[2] == last.partition(" ")[2]:
        first = first.partition(" ")[0]
    return f"{first} to {last}" if earliest >= 1 else f"at most {last}"

"""Counters that only grow become what they grew by."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

MOST_COUNTERS = 200_000
SECOND = 10**9  # ns


@dataclass(frozen=True, slots=True)
class Increase:
    """What the totals of a counter grew by, and in how many seconds."""

    seconds: float
    totals: tuple[float, ...]


class Rates:
    """The newest totals of each counter, in memory: those seen last.

    A request looks at them through `open`, and changes them only once its observations are durable: when it is sent
    again, it finds what it found the first time.
    """

    def __init__(self, most: int = MOST_COUNTERS) -> None:
        self._most = most
        self._newest: OrderedDict[str, tuple[int, tuple[float, ...]]] = OrderedDict()

    def open(self) -> "OpenRates":
        """As one request sees them."""
        return OpenRates(self)

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


class OpenRates:
    """The counters as one request sees them, with its own points."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._changes: dict[str, tuple[int, tuple[float, ...]]] = {}

    def increase(self, counter: str, time: int, totals: Sequence[float], start: int | None = None) -> Increase | None:
        """What a counter grew by since its last point; None for its first one, and for one that is not newer.

        The first of the totals decides whether the counter began again: then it grew since `start`, if that is known.
        """
        known = self._changes.get(counter) or self._rates.newest(counter)
        now = tuple(totals)
        if known is None:
            self._changes[counter] = time, now
            return None
        then, before = known
        if time <= then:
            return None
        self._changes[counter] = time, now
        if now[0] >= before[0] and (start is None or start <= then):
            grown = tuple(new - old for new, old in zip(now, before, strict=True))
            return Increase((time - then) / SECOND, grown)
        if start is not None and then <= start < time:
            return Increase((time - start) / SECOND, now)
        return None

    def commit(self) -> None:
        """The observations are durable."""
        self._rates.put(self._changes)

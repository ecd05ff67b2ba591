"""Which incidents people are told of, where many signals share a budget."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence

from tocsin.detection.budget import POOL, IncidentBudget
from tocsin.service.config import Budget
from tocsin.service.engine.watched import Watched
from tocsin.service.store import IncidentFacts, Reader

# Of incidents that are called equally rare, since nothing rarer can be told, the severer one is the rarer.
SEVERER = 1e-3


class _Shared:
    """One budget, and the incidents that it has let pass and that go on."""

    def __init__(self, settings: Budget, signals: Collection[str], since: float) -> None:
        self.settings = settings
        self.selection = IncidentBudget(settings.per_second, since=since, signals=max(self._count(signals), 1))
        self._known = len(signals)
        self.passed: set[int] = set()

    def _count(self, signals: Collection[str]) -> int:
        return sum(map(self.settings.fits, signals))

    def follow(self, signals: Collection[str]) -> None:
        """Signals may have come or gone."""
        if len(signals) != self._known:
            self._known = len(signals)
            self.selection.signals = max(self._count(signals), 1)


class Budgets:
    """Ranks each incident among the newest of all signals that share a budget.

    What is stored of incidents is all that it has to remember, so it can be made anew at any moment.
    """

    def __init__(self, settings: Sequence[Budget]) -> None:
        self._settings = settings
        self._shared: list[_Shared] = []

    def recover(self, reader: Reader, signals: Mapping[str, Watched], now: int) -> None:
        """Learn from the incidents that are stored."""
        names = {signal.row.id: signal for signal in signals.values()}
        self._shared = []
        for settings in self._settings:
            created = [signal.row.created for name, signal in signals.items() if settings.fits(name)]
            self._shared.append(_Shared(settings, signals.keys(), min([*created, now]) / 1e9))
        if not self._shared:
            return
        for row in reversed(reader.incidents(open=False, kind="alarm", limit=POOL)):
            shared = self._of(names[row.signal].name) if row.signal in names else None
            rarity = math.nan if shared is None else _rarity(names[row.signal], row)
            if shared is not None and not math.isnan(rarity):
                shared.selection.learn(rarity, (row.closed or row.end) / 1e9)
        for row in reader.open_incidents():
            shared = self._of(names[row.signal].name) if row.signal in names else None
            if shared is not None and not row.withheld:
                shared.passed.add(row.id)

    def _of(self, name: str) -> _Shared | None:
        return next((shared for shared in self._shared if shared.settings.fits(name)), None)

    def withholds(self, signal: Watched, number: int, facts: IncidentFacts, signals: Collection[str], now: int) -> bool:
        """Whether nobody is to be told of an incident, as it is now, since the budget is for rarer ones."""
        shared = self._of(signal.name)
        rarity = _rarity(signal, facts)
        if shared is None or facts.kind != "alarm" or math.isnan(rarity):
            return False
        shared.follow(signals)
        if number not in shared.passed and shared.selection.tells(rarity, now / 1e9):
            shared.passed.add(number)
        withheld = number not in shared.passed
        if not facts.open:
            shared.selection.learn(rarity, now / 1e9)
            shared.passed.discard(number)
        return withheld


def _rarity(signal: Watched, facts: IncidentFacts) -> float:
    """Minus the logarithm of how often such an incident comes on its signal, in a second; NaN where nobody knows."""
    interval = signal.block.fleet.interval
    if interval is None:
        interval = statistics.median(signal.paces) / 1e9 if signal.paces else math.nan
    period = facts.return_period * interval
    return math.log(period) + SEVERER * facts.severity if period > 0 else math.nan

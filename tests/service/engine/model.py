"""The rules of the engine once more, as plainly as can be: one observation after the other, one detector a signal."""

import bisect
from dataclasses import dataclass, field
from typing import Any

from tests.service.engine.helpers import NAN, expected, oracle
from tocsin.detection import Detector
from tocsin_monitor.observations import Observation, Status, StoredVerdict


@dataclass
class Model:
    """What became of every observation so far. `stored` has them by signal and time."""

    settings: dict[str, Any]
    windows: list[tuple[int, int]] = field(default_factory=list)
    detectors: dict[str, Detector] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    stored: dict[str, dict[int, tuple[Status, StoredVerdict | None]]] = field(default_factory=dict)

    def take(self, batch: list[Observation]) -> list[tuple[Status, StoredVerdict | None]]:
        """For each observation of a batch its status and, where it has one, its verdict; LATE and the like: None."""
        answers: list[tuple[Status, StoredVerdict | None]] = [(Status.REFUSED, None)] * len(batch)
        order: list[tuple[int, int]] = []
        for position, observation in enumerate(batch):
            assert observation.time is not None
            bisect.insort(order, (observation.time, position))
        for _, position in order:
            answers[position] = self._one(batch[position])
        return answers

    def _one(self, observation: Observation) -> tuple[Status, StoredVerdict | None]:
        name, moment = observation.signal, observation.time or 0
        known = self.stored.setdefault(name, {})
        if moment in known:
            return Status.DUPLICATE, known[moment][1]
        if moment < self.newest.get(name, -1):
            known[moment] = Status.LATE, None
            return known[moment]
        detector = self.detectors.setdefault(name, oracle(**self.settings))
        maintained = any(start <= moment < end for start, end in self.windows)
        judged = expected(detector, moment, NAN if maintained else observation.values[0])
        known[moment] = (Status.MAINTENANCE, None) if maintained else (Status.SCORED, judged)
        self.newest[name] = moment
        return known[moment]

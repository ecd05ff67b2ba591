"""In place of the engine: keeps observations as it does, and can be slow or broken."""

import asyncio
from collections import defaultdict
from typing import Any

from tocsin_monitor.errors import MonitorError
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Observation, Outcome, Status
from tocsin_monitor.sources import SourceContext


class Inbox:
    """Once per (signal, time); the cursor is stored together with the observations."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], Observation] = {}
        self.batches: list[Batch] = []
        self.statuses: list[Status] = []
        self.cursors: dict[str, str] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.failures = 0  # how many batches to fail from now on

    async def submit(self, batch: Batch) -> list[Outcome]:
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise MonitorError("the store is away")
        self.batches.append(batch)
        outcomes = []
        newest: defaultdict[str, int] = defaultdict(lambda: -1)
        for signal, time in self.kept:
            newest[signal] = max(newest[signal], time)
        for observation in batch.observations:
            assert observation.time is not None
            place = observation.signal, observation.time
            if place in self.kept:
                status = Status.DUPLICATE
            else:
                status = Status.SCORED if observation.time > newest[observation.signal] else Status.LATE
                newest[observation.signal] = max(newest[observation.signal], observation.time)
                self.kept[place] = observation
            outcomes.append(Outcome(observation.signal, observation.time, status))
        if batch.cursor is not None:
            self.cursors[batch.cursor.source] = batch.cursor.position
        self.statuses += [outcome.status for outcome in outcomes]
        return outcomes

    def cursor(self, source: str) -> str | None:
        return self.cursors.get(source)

    def context(self, metrics: Metrics, **more: Any) -> SourceContext:
        """What a source is given that hands over to this."""
        return SourceContext(self.submit, self.cursor, metrics, **more)

    def values(self, signal: str) -> list[float]:
        """The first feature of a signal's observations, by time."""
        return [one.values[0] for (name, _), one in sorted(self.kept.items()) if name == signal]

    @property
    def signals(self) -> set[str]:
        return {name for name, _ in self.kept}

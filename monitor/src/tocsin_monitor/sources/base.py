"""What all sources share: submitting observations, health, and warnings that do not flood the log."""

import asyncio
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass

from tocsin_monitor.errors import Backoff, error_text
from tocsin_monitor.metrics import Metrics, SourceHealth
from tocsin_monitor.observations import Batch, Cursor, Observation, Outcome, Status

#: Submits a batch, and waits while the monitor is too busy. When it returns, the batch is durable.
Submit = Callable[[Batch], Awaitable[list[Outcome]]]
#: The stored position of a source; None if it has none yet.
ReadCursor = Callable[[str], str | None]

MOST_TOGETHER = 2000  # observations in one batch
LONGEST_WAIT = 60.0  # seconds between two attempts
COMPLAIN_EVERY = 60.0  # seconds
MOST_SENDERS = 1000  # with a rate limit of their own

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SourceContext:
    """What the monitor gives to a source."""

    submit: Submit
    cursor: ReadCursor
    metrics: Metrics
    #: The most observations of one batch.
    most: int = MOST_TOGETHER
    #: Topics to which, and below which, this monitor itself publishes.
    own_topics: Set[str] = frozenset()


class Reporter:
    """Keeps the health of something that delivers observations, and logs warnings at a limited rate."""

    def __init__(self, name: str, metrics: Metrics) -> None:
        self.name = name
        self.health = SourceHealth()
        self._errors = metrics.source_errors.labels(source=name)
        #: For each sender: when the last warning was logged, and how many were suppressed since.
        self._complaints: dict[str, tuple[float, int]] = {}

    def _succeeded(self) -> None:
        self.health.last_success = time.time_ns()

    def _failed(self, error: Exception | str) -> None:
        """Report an error; the operation is tried again."""
        text = error if isinstance(error, str) else error_text(error)
        self._note(text)
        _log.warning("source %s: %s", self.name, text)

    def _skipped(self, why: str, count: int = 1, sender: str = "") -> None:
        """Report input that is not an observation and is not tried again."""
        self.health.skipped += count
        self._note(why, count)
        now = time.monotonic()
        last, unsaid = self._complaints.get(sender, (-math.inf, 0))
        if now - last < COMPLAIN_EVERY:
            self._complaints[sender] = last, unsaid + 1
            return
        if len(self._complaints) >= MOST_SENDERS:
            self._complaints.clear()
        self._complaints[sender] = now, 0
        who = f"source {self.name}, sender {sender}" if sender else f"source {self.name}"
        more = f" (and {unsaid} more since the last such message)" if unsaid else ""
        _log.warning("%s: skipped: %s%s", who, why, more)

    def _note(self, text: str, count: int = 1) -> None:
        self.health.last_error, self.health.last_error_time = text, time.time_ns()
        self._errors.inc(count)


class Source(Reporter, ABC):
    """Delivers observations while `run` is running."""

    def __init__(self, name: str, context: SourceContext) -> None:
        super().__init__(name, context.metrics)
        self._submit = context.submit

    async def run(self) -> None:
        """Work until cancelled. Errors are noted in `health`, and the work is tried again."""
        backoff = Backoff(most=LONGEST_WAIT)
        while True:
            try:
                await self._work(backoff)
            except Exception as error:
                # Any error: if a source gave up, its signals would seem to be silent.
                self._failed(error)
                await asyncio.sleep(backoff.failed())

    @abstractmethod
    async def _work(self, backoff: Backoff) -> None:
        """Deliver observations forever; call `backoff.succeeded` after each success."""

    async def _hand_over(
        self, observations: Sequence[Observation], cursor: Cursor | None = None, *, history: bool = False
    ) -> list[Outcome]:
        outcomes = await self._submit(Batch(tuple(observations), cursor, self.name, history=history))
        self.health.received += len(observations)
        self._succeeded()
        for outcome in outcomes:
            if outcome.status in (Status.REFUSED, Status.FUTURE):
                self._skipped(f"{outcome.signal!r}: {outcome.message or outcome.status.name.lower()}")
        return outcomes

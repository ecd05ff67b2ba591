"""What waits for the engine: batches of observations, and what else it is asked for."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tocsin.service.errors import NotReadyError, OverloadedError
from tocsin.service.metrics import Metrics
from tocsin.service.observations import Batch, Outcome

T = TypeVar("T")

# So many observations are taken in one turn; more would let those at its front wait for those at its end.
MOST_AT_ONCE = 10_000


@dataclass(eq=False)
class Waiting:
    """A batch that waits to be durable."""

    batch: Batch
    since: float
    #: What became of its observations so far; None for one that still waits, which is in `batch`.
    outcomes: list[Outcome | None] = field(default_factory=list)
    #: It was among batches of which one could not be scored: it is taken by itself, to find out which one that was.
    alone: bool = False
    #: So many of its observations are taken at once: fewer and fewer, to find out which one the store refuses.
    most: int | None = None
    done: "Future[list[Outcome]]" = field(default_factory=Future)

    @property
    def piece(self) -> Batch:
        """What is to be taken of it now. How far its source has read is stored with the last of it."""
        if self.most is None or len(self.batch.observations) <= self.most:
            return self.batch
        return replace(self.batch, observations=self.batch.observations[: self.most], cursor=None)

    def note(self, results: Sequence[Outcome | None]) -> list[Outcome] | None:
        """Keep what became of the observations in `piece`, of which only those without an outcome go on waiting.

        Returns the outcomes of all, once they are there.
        """
        results = [*results, *[None] * (len(self.batch.observations) - len(results))]
        places = [place for place, outcome in enumerate(self.outcomes) if outcome is None]
        for place, result in zip(places, results, strict=True):
            self.outcomes[place] = result
        left = zip(self.batch.observations, results, strict=True)
        self.batch = replace(self.batch, observations=tuple(one for one, result in left if result is None))
        there = [outcome for outcome in self.outcomes if outcome is not None]
        return there if len(there) == len(self.outcomes) else None


@dataclass(eq=False)
class Command(Generic[T]):
    """Something to do on the engine's thread."""

    call: Callable[[], T]
    done: "Future[T]" = field(default_factory=Future)


class Inbox:
    """Takes batches and commands from any thread while it is open, for one thread that works on them.

    Whatever it took gets an answer: its future ends, however the engine does.
    """

    def __init__(self, most_waiting: int, metrics: Metrics) -> None:
        self._most_waiting, self._metrics = most_waiting, metrics
        self._condition = threading.Condition()
        self._batches: deque[Waiting] = deque()
        self._commands: deque[Command[Any]] = deque()
        #: Observations that wait.
        self.waiting = 0
        #: Whether it takes anything.
        self.open = False
        #: Whether it takes batches, of which those are answered whose signals are rebuilt.
        self.ajar = False
        #: What goes on when it does not.
        self.progress = "starting"
        self.stopping = False

    def submit(self, batch: Batch) -> "Future[list[Outcome]]":
        """Have a batch wait its turn."""
        waiting = Waiting(batch, time.monotonic(), [None] * len(batch.observations))
        with self._condition:
            if not self.ajar:
                self._check_open("takes no observations")
            again = next((one for one in self._batches if batch.key is not None and one.batch.key == batch.key), None)
            if again is not None and len(again.outcomes) == len(batch.observations):
                return again.done
            if self.waiting and self.waiting + len(batch.observations) > self._most_waiting:
                self._metrics.rejected.labels(reason="overloaded").inc()
                raise OverloadedError(retry_after=1.0)
            self._batches.append(waiting)
            self._count(len(batch.observations))
            self._condition.notify_all()
        return waiting.done

    def ask(self, call: Callable[[], T]) -> "Future[T]":
        """Have something done."""
        command = Command(call)
        with self._condition:
            self._check_open("changes nothing")
            self._commands.append(command)
            self._condition.notify_all()
        return command.done

    def _check_open(self, what: str) -> None:
        if not self.open or self.stopping:
            raise NotReadyError(f"the monitor {what} now: {self.progress}")

    def unlock(self) -> None:
        """Take batches and commands from now on."""
        with self._condition:
            self.open, self.ajar, self.progress = True, False, "ready"

    def leave_ajar(self, progress: str) -> None:
        """Take batches while signals are being rebuilt."""
        with self._condition:
            self.ajar, self.progress = not self.stopping, progress

    def lock(self, progress: str) -> None:
        """Take none for a while: batches go on waiting, commands are refused."""
        with self._condition:
            self.open, self.ajar, self.progress = False, False, progress
            commands, self._commands = self._commands, deque()
        for command in commands:
            fail(command.done, NotReadyError(progress))

    def stop(self) -> None:
        """Take nothing any more; the engine ends when nothing waits."""
        with self._condition:
            self.stopping, self.ajar, self.progress = True, False, "stopping"
            self._condition.notify_all()

    def end(self) -> None:
        """Nobody will work on anything any more: who still waits is told so."""
        self.stop()
        self.lock("stopped")
        left = list(self._batches)
        self.drop(left)
        for waiting in left:
            fail(waiting.done, NotReadyError("the monitor stopped before this was stored"))

    def pause(self, seconds: float) -> None:
        """Let time pass, unless it is time to stop."""
        with self._condition:
            self._condition.wait_for(lambda: self.stopping, timeout=seconds)

    def wait(self, seconds: float) -> bool:
        """Wait for something to do; false if there is nothing, and never will be."""
        with self._condition:
            self._condition.wait_for(lambda: self._batches or self._commands or self.stopping, timeout=seconds)
            return bool(self._batches or self._commands or not self.stopping)

    def take_commands(self) -> Sequence[Command[Any]]:
        """The commands that wait now. They leave one by one, so that none is forgotten when one fails."""
        with self._condition:
            return tuple(self._commands)

    def start(self, command: Command[Any]) -> bool:
        """Take a command out; false if nobody wants it done any more."""
        with self._condition:
            self._commands.remove(command)
        return command.done.set_running_or_notify_cancel()

    def next_batches(self, missing: Iterable[str] = ()) -> list[Waiting]:
        """Those that are taken together now. They stay until they are dropped, when they are durable.

        What is for signals that are `missing` goes on waiting, and so does what would overtake it.
        """
        blocked = set(missing)
        with self._condition:
            taken: list[Waiting] = []
            count = 0
            for waiting in self._batches:
                if blocked and not blocked.isdisjoint(names := {one.signal for one in waiting.batch.observations}):
                    blocked |= names
                    continue
                count += len(waiting.batch.observations)
                if taken and count > MOST_AT_ONCE:
                    break
                taken.append(waiting)
                if waiting.alone:  # such are at the front: they were there before what came since
                    break
            return taken

    def drop(self, batches: Sequence[Waiting]) -> None:
        """These need not wait any more."""
        with self._condition:
            for waiting in batches:
                self._batches.remove(waiting)  # which is mostly the first
                self._count(-len(waiting.batch.observations))

    def put_back(self, waiting: Waiting) -> None:
        """What is left of a batch waits once more, behind all others."""
        with self._condition:
            self._batches.append(waiting)
            self._count(len(waiting.batch.observations))

    def _count(self, more: int) -> None:
        self.waiting += more
        self._metrics.waiting_observations.set(self.waiting)


def complete(future: "Future[T]", result: T) -> None:
    """Give a result to who still waits for it."""
    if future.set_running_or_notify_cancel():
        future.set_result(result)


def fail(future: "Future[Any]", error: Exception) -> None:
    """Tell who still waits that it failed."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)

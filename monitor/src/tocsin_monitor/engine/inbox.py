"""The engine's queue: batches of observations, and commands. It recognises repeated requests by their key.

An observation without a time gets the time of its arrival. If its request is repeated, it must get the same time again,
or it would count twice. So the store keeps the times of a request for a day, under the key from its sender.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tocsin_monitor.errors import NotReadyError, OverloadedError
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Cursor, Outcome
from tocsin_monitor.store import Store, StoreReader, StoreWriter

T = TypeVar("T")

# Observations per turn. With more, the first ones would wait too long for the last ones.
MOST_AT_ONCE = 10_000


@dataclass(eq=False)
class Waiting:
    """A batch that waits to be stored."""

    batch: Batch
    since: float
    #: The outcomes so far; None for an observation that still waits, which is in `batch`.
    outcomes: list[Outcome | None] = field(default_factory=list)
    #: One of several batches failed in a turn: it gets a turn of its own, to find out which one.
    alone: bool = False
    #: The most observations to take in one turn: fewer and fewer, to find the one that the store rejects.
    most: int | None = None
    done: "Future[list[Outcome]]" = field(default_factory=Future)

    @property
    def piece(self) -> Batch:
        """The part to take now. Only the last part has the cursor of its source."""
        if self.most is None or len(self.batch.observations) <= self.most:
            return self.batch
        return replace(self.batch, observations=self.batch.observations[: self.most], cursor=None)

    def note(self, results: Sequence[Outcome | None]) -> list[Outcome] | None:
        """Add the results of `piece`. Observations without an outcome keep waiting.

        Returns all outcomes once they are complete.
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
    """A function to run on the engine's thread."""

    call: Callable[[], T]
    done: "Future[T]" = field(default_factory=Future)


class Inbox:
    """Accepts batches and commands from any thread while it is open; one thread processes them.

    Every accepted batch and command gets an answer: its future is completed even if the engine fails.
    """

    def __init__(self, most_waiting: int, metrics: Metrics) -> None:
        self._most_waiting, self._metrics = most_waiting, metrics
        self._condition = threading.Condition()
        self._batches: deque[Waiting] = deque()
        self._commands: deque[Command[Any]] = deque()
        #: The number of waiting observations.
        self.waiting = 0
        #: Whether it accepts batches and commands.
        self.open = False
        #: Whether it accepts batches only, while signals are being rebuilt.
        self.batches_only = False
        #: What the engine is doing while it is not open.
        self.progress = "starting"
        self.stopping = False

    def submit(self, batch: Batch) -> "Future[list[Outcome]]":
        waiting = Waiting(batch, time.monotonic(), [None] * len(batch.observations))
        with self._condition:
            if not self.batches_only:
                self._check_open("accepts no observations")
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
        command = Command(call)
        with self._condition:
            self._check_open("accepts no changes")
            self._commands.append(command)
            self._condition.notify_all()
        return command.done

    def _check_open(self, what: str) -> None:
        if not self.open or self.stopping:
            raise NotReadyError(f"the monitor {what} now: {self.progress}")

    def resume(self) -> None:
        """Accept batches and commands from now on."""
        with self._condition:
            self.open, self.batches_only, self.progress = True, False, "ready"

    def accept_batches(self, progress: str) -> None:
        """Accept batches, but no commands, while signals are being rebuilt."""
        with self._condition:
            self.batches_only, self.progress = not self.stopping, progress

    def suspend(self, progress: str) -> None:
        """Accept nothing for a while: batches keep waiting, commands fail."""
        with self._condition:
            self.open, self.batches_only, self.progress = False, False, progress
            commands, self._commands = self._commands, deque()
        for command in commands:
            fail(command.done, NotReadyError(progress))

    def stop(self) -> None:
        """Accept nothing anymore. The engine stops once nothing waits."""
        with self._condition:
            self.stopping, self.batches_only, self.progress = True, False, "stopping"
            self._condition.notify_all()

    def end(self) -> None:
        """Fail everything that still waits, because the engine has stopped."""
        self.stop()
        self.suspend("stopped")
        left = list(self._batches)
        self.drop(left)
        for waiting in left:
            fail(waiting.done, NotReadyError("the monitor stopped before this was stored"))

    def pause(self, seconds: float) -> None:
        """Sleep, or return at once when it is time to stop."""
        with self._condition:
            self._condition.wait_for(lambda: self.stopping, timeout=seconds)

    def wait(self, seconds: float) -> bool:
        """Wait for something to do; false if nothing waits and it is time to stop."""
        with self._condition:
            self._condition.wait_for(lambda: self._batches or self._commands or self.stopping, timeout=seconds)
            return bool(self._batches or self._commands or not self.stopping)

    @property
    def longest_wait(self) -> float:
        """How many seconds the oldest of the waiting batches has waited."""
        with self._condition:
            return max((time.monotonic() - waiting.since for waiting in self._batches), default=0.0)

    def take_commands(self) -> Sequence[Command[Any]]:
        """The waiting commands. `start` removes them one by one, so that none is lost if one fails."""
        with self._condition:
            return tuple(self._commands)

    def start(self, command: Command[Any]) -> bool:
        """Remove a command from the queue; false if it was cancelled."""
        with self._condition:
            self._commands.remove(command)
        return command.done.set_running_or_notify_cancel()

    def next_batches(self, missing: Iterable[str] = ()) -> list[Waiting]:
        """The batches for the next turn. They stay in the queue until `drop` removes them, once they are stored.

        Batches for signals that are `missing` keep waiting, and so do batches that would overtake them.
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
                if waiting.alone:  # these are at the front, since they came first
                    break
            return taken

    def drop(self, batches: Sequence[Waiting]) -> None:
        with self._condition:
            for waiting in batches:
                self._batches.remove(waiting)  # usually the first
                self._count(-len(waiting.batch.observations))

    def put_back(self, waiting: Waiting) -> None:
        """Queue the rest of a batch again, behind all others."""
        with self._condition:
            self._batches.append(waiting)
            self._count(len(waiting.batch.observations))

    def _count(self, more: int) -> None:
        self.waiting += more
        self._metrics.waiting_observations.set(self.waiting)


def complete(future: "Future[T]", result: T) -> None:
    """Set the result, unless the future was cancelled."""
    if future.set_running_or_notify_cancel():
        future.set_result(result)


def fail(future: "Future[Any]", error: Exception) -> None:
    """Set the error, unless the future was cancelled."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)


_DAY = 86400 * 10**9


def recalled(store: Store, batch: Batch, now: int) -> Batch:
    """The batch with the times from its first request, if it is a repeated one."""
    if batch.key is None or batch.request is not None or all(one.time is not None for one in batch.observations):
        return batch
    with store.reading() as reader:
        found = _found(reader, batch.key, now)
    times = [] if found is None else json.loads(found.position)
    if len(times) != len(batch.observations):
        return batch
    pairs = zip(batch.observations, times, strict=True)
    return replace(batch, observations=tuple(replace(one, time=time) for one, time in pairs), request=found)


def noted(batch: Batch, now: int) -> Batch:
    """The batch with its times as a record to store under its key. All observations must have a time."""
    if batch.key is None or batch.request is not None:
        return batch
    times = json.dumps([one.time for one in batch.observations])
    return replace(batch, request=Cursor(_name(batch.key, now), times))


def forget_requests(writer: StoreWriter, now: int) -> None:
    """Remove records that are older than a day."""
    writer.remove_cursors(_name("", 0), _name("", now - _DAY))


def _found(reader: StoreReader, key: str, now: int) -> Cursor | None:
    for day in (now, now - _DAY):
        name = _name(key, day)
        position = reader.cursor(name)
        if position is not None:
            return Cursor(name, position)
    return None


def _name(key: str, now: int) -> str:
    return f"request/{now // _DAY:06d}/{key}"

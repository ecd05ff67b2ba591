"""Imported history that is not judged yet.

The list is stored together with the imported observations, so it survives a crash.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tocsin_monitor.engine.signals import MonitoredSignal
from tocsin_monitor.engine.stages import Received
from tocsin_monitor.fields import Shown
from tocsin_monitor.store import StoreReader, StoreWriter

_PREFIX = "import/"
# History arrives in pieces. It is judged once nothing has arrived for this many seconds.
QUIET = 1.0
# While a file is being stored, so many signals are learned together, or one that has waited for so many seconds.
COMPANY = 4
LONGEST_ALONE = 10.0
# The most results to remember.
MOST_RESULTS = 1000

Stage = Literal["storing", "waiting", "learning", "done", "failed"]


@dataclass(frozen=True)
class Span:
    """The times of the first and the last observation of a signal that wait to be judged."""

    first: int
    last: int


@dataclass(frozen=True)
class Progress:
    """How much of a signal's imported history is stored, and then judged."""

    signal: str
    stage: Stage
    done: Annotated[
        int, Shown("Observations stored so far; once it is learned, those judged, including earlier ones.")
    ] = 0
    total: int = 0
    incidents: Annotated[int, Shown("Past incidents found.")] = 0
    message: Annotated[str | None, Shown("Why it failed.")] = None


class PendingImports:
    """The spans that wait, by signal id, and the progress of all imports since the start.

    The engine's thread changes it; any thread may read it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By signal id: the signal's name, the span, and since when nothing more of it has arrived.
        self._waiting: dict[int, tuple[str, Span, float]] = {}
        self._progress: OrderedDict[str, Progress] = OrderedDict()
        #: What is being stored, by the signal's name, for each file that is being imported.
        self._storing: list[dict[str, Progress]] = []

    def __contains__(self, number: object) -> bool:
        return number in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def recover(self, reader: StoreReader, signals: Iterable[MonitoredSignal]) -> None:
        """Read the waiting spans from the store again."""
        by_id = {signal.row.id: signal for signal in signals}
        found = {int(name.removeprefix(_PREFIX)): text for name, text in reader.cursors(_PREFIX).items()}
        with self._lock:
            self._waiting = {}
            for number, text in found.items():
                if number in by_id:
                    self._note(by_id[number], Span(*json.loads(text)), since=0.0)
        for number in self._waiting:
            # An incident that its detector found while it was rebuilt belongs to the history: nobody is notified.
            signal = by_id[number]
            if signal.alarm_incident is None:
                signal.block.fleet.forget_incidents(signal.place)

    def put(self, writer: StoreWriter, past: Sequence[Received]) -> None:
        """Store that these observations wait, in the transaction that stores them."""
        for signal, span in self._grown(past).items():
            writer.put_cursor(f"{_PREFIX}{signal.row.id}", json.dumps([span.first, span.last]))

    def note(self, past: Sequence[Received]) -> None:
        """Remember that these observations wait, after they are stored."""
        grown = self._grown(past)
        with self._lock:
            for signal, span in grown.items():
                self._note(signal, span, since=time.monotonic())

    def _note(self, signal: MonitoredSignal, span: Span, since: float) -> None:
        self._waiting[signal.row.id] = signal.name, span, since
        self._remember(Progress(signal.name, "waiting"))

    def _grown(self, past: Sequence[Received]) -> dict[MonitoredSignal, Span]:
        times: dict[MonitoredSignal, list[int]] = {}
        for one in past:
            if isinstance(one.signal, MonitoredSignal):
                times.setdefault(one.signal, []).append(one.time)
        for signal, some in times.items():
            if (span := self.span(signal.row.id)) is not None:
                some += span.first, span.last
        return {signal: Span(min(some), max(some)) for signal, some in times.items()}

    def span(self, number: int) -> Span | None:
        """The waiting span of a signal."""
        return self._waiting[number][1] if number in self._waiting else None

    def due(self, learning: Collection[str] = ()) -> dict[str, Span]:
        """The signals whose history has arrived, with their waiting spans, except those that are being learned.

        While a file is being stored, one waits a little for others, because several are learned faster together.
        """
        now = time.monotonic()
        with self._lock:
            found = [(name, span, since) for name, span, since in self._waiting.values() if since <= now - QUIET]
            found = [one for one in found if one[0] not in learning]
            few = self._storing and len(found) < COMPANY
            if few and all(since > now - LONGEST_ALONE for *_, since in found):
                return {}
            return {name: span for name, span, _ in found}

    @property
    def arriving(self) -> bool:
        """Whether a file is being stored, so that more signals may become due."""
        return bool(self._storing)

    def end(self, writer: StoreWriter, number: int) -> None:
        """Store that nothing of this signal waits anymore."""
        writer.remove_cursor(f"{_PREFIX}{number}")

    def forget(self, number: int) -> None:
        """Forget the waiting span of a signal, for good or until the next start."""
        with self._lock:
            self._waiting.pop(number, None)

    def tell(self, progress: Progress) -> None:
        """Remember the progress of an import."""
        with self._lock:
            self._remember(progress)

    def fail(self, signal: str, message: str) -> None:
        """Remember that an import cannot be judged. The next start tries again."""
        for number in [number for number, (name, *_) in self._waiting.items() if name == signal]:
            self.forget(number)
        self.tell(replace(self.progress(signal) or Progress(signal, "failed"), stage="failed", message=message))

    def _remember(self, progress: Progress) -> None:
        self._progress.pop(progress.signal, None)
        self._progress[progress.signal] = progress
        while len(self._progress) > MOST_RESULTS:
            self._progress.popitem(last=False)

    @contextmanager
    def storing(self, totals: Mapping[str, int]) -> Iterator[Callable[[str, int], None]]:
        """For the time in which a file is stored, with so many observations of each signal; from any thread.

        Yields the function to call with a signal and how many more of its observations are stored.
        """
        file = {name: Progress(name, "storing", 0, total) for name, total in totals.items()}
        with self._lock:
            self._storing.append(file)

        def stored(name: str, more: int) -> None:
            with self._lock:
                one = replace(file[name], done=file[name].done + more)
                file[name] = one

        try:
            yield stored
        finally:
            with self._lock:
                self._storing = [one for one in self._storing if one is not file]

    def progress(self, signal: str) -> Progress | None:
        """The progress of a signal's import; None if there was none since the start."""
        with self._lock:
            return self._progress.get(signal)

    def all_progress(self) -> list[Progress]:
        """The progress of all imports, newest first."""
        with self._lock:
            found = {one.signal: one for one in reversed(self._progress.values())}
            storing = {name: one for file in self._storing for name, one in file.items() if one.done < one.total}
            return list((storing | {name: one for name, one in found.items() if name not in storing}).values())

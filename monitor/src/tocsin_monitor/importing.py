"""History files: turns a file that `tocsin detect` can read into observations."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.data import DataError, ProblemLog, Signal, Signals, Timeline, merge_problems, read_signals, resample
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import MOST_FEATURES, Observation, check_name

#: In the name of a signal, this stands for its id in the file.
PLACEHOLDER = "{name}"
# Observations per batch: storing them takes a fraction of a second.
PIECE = 5000


class HistoryFile:
    """A history file: its signals with their names in the monitor, and how it was read."""

    def __init__(self, signals: Signals, label: str, pattern: str) -> None:
        self._signals, self._label = signals, label
        if len(signals) > 1 and PLACEHOLDER not in pattern:
            raise RefusedError(
                f"{label} has {len(signals)} signals: signal must contain {PLACEHOLDER}, which stands for the id of "
                f"each of them, got {pattern!r}"
            )
        self._pattern = pattern
        #: The names of its signals, in the order of the file.
        self.names = [self._checked(signal) for signal in signals]

    def _checked(self, signal: Signal) -> str:
        """The name of a signal; RefusedError if its history cannot be imported."""
        name = self._pattern.replace(PLACEHOLDER, signal.name)
        if signal.times is None or signal.times.dtype.kind != "M":
            found = "none" if signal.times is None else "numbers"
            raise RefusedError(
                f"{self._label}: history needs times, and {signal.name!r} has {found}: set time to their column"
            )
        if len(signal.features) > MOST_FEATURES:
            raise RefusedError(
                f"{self._label}: a signal has at most {MOST_FEATURES} features, got {len(signal.features)}: choose "
                "some of them with value, or make each a signal with separate"
            )
        try:
            return check_name(name)
        except ValueError as error:
            raise RefusedError(f"{self._label}: {error}") from None

    @property
    def counts(self) -> dict[str, int]:
        """The number of observations of each signal, or more if the monitor aggregates it."""
        return {name: int(np.count_nonzero(one.lines)) for name, one in zip(self.names, self._signals, strict=True)}

    @property
    def understood(self) -> str:
        """How the file was read, in one line."""
        return str(self._signals.summary)

    @property
    def problems(self) -> list[str]:
        found = [*self._signals.problems, *(problem for signal in self._signals for problem in signal.problems)]
        return [str(problem) for problem in merge_problems(found)]

    def pieces(self, together: Callable[[str], tuple[float, str] | None]) -> Iterator[list[Observation]]:
        """All observations, signal by signal and by time, in pieces of one signal each.

        `together` gives, by a signal's name, the interval in seconds and the method by which it aggregates.
        """
        for name, signal in zip(self.names, self._signals, strict=True):
            there = np.flatnonzero(signal.lines)  # without rows that were inserted for gaps
            moments = np.asarray(signal.times).astype("datetime64[ns]")
            read = Timeline(moments, signal.values, signal.lines).of(there)
            if (by := together(name)) is not None:
                read = resample(read, np.timedelta64(round(by[0] * 1e9), "ns"), by[1], ProblemLog())
            times, values = read.times.astype(np.int64).tolist(), read.values.tolist()
            features = signal.features if len(signal.features) > 1 else None
            for first in range(0, len(times), PIECE):
                some = zip(times[first : first + PIECE], values[first : first + PIECE], strict=True)
                yield [Observation(name, time, tuple(row), features) for time, row in some]


@contextmanager
def opened_history(path: Path, pattern: str, reading: Mapping[str, Any]) -> Iterator[HistoryFile]:
    """Read a file with the options `reading` of `read_signals`; RefusedError says what is wrong with it."""
    # Messages use the file's own name, not that of the temporary copy.
    renamed: Callable[[object], str] = lambda message: str(message).replace(str(path), path.name)  # noqa: E731
    try:
        signals = read_signals(path, **reading)
    except (DataError, TypeError, ValueError, OSError, ImportError, MemoryError) as error:
        raise RefusedError(renamed(error)) from error
    with signals:
        try:
            yield HistoryFile(signals, path.name, pattern)
        except DataError as error:
            raise RefusedError(renamed(error)) from error

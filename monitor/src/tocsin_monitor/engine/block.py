"""Blocks of signals that are judged together, which signal is in which, and how much memory they may use."""

import json
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import DetectorSettings, Fleet, Incident, Verdicts, memory_bytes, named_forecasters, working_bytes
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin_monitor.errors import RefusedError, refusing
from tocsin_monitor.observations import StoredVerdict, VerdictColumns

# Signals per call of the forecaster and the scorer. More would gain little speed and reserve unused memory.
ROWS = 64
# Observations of each signal per call. The limit keeps memory small.
MOST_STEPS = 256


@dataclass(frozen=True, slots=True)
class DetectorInput:
    """Consecutive observations of one signal: `values[T, F]` at `times[T]`.

    `wanted` lists, in ascending order, the positions that need a verdict; the detector only learns from the others.
    `kept_forecasts` holds the forecasts made after each observation, `[T, F, width]`, if they were stored.
    """

    values: NDArray[np.float64]
    times: NDArray[np.datetime64]
    wanted: Sequence[int] = ()
    kept_forecasts: NDArray[np.float64] | None = None
    #: The unit of its values, in which incidents are explained.
    unit: str = ""

    def split(self, kept_forecasts: NDArray[np.float64]) -> "tuple[DetectorInput, DetectorInput]":
        """The observations with a stored forecast, and the others. Neither part asks for verdicts."""
        at = len(kept_forecasts)
        return DetectorInput(self.values[:at], self.times[:at], (), kept_forecasts, self.unit), DetectorInput(
            self.values[at:], self.times[at:], unit=self.unit
        )


@dataclass(slots=True)
class DetectorOutput:
    """The verdicts that the input asked for, and the forecasts, `[T, F, width]`.

    The forecasts, of all forecasters, are None if these are fast enough to make them again.
    """

    judged: list[StoredVerdict]
    kept_forecasts: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """Observations of some rows that are judged in one call, which of each row are wanted, and the forecasts."""

    rows: Sequence[int]
    verdicts: Verdicts
    wanted: Sequence[Sequence[int]]
    forecasts: Sequence[NDArray[np.float64]]


class SignalBlock:
    """A fleet whose rows are assigned to signals with the same settings."""

    def __init__(self, settings: DetectorSettings, rows: int = ROWS) -> None:
        # The fleet names its rows by number, because signals come and go and may have any names.
        self.fleet = Fleet.of([str(row) for row in range(rows)], settings)
        self.rows = rows
        self._free = list(reversed(range(rows)))
        self._used: set[int] = set()
        self._slow = any(forecaster.slow for forecaster in settings.chosen_forecasters)

    @property
    def full(self) -> bool:
        return not self._free

    @property
    def empty(self) -> bool:
        return len(self._free) == self.rows

    def take(self, state: Mapping[str, NDArray[Any]] | None) -> int:
        """Assign a row, with a detector in this state (None: a new one); ValueError if it has other settings."""
        row = self._free[-1]
        if state is not None or row in self._used:
            self.fleet.put(row, state)
        self._used.add(row)
        return self._free.pop()

    def take_all(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> list[int]:
        """Assign rows with detectors in these states; ValueError, and no row, if other settings made one of them."""
        rows = self._free[-len(states) :][::-1]
        self.fleet.put_all(rows, states)
        self._used.update(rows)
        del self._free[-len(states) :]
        return rows

    def release(self, row: int) -> None:
        self._free.append(row)

    def take_closed(self) -> list[tuple[int, Incident]]:
        """The incidents that ended since the last call, each with its row, oldest first."""
        return [(int(incident.signal), incident) for incident in self.fleet.take_closed_incidents()]

    def accept(self, row: int) -> Incident:
        """Close the open incident of this row as a false alarm, and learn its observations as normal."""
        self.fleet.accept(row)
        ((_, incident),) = self.take_closed()
        return incident

    def run(self, inputs: Mapping[int, DetectorInput]) -> dict[int, DetectorOutput]:
        """Feed observations to the detectors of these rows. Either all inputs have stored forecasts, or none has."""
        judged: dict[int, list[StoredVerdict]] = {row: [] for row in inputs}
        noted: dict[int, list[NDArray[np.float64]]] = {row: [] for row in inputs}
        for step in self._steps(inputs):
            for column, row in enumerate(step.rows):
                noted[row] += [part[:, column] for part in step.forecasts]
            wanted = {column: some for column, some in enumerate(step.wanted) if some}
            for column, verdicts in _columns(step.verdicts, wanted).items():
                judged[step.rows[column]] += verdicts
        return {row: DetectorOutput(judged[row], np.concatenate(noted[row]) if noted[row] else None) for row in inputs}

    def run_columns(self, inputs: Mapping[int, DetectorInput]) -> dict[int, VerdictColumns]:
        """The same for long histories: the wanted verdicts as columns, without an object for each."""
        judged: dict[int, list[VerdictColumns]] = {row: [] for row in inputs}
        for step in self._steps(inputs):
            for column, row in enumerate(step.rows):
                judged[row].append(VerdictColumns.of(step.verdicts, step.wanted[column], column))
        return {row: VerdictColumns.joined(parts) for row, parts in judged.items() if parts}

    def _steps(self, inputs: Mapping[int, DetectorInput]) -> Iterator[_Step]:
        for row, given in inputs.items():
            self.fleet.units[row] = given.unit
        left = sorted(row for row, one in inputs.items() if len(one.times))
        at = 0
        while left:
            end = min(at + MOST_STEPS, *(len(inputs[row].times) for row in left))
            values = np.stack([inputs[row].values[at:end] for row in left], axis=1)
            times = np.stack([inputs[row].times[at:end] for row in left], axis=1)
            rows = None if len(left) == self.rows else np.array(left)
            known = [one for row in left if (one := inputs[row].kept_forecasts) is not None]
            kept_forecasts = np.stack([one[at:end] for one in known], axis=1) if known else None
            said: list[NDArray[np.float64]] = []
            on_forecast = said.append if self._slow and kept_forecasts is None else None
            verdicts = self.fleet.run_arrays(
                values, rows=rows, times=times, kept_forecasts=kept_forecasts, on_forecast=on_forecast
            )
            wanted = []
            for row in left:
                every = inputs[row].wanted
                wanted.append([step - at for step in every[bisect_left(every, at) : bisect_left(every, end)]])
            yield _Step(left, verdicts, wanted, said)
            at = end
            left = [row for row in left if len(inputs[row].times) > at]


def _columns(verdicts: Verdicts, wanted: Mapping[int, Sequence[int]]) -> dict[int, list[StoredVerdict]]:
    """The verdicts of some columns at some steps, in the form to store."""
    if not wanted:
        return {}
    value, forecast, low, high, feature_p, p, merged, alarm, warm = (
        array.tolist()
        for array in (
            verdicts.value, verdicts.forecast, verdicts.low, verdicts.high, verdicts.feature_p, verdicts.p,
            verdicts.merged, verdicts.alarm, verdicts.warm,
        )
    )  # fmt: skip
    return {
        n: [
            StoredVerdict(
                tuple(value[t][n]), tuple(forecast[t][n]), tuple(low[t][n]), tuple(high[t][n]), p[t][n], merged[t][n],
                tuple(feature_p[t][n]), alarm[t][n], warm[t][n],
            )
            for t in steps
        ]
        for n, steps in wanted.items()
    }  # fmt: skip


Arrays = Mapping[str, NDArray[Any]]

# The first block for some settings has this many rows, and each further block as many as all before it: a single signal
# should not reserve memory for 64.
FEWEST_ROWS = 8
# Blocks of large signals have fewer rows, so that no block takes more than this.
BLOCK_BYTES = 64 * 2**20
IMPOSSIBLE = "there can be no detector with these settings"


class Allocation:
    """Blocks of signals with the same settings and features, created when needed and dropped when empty.

    A signal may use at most `most_of_signal` bytes, and all blocks together at most `most`. Requests beyond that are
    refused before anything is created.
    """

    def __init__(self, most_of_signal: int, most: int) -> None:
        self._most_of_signal, self._most = most_of_signal, most
        self._groups: dict[str, list[SignalBlock]] = {}
        self._keys: dict[SignalBlock, str] = {}
        self._lock = threading.RLock()
        self._forecasters: WeakValueDictionary[str, Forecaster] = WeakValueDictionary()
        self._sizes = lru_cache(maxsize=1000)(self._find_sizes)
        #: The memory of all blocks.
        self.bytes = 0

    @property
    def blocks(self) -> list[SignalBlock]:
        return [block for group in self._groups.values() for block in group]

    def take(
        self, features: tuple[str, ...], settings: Mapping[str, Any], state: Arrays | None = None
    ) -> tuple[SignalBlock, int]:
        """Assign a place to a signal whose detector has this state (None: a new one).

        ValueError if the settings do not fit the state; RefusedError if they are invalid or memory does not suffice.
        """
        key = _key(features, settings)
        # Search from the end: earlier blocks are full, unless signals were removed.
        block = next((block for block in reversed(self._groups.get(key, ())) if not block.full), None)
        if block is not None:
            return block, block.take(state)
        there = sum(block.rows for block in self._groups.get(key, ()))
        block = self.make(features, settings, there)
        try:
            place = block.take(state)
        except BaseException:
            self.drop(block)
            raise
        self.enter(block)
        return block, place

    def make(self, features: tuple[str, ...], settings: Mapping[str, Any], signals: int) -> SignalBlock:
        """Create a block for this many signals, or for fewer if they are large; from any thread.

        `take` uses it only after `enter`.
        """
        key = _key(features, settings)
        with self._lock, refusing(IMPOSSIBLE):
            kept, working = self._sizes(key)
            rows = max(1, min(max(signals, FEWEST_ROWS), ROWS, BLOCK_BYTES // (kept + working)))
            self._check(kept, working, rows)
            self.bytes += rows * kept
        try:
            with refusing(IMPOSSIBLE):
                block = SignalBlock(self.settings(features, settings), rows)
        except BaseException as error:
            with self._lock:
                self.bytes -= rows * kept
            if isinstance(error, MemoryError):
                raise RefusedError(f"this machine lacks the {_size(rows * kept)} of memory for a detector") from error
            raise
        self._keys[block] = key
        return block

    def alone(self, features: tuple[str, ...], settings: Mapping[str, Any], signals: int = 1) -> SignalBlock:
        """Create a block for this many signals that learn anew, or for fewer if they are large.

        The signals get their places afterwards.
        """
        with self._lock, refusing(IMPOSSIBLE):
            kept, working = self._sizes(_key(features, settings))
            rows = max(1, min(signals, BLOCK_BYTES // (kept + working)))
            self._check(kept, working, rows)
            return SignalBlock(self.settings(features, settings), rows)

    def enter(self, block: SignalBlock) -> None:
        """Let `take` use a block that was created with `make`."""
        self._groups.setdefault(self._keys[block], []).append(block)

    def drop(self, block: SignalBlock) -> None:
        with self._lock:
            key = self._keys.pop(block)
            self.bytes -= block.rows * self._sizes(key)[0]

    def release(self, block: SignalBlock, place: int) -> None:
        """Free a place, and drop its block if that is empty."""
        block.release(place)
        if block.empty:
            key = self._keys[block]
            self._groups[key].remove(block)
            if not self._groups[key]:
                del self._groups[key]
            self.drop(block)

    def settings(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> DetectorSettings:
        """The settings of a detector. Detectors with the same choice share forecasters, because a model is large."""
        shared = tuple(self._forecaster(*named) for named in named_forecasters(settings)) or None
        return DetectorSettings(list(features), **{**settings, "forecaster": shared, "forecaster_options": None})

    def _check(self, kept: int, working: int, rows: int) -> None:
        """Refuse a block that would exceed a memory limit."""
        if kept + working > self._most_of_signal:
            raise RefusedError(
                f"a detector with these settings needs {_size(kept + working)} of memory, but engine.max_signal_bytes "
                f"allows {_size(self._most_of_signal)}"
            )
        if self.bytes + rows * kept > self._most:
            raise RefusedError(
                f"a detector with these settings needs {_size(rows * kept)} more memory, all others use "
                f"{_size(self.bytes)}, and engine.max_detector_bytes allows {_size(self._most)}"
            )

    def _find_sizes(self, key: str) -> tuple[int, int]:
        """The bytes that one signal with these features and settings needs: always, and in addition while judged."""
        features, settings = json.loads(key)
        made = self.settings(tuple(features), settings)
        return memory_bytes(made), working_bytes(made)

    def _forecaster(self, name: str, options: Mapping[str, Any]) -> Forecaster:
        key = json.dumps([name, options], sort_keys=True)
        with self._lock:
            forecaster = self._forecasters.get(key)
            if forecaster is None:
                forecaster = self._forecasters[key] = make_forecaster(name, options)
            return forecaster


def _key(features: tuple[str, ...], settings: Mapping[str, Any]) -> str:
    return json.dumps([features, settings], sort_keys=True)


def _size(size: int) -> str:
    return f"{size / 2**20:.1f} MB"

"""Assigns signals to blocks, and limits the memory they use."""

import json
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from tocsin.detection import DetectorSettings
from tocsin.detection.memory import memory_bytes, working_bytes
from tocsin.detection.presets import named_forecasters
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.service.engine.block import ROWS, SignalBlock
from tocsin.service.errors import RefusedError

Arrays = Mapping[str, NDArray[Any]]

# The first block for some settings has this many rows, and each further block as many as all before it: a single signal
# should not reserve memory for 64.
FEWEST_ROWS = 8
# Blocks of large signals have fewer rows, so that no block takes more than this.
BLOCK_BYTES = 64 * 2**20


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
        """All blocks."""
        return [block for group in self._groups.values() for block in group]

    def take(
        self, features: tuple[str, ...], settings: Mapping[str, Any], state: Arrays | None = None
    ) -> tuple[SignalBlock, int]:
        """Assign a place to a signal whose detector has this state (None: a new one).

        ValueError if the settings are invalid or do not fit the state; RefusedError if memory does not suffice.
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
        with self._lock:
            kept, working = self._sizes(key)
            rows = max(1, min(max(signals, FEWEST_ROWS), ROWS, BLOCK_BYTES // (kept + working)))
            self._check(kept, working, rows)
            self.bytes += rows * kept
        try:
            block = SignalBlock(self.settings(features, settings), rows)
        except BaseException as error:
            with self._lock:
                self.bytes -= rows * kept
            if isinstance(error, MemoryError):
                raise RefusedError(f"this machine lacks the {_size(rows * kept)} of memory for a detector") from error
            raise
        self._keys[block] = key
        return block

    def alone(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> SignalBlock:
        """Create a block for one signal that learns anew. The signal gets its place afterwards."""
        with self._lock:
            self._check(*self._sizes(_key(features, settings)), rows=1)
        return SignalBlock(self.settings(features, settings), rows=1)

    def enter(self, block: SignalBlock) -> None:
        """Let `take` use a block that was created with `make`."""
        self._groups.setdefault(self._keys[block], []).append(block)

    def drop(self, block: SignalBlock) -> None:
        """Drop a block."""
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
        """The settings of a detector, with forecasters that all detectors with the same choice share."""
        shared = {"forecaster": self._shared_forecasters(settings), "forecaster_options": None}
        return DetectorSettings(list(features), **{**settings, **shared})

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

    def _shared_forecasters(self, settings: Mapping[str, Any]) -> tuple[Forecaster, ...] | None:
        """The forecasters for these settings. Signals with the same choice share them, because a model is large."""
        return tuple(self._forecaster(*named) for named in named_forecasters(settings)) or None

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

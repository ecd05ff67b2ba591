"""Which signal is scored in which block, and how much memory that takes."""

import json
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from tocsin.detection import DetectorSettings
from tocsin.detection.memory import memory_bytes, working_bytes
from tocsin.detection.presets import named_forecaster
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.service.engine.block import ROWS, SignalBlock
from tocsin.service.errors import RefusedError

Arrays = Mapping[str, NDArray[Any]]

# The first block of some settings has so many rows, and each further one as many as there are already: settings that
# only one signal has should not take the room of sixty-four.
FEWEST_ROWS = 8
# Signals so large that a block of many would take more have a block of fewer.
BLOCK_BYTES = 64 * 2**20


class Allocation:
    """Blocks of signals that share settings and features, made as they are needed and gone when they are not.

    No signal takes more than `most_of_signal` bytes, and all blocks together no more than `most`: who asks for more is
    refused before anything is made.
    """

    def __init__(self, most_of_signal: int, most: int) -> None:
        self._most_of_signal, self._most = most_of_signal, most
        self._groups: dict[str, list[SignalBlock]] = {}
        self._keys: dict[SignalBlock, str] = {}
        self._lock = threading.RLock()
        self._forecasters: WeakValueDictionary[str, Forecaster] = WeakValueDictionary()
        self._sizes = lru_cache(maxsize=1000)(self._find_sizes)
        #: What all blocks take together.
        self.bytes = 0

    @property
    def blocks(self) -> list[SignalBlock]:
        """All blocks."""
        return [block for group in self._groups.values() for block in group]

    def take(
        self, features: tuple[str, ...], settings: Mapping[str, Any], state: Arrays | None = None
    ) -> tuple[SignalBlock, int]:
        """A place for a signal whose detector has this state (None: a fresh one).

        ValueError for bad settings, or for a state of a detector with others; RefusedError for want of memory.
        """
        key = _key(features, settings)
        # What has room is at the end, but for what others left.
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
        """A block with room for so many signals, or for fewer where they are large; from any thread.

        Nobody is given a place in it before it is entered.
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
                raise RefusedError(f"this machine has no {_told(rows * kept)} of memory for a detector") from error
            raise
        self._keys[block] = key
        return block

    def alone(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> SignalBlock:
        """A block for one signal that learns anew, and gets a place afterwards."""
        with self._lock:
            self._check(*self._sizes(_key(features, settings)), rows=1)
        return SignalBlock(self.settings(features, settings), rows=1)

    def enter(self, block: SignalBlock) -> None:
        """Let signals have places in a block that was made."""
        self._groups.setdefault(self._keys[block], []).append(block)

    def drop(self, block: SignalBlock) -> None:
        """Let go of a block."""
        with self._lock:
            key = self._keys.pop(block)
            self.bytes -= block.rows * self._sizes(key)[0]

    def release(self, block: SignalBlock, place: int) -> None:
        """Give a place back; a block that nobody is in goes."""
        block.release(place)
        if block.empty:
            key = self._keys[block]
            self._groups[key].remove(block)
            if not self._groups[key]:
                del self._groups[key]
            self.drop(block)

    def settings(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> DetectorSettings:
        """The settings of a detector, with a forecaster that it shares with others."""
        shared = {"forecaster": self._forecaster(settings), "forecaster_options": None}
        return DetectorSettings(list(features), **{**settings, **shared})

    def _check(self, kept: int, working: int, rows: int) -> None:
        """Refuse a block for which there is no room."""
        if kept + working > self._most_of_signal:
            raise RefusedError(
                f"a detector with these settings takes {_told(kept + working)} of memory, and engine.max_signal_bytes "
                f"allows {_told(self._most_of_signal)}"
            )
        if self.bytes + rows * kept > self._most:
            raise RefusedError(
                f"a detector with these settings takes {_told(rows * kept)} more memory, all others take "
                f"{_told(self.bytes)} already, and engine.max_detector_bytes allows {_told(self._most)}"
            )

    def _find_sizes(self, key: str) -> tuple[int, int]:
        """What one signal with these features and settings takes: all the time, and while it is judged."""
        features, settings = json.loads(key)
        made = self.settings(tuple(features), settings)
        return memory_bytes(made), working_bytes(made)

    def _forecaster(self, settings: Mapping[str, Any]) -> Forecaster | None:
        """The forecaster of these settings: one for all signals that ask for the same, since a model is large."""
        named = named_forecaster(settings)
        if named is None:
            return None
        key = json.dumps(named, sort_keys=True)
        with self._lock:
            forecaster = self._forecasters.get(key)
            if forecaster is None:
                forecaster = self._forecasters[key] = make_forecaster(*named)
            return forecaster


def _key(features: tuple[str, ...], settings: Mapping[str, Any]) -> str:
    return json.dumps([features, settings], sort_keys=True)


def _told(size: int) -> str:
    return f"{size / 2**20:.1f} MB"

"""Which signal is scored in which block, and how much memory that takes."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from tocsin.detection import DetectorSettings
from tocsin.detection.memory import memory_bytes, working_bytes
from tocsin.detection.presets import named_forecaster
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.service.engine.block import ROWS, Block
from tocsin.service.errors import RefusedError

Arrays = Mapping[str, NDArray[Any]]

# The first block of some settings has so many rows, and each further one as many as there are already: settings that
# only one signal has should not take the room of sixty-four.
FEWEST_ROWS = 8
# Signals so large that a block of many would take more have a block of fewer.
BLOCK_BYTES = 64 * 2**20


class Places:
    """Blocks of signals that share settings and features, made as they are needed and gone when they are not.

    No signal takes more than `most_of_signal` bytes, and all blocks together no more than `most`: who asks for more is
    refused before anything is made.
    """

    def __init__(self, most_of_signal: int, most: int) -> None:
        self._most_of_signal, self._most = most_of_signal, most
        self._groups: dict[str, list[Block]] = {}
        self._forecasters: WeakValueDictionary[str, Forecaster] = WeakValueDictionary()
        self._sizes = lru_cache(maxsize=1000)(self._find_sizes)
        #: What all blocks take together.
        self.bytes = 0

    @property
    def blocks(self) -> list[Block]:
        """All blocks."""
        return [block for group in self._groups.values() for block in group]

    def take(
        self, features: tuple[str, ...], settings: Mapping[str, Any], state: Arrays | None = None
    ) -> tuple[Block, int]:
        """A place for a signal whose detector has this state (None: a fresh one).

        ValueError for bad settings, or for a state of a detector with others; RefusedError for want of memory.
        """
        key = _key(features, settings)
        # What has room is at the end, but for what others left.
        block = next((block for block in reversed(self._groups.get(key, ())) if not block.full), None)
        if block is not None:
            return block, block.take(state)
        block = self._make(key)
        place = block.take(state)
        self._groups.setdefault(key, []).append(block)
        self.bytes += self._bytes_of(key, block)
        return block, place

    def alone(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> Block:
        """A block for one signal that is only tried, or learns anew, and then gets a place."""
        return self._make(_key(features, settings), rows=1)

    def release(self, block: Block, place: int) -> None:
        """Give a place back; a block that nobody is in goes."""
        block.release(place)
        if block.empty:
            key = next(key for key, group in self._groups.items() if block in group)
            self.bytes -= self._bytes_of(key, block)
            self._groups[key].remove(block)
            if not self._groups[key]:
                del self._groups[key]

    def settings(self, features: tuple[str, ...], settings: Mapping[str, Any]) -> DetectorSettings:
        """The settings of a detector, with a forecaster that it shares with others."""
        shared = {"forecaster": self._forecaster(settings), "forecaster_options": None}
        return DetectorSettings(list(features), **{**settings, **shared})

    def _make(self, key: str, rows: int | None = None) -> Block:
        kept, working = self._sizes(key)
        if kept + working > self._most_of_signal:
            raise RefusedError(
                f"a detector with these settings takes {_told(kept + working)} of memory, and engine.max_signal_bytes "
                f"allows {_told(self._most_of_signal)}"
            )
        if rows is None:
            there = sum(len(block.fleet.names) for block in self._groups.get(key, ()))
            rows = max(1, min(max(there, FEWEST_ROWS), ROWS, BLOCK_BYTES // (kept + working)))
        if self.bytes + rows * kept > self._most:
            raise RefusedError(
                f"a detector with these settings takes {_told(rows * kept)} more memory, all others take "
                f"{_told(self.bytes)} already, and engine.max_detector_bytes allows {_told(self._most)}"
            )
        features, settings = json.loads(key)
        try:
            return Block(self.settings(tuple(features), settings), rows)
        except MemoryError as error:
            raise RefusedError(f"this machine has no {_told(rows * kept)} of memory for a detector") from error

    def _find_sizes(self, key: str) -> tuple[int, int]:
        """What one signal with these features and settings takes: all the time, and while it is judged."""
        features, settings = json.loads(key)
        made = self.settings(tuple(features), settings)
        return memory_bytes(made), working_bytes(made)

    def _bytes_of(self, key: str, block: Block) -> int:
        return len(block.fleet.names) * self._sizes(key)[0]

    def _forecaster(self, settings: Mapping[str, Any]) -> Forecaster | None:
        """The forecaster of these settings: one for all signals that ask for the same, since a model is large."""
        named = named_forecaster(settings)
        if named is None:
            return None
        key = json.dumps(named, sort_keys=True)
        forecaster = self._forecasters.get(key)
        if forecaster is None:
            forecaster = self._forecasters[key] = make_forecaster(*named)
        return forecaster


def _key(features: tuple[str, ...], settings: Mapping[str, Any]) -> str:
    return json.dumps([features, settings], sort_keys=True)


def _told(size: int) -> str:
    return f"{size / 2**20:.1f} MB"

"""Which signal is scored in which block."""

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from tocsin.detection.presets import named_forecaster
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.service.engine.block import Block

Arrays = Mapping[str, NDArray[Any]]


class Places:
    """Blocks of signals that share settings and features, made as they are needed and gone when they are not."""

    def __init__(self) -> None:
        self._groups: dict[str, list[Block]] = {}
        self._forecasters: WeakValueDictionary[str, Forecaster] = WeakValueDictionary()

    @property
    def blocks(self) -> list[Block]:
        """All blocks."""
        return [block for group in self._groups.values() for block in group]

    def take(
        self, features: tuple[str, ...], settings: Mapping[str, Any], state: Arrays | None = None
    ) -> tuple[Block, int]:
        """A place for a signal whose detector has this state (None: a fresh one).

        ValueError for bad settings, or for a state of a detector with others.
        """
        key = json.dumps([features, settings], sort_keys=True)
        # What has room is at the end, but for what others left.
        block = next((block for block in reversed(self._groups.get(key, ())) if not block.full), None)
        if block is not None:
            return block, block.take(state)
        block = Block(features, settings, self.forecaster(settings))
        place = block.take(state)
        self._groups.setdefault(key, []).append(block)
        return block, place

    def release(self, block: Block, place: int) -> None:
        """Give a place back; a block that nobody is in goes."""
        block.release(place)
        if block.empty:
            key = next(key for key, group in self._groups.items() if block in group)
            self._groups[key].remove(block)
            if not self._groups[key]:
                del self._groups[key]

    def forecaster(self, settings: Mapping[str, Any]) -> Forecaster | None:
        """The forecaster of these settings: one for all signals that ask for the same, since a model is large."""
        named = named_forecaster(settings)
        if named is None:
            return None
        key = json.dumps(named, sort_keys=True)
        forecaster = self._forecasters.get(key)
        if forecaster is None:
            forecaster = self._forecasters[key] = make_forecaster(*named)
        return forecaster

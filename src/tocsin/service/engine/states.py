"""The states of detectors, as they are stored."""

import time
from collections.abc import Sequence

import numpy as np

from tocsin.detection.storage import arrays_to_bytes
from tocsin.service.engine.watched import Watched
from tocsin.service.store import Store


def state_of(signal: Watched) -> bytes:
    """A signal's state, to be stored."""
    last = None if signal.last_time is None else np.datetime64(signal.last_time, "ns")
    return arrays_to_bytes(signal.block.fleet.signal_state(signal.place, last))


def save_states(store: Store, signals: Sequence[Watched]) -> None:
    """Store the states of these signals, in one transaction."""
    states = [(signal, state_of(signal)) for signal in signals]
    with store.transaction() as writer:
        for signal, state in states:
            writer.put_state(signal.row.id, signal.last_time, time.time_ns(), state)
    for signal in signals:
        signal.unsaved = 0

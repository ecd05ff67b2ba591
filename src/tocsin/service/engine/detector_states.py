"""The states of detectors, in the form to store."""

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tocsin.arrays import pack_arrays
from tocsin.detection.storage import arrays_to_bytes
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.store import StateRow, Store

# So many states are stored in one turn: more would let observations wait.
STATES_AT_ONCE = 8


def state_of(signal: MonitoredSignal) -> bytes:
    """A signal's state, as `Detector.to_bytes` gives it."""
    last = None if signal.last_time is None else np.datetime64(signal.last_time, "ns")
    return arrays_to_bytes(signal.block.fleet.signal_state(signal.place, last))


def save_states(store: Store, signals: Sequence[MonitoredSignal]) -> None:
    """Store the detector states of these signals in one transaction."""
    now = time.time_ns()
    states = [StateRow(one.row.id, one.last_time, now, state) for one, state in packed_states(signals).items()]
    with store.transaction() as writer:
        writer.put_states(states)
        for signal in signals:
            # With its state and no sooner: two senders may take turns.
            if signal.source != signal.stored_source:
                writer.change_signal(signal.row.id, source=signal.source)
    for signal in signals:
        signal.saved()
        signal.stored_source = signal.source


def packed_states(signals: Sequence[MonitoredSignal]) -> dict[MonitoredSignal, bytes]:
    """The states of signals in the form to store; those of one block are taken together."""
    by_block = defaultdict(list)
    for signal in signals:
        by_block[signal.block].append(signal)
    packed: dict[MonitoredSignal, bytes] = {}
    for block, some in by_block.items():
        lasts = [None if one.last_time is None else np.datetime64(one.last_time, "ns") for one in some]
        states = block.fleet.signal_states([one.place for one in some], lasts)
        packed.update((one, pack_arrays(state)) for one, state in zip(some, states, strict=True))
    return packed

"""How a removed signal leaves: nobody sees it anymore, but it stays in the store until the sinks know of the end.

Sinks recognise the end of what they were told by the incident through which they were told. So this incident, with its
signal, is stored as long as its event goes on, and until the end is delivered.
"""

import time

from tocsin.service.as_json import incident_json
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.incidents import close_incident
from tocsin.service.engine.signals import AsideSignal, MonitoredSignal
from tocsin.service.store import StoreWriter

# After so many seconds a sink has heard of the end, or never will: it may be gone for good.
LONGEST = 86400.0
# So many signals are removed in one turn: each may have many observations.
AT_ONCE = 10
# More open incidents than a signal ever has.
_MANY = 1000


def leave(state: EngineState, signal: MonitoredSignal | AsideSignal) -> None:
    """Remove a signal: at once if no sink is to hear of it, or else as soon as they have."""
    number, now = signal.row.id, time.time_ns()
    with state.store.transaction() as writer:
        going_on = writer.incidents(signal_id=number, open=True, limit=_MANY)
        for one in going_on:
            close_incident(writer, state.events, signal, one, "removed", now)
        state.pending_imports.end(writer, number)
        stays = bool(writer.awaited([number], _since(now)))
        if stays:
            writer.leave(number)
        else:
            _remove(state, writer, number, now)
        closed = [row for one in going_on if (row := writer.incident(one.id)) is not None]
        events = [one.event for one in going_on if one.event is not None and writer.event(one.event) is not None]
    state.forget(signal)
    if stays:
        state.leaving.add(number)
    for row in closed:
        state.hub.publish("incident", incident_json(row, signal.name))
    for event in events:
        state.hub.publish("event", {"id": event})
    state.hub.publish("signal", {"name": signal.name, "change": "removed"})


def remove_leaving(state: EngineState) -> bool:
    """Remove signals for which no sink waits anymore; true if there may be more of them."""
    if not state.leaving:
        return False
    now = time.time_ns()
    with state.store.reading() as reader:
        left = sorted(state.leaving - reader.awaited(state.leaving, _since(now)))[:AT_ONCE]
    if left:
        with state.store.transaction() as writer:
            for number in left:
                _remove(state, writer, number, now)
        state.leaving.difference_update(left)
    return len(left) == AT_ONCE


def _remove(state: EngineState, writer: StoreWriter, number: int, now: int) -> None:
    events = writer.events_of_signal(number)
    writer.remove_signal(number)
    state.events.forget(writer, events, now)


def _since(now: int) -> int:
    return now - round(LONGEST * 1e9)

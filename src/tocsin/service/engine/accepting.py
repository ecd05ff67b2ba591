"""False alarms: somebody says that an open incident is none, and its detector takes what it brought for normal."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tocsin.service.engine.core import Core
from tocsin.service.engine.incidents import alarm_facts
from tocsin.service.engine.states import state_of
from tocsin.service.engine.watched import Watched
from tocsin.service.store import IncidentRow


def accept(core: Core, signal: Watched, fields: Mapping[str, Any]) -> IncidentRow:
    """End the signal's open incident of alarms as labelled, and set `fields` of it.

    The state of the detector is stored with that: after a start it has taken this in, and never takes it in twice. The
    incident ends with the newest observation, so that a detector that learns anew does the same at the same place.
    """
    now, last = time.time_ns(), signal.last_time
    incident = signal.block.accept(signal.place)
    facts = alarm_facts(signal, incident, now)
    facts = replace(facts, end=facts.end if last is None else last, duration=signal.observations - incident.first)
    state = state_of(signal)
    with core.store.transaction() as writer:
        number = core.put_alarm(writer, signal, facts, now)
        writer.change_incident(number, **fields)
        writer.put_state(signal.row.id, last, now, state)
        row = writer.incident(number)
    if row is None:
        raise RuntimeError(f"incident {number} is gone")
    with core.lock:
        signal.remember(row)
        signal.saved()
    core.tell([(signal, row)])
    return row

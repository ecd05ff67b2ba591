"""What people do to events: acknowledge, snooze, label. It holds for all incidents, and for those that join later."""

import time
from typing import Any

from tocsin.service.as_json import event_json, incident_json
from tocsin.service.engine.changes import Ask, Changes, on_engine_thread
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.incident_changes import FALSE_ALARM, IncidentChanges, check_label, given_note
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.errors import UnknownError

# So many incidents of an event that changed are published; of more, whoever watches reads the event.
MOST_PUBLISHED = 50


class EventChanges(Changes):
    """What people do to events; each call gives the event as it is shown."""

    def __init__(self, state: EngineState, ask: Ask, incidents: IncidentChanges) -> None:
        super().__init__(state, ask)
        self._incidents = incidents

    @on_engine_thread
    def acknowledge(self, number: int, by: str | None, note: str | None = None) -> dict[str, Any]:
        """Somebody has seen an event; with `by` None nobody has."""
        fields: dict[str, Any] = {"acknowledged": time.time_ns() if by else None, "acknowledged_by": by}
        return self._change(number, {**fields, **given_note(note)})

    @on_engine_thread
    def snooze(self, number: int, until: int | None) -> dict[str, Any]:
        """Nobody is to be told of an event until then; None ends that."""
        return self._change(number, {"snoozed_until": until})

    @on_engine_thread
    def label(self, number: int, label: str | None, note: str | None = None) -> dict[str, Any]:
        """Say what an event was. If it is a false alarm, its open incidents of alarms end: each is taken for normal."""
        fields = {"label": check_label(label), **given_note(note)}
        self._change(number, fields)
        if label == FALSE_ALARM:
            for signal in tuple(self._state.signals.values()):
                if self._has_open_alarm(signal, number):
                    self._incidents.end_false_alarm(signal, fields)
        return self._shape(number)

    def _has_open_alarm(self, signal: MonitoredSignal, number: int) -> bool:
        if signal.alarm_incident is None:
            return False
        with self._state.store.reading() as reader:
            event = reader.event_of(signal.alarm_incident)
        return event is not None and event.id == number

    def _change(self, number: int, fields: dict[str, Any]) -> dict[str, Any]:
        with self._state.store.transaction() as writer:
            writer.change_event(number, **fields)
            writer.change_members(number, **fields)
        return self._told(number)

    def _told(self, number: int) -> dict[str, Any]:
        """An event as it is now; who watches is told."""
        hub = self._state.hub
        hub.publish("event", {"id": number})
        with self._state.store.reading() as reader:
            names = reader.signal_names()
            for row in reader.members(number, limit=MOST_PUBLISHED):
                hub.publish("incident", incident_json(row, names[row.signal]))
        return self._shape(number)

    def _shape(self, number: int) -> dict[str, Any]:
        with self._state.store.reading() as reader:
            event = reader.event(number)
            if event is None:
                raise UnknownError(f"there is no event {number}")
            (whole,) = reader.summaries([event], reader.signal_names())
        return event_json(whole)

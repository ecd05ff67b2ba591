"""What people do about incidents and events: acknowledge, snooze, label, and plan maintenance."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tocsin_monitor.as_json import event_json, incident_json, time_text
from tocsin_monitor.engine.changes import Ask, Changes, on_engine_thread
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import alarm_facts
from tocsin_monitor.engine.lifecycle import check_text
from tocsin_monitor.engine.signals import MonitoredSignal, QuarantinedSignal, state_of
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import LONGEST_NAME
from tocsin_monitor.store import IncidentRow, MaintenanceRow, StoreWriter

FAULT, FALSE_ALARM = "fault", "false alarm"
LABELS = (FAULT, FALSE_ALARM, "expected")
LONGEST_NOTE = 2000


class IncidentChanges(Changes):
    """Changes of incidents. Each returns the incident as JSON."""

    @on_engine_thread
    def acknowledge(self, number: int, by: str | None, note: str | None = None) -> dict[str, Any]:
        """Acknowledge an incident; None for `by` takes that back."""
        fields: dict[str, Any] = {"acknowledged": time.time_ns() if by else None, "acknowledged_by": by}
        return self._change(number, {**fields, **given_note(note)})

    @on_engine_thread
    def snooze(self, number: int, until: int | None) -> dict[str, Any]:
        """Send no messages about an incident until a time; None ends the snooze."""
        return self._change(number, {"snoozed_until": until})

    @on_engine_thread
    def label(
        self, number: int, label: str | None, exclude: bool | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Label an incident. `exclude` excludes its observations from calibration, or includes them again.

        The label "false alarm" ends an open alarm incident, and its observations are accepted as normal. If they are
        excluded at the same time, the incident ends too, but nothing is learned from it.
        """
        fields = {"label": check_label(label), **given_note(note)}
        before = self._incident(number)
        signal = self._state.by_id(before.signal)
        if exclude is None or exclude == before.excluded:
            if label == FALSE_ALARM and isinstance(signal, MonitoredSignal) and number == signal.alarm_incident:
                return incident_json(self.end_false_alarm(signal, fields), signal.name)
            return self._change(number, fields)
        if isinstance(signal, QuarantinedSignal):
            raise RefusedError(signal.message)
        if before.kind != "alarm":
            raise RefusedError(f"exclude is for incidents of alarms only, got the silence {number}")

        def change(writer: StoreWriter) -> None:
            writer.change_incident(number, **fields, excluded=exclude)

        new = self._detectors.fresh(signal.row, signal.reference)
        self._detectors.relearn(signal, new, marks={number: exclude}, change=change)
        return self._published(number, signal)

    def end_false_alarm(self, signal: MonitoredSignal, fields: Mapping[str, Any]) -> IncidentRow:
        """End the signal's open alarm incident as labelled, and change `fields` of it.

        The detector accepts its observations as normal. Its state is stored in the same transaction, so a start never
        accepts them twice. The incident ends with the newest observation, so that a detector that learns anew accepts
        them at the same point.
        """
        now, last = time.time_ns(), signal.last_time
        incident = signal.block.accept(signal.place)
        facts = alarm_facts(signal, incident, now)
        facts = replace(facts, end=facts.end if last is None else last, duration=signal.observations - incident.first)
        state = state_of(signal)
        with self._state.store.transaction() as writer:
            number = self._state.put_alarm(writer, signal, facts, now)
            writer.change_incident(number, **fields)
            writer.put_state(signal.row.id, last, now, state)
            row = writer.incident(number)
        if row is None:
            raise RuntimeError(f"incident {number} is gone")
        with self._state.lock:
            signal.remember(row)
            signal.saved()
        self._state.tell([(signal, row)])
        return row

    def _incident(self, number: int) -> IncidentRow:
        with self._state.store.reading() as reader:
            row = reader.incident(number)
        if row is None:
            raise UnknownError(f"there is no incident {number}")
        return row

    def _change(self, number: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        signal = self._state.by_id(self._incident(number).signal)
        with self._state.store.transaction() as writer:
            writer.change_incident(number, **fields)
        return self._published(number, signal)

    def _published(self, number: int, signal: MonitoredSignal | QuarantinedSignal) -> dict[str, Any]:
        """Publish an incident as it is now, and return it."""
        shape = incident_json(self._incident(number), signal.name)
        self._state.hub.publish("incident", shape)
        return shape


def check_label(label: str | None) -> str | None:
    """The label, None for no label; RefusedError for an unknown one."""
    if label is not None and label not in LABELS:
        raise RefusedError(f"label must be one of {', '.join(LABELS)}, got {label!r}")
    return label


def given_note(note: str | None) -> dict[str, Any]:
    """The change of a note, if one is given."""
    return {} if note is None else {"note": check_text("note", note, LONGEST_NOTE)}


# The most incidents of a changed event that are published one by one. Pages that watch a larger event read it again.
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
        """Publish an event as it is now, and return it."""
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


#: A limit, because each observation is compared with all current windows.
MOST_WINDOWS = 1000


class MaintenanceChanges(Changes):
    """Changes of maintenance windows."""

    @on_engine_thread
    def add(self, pattern: str, start: int, end: int, reason: str = "", by: str = "") -> MaintenanceRow:
        """Add a window. From `start` to `end`, observations of matching signals are stored but not judged."""
        if not end > start:
            raise RefusedError(f"end must be after start, got start {time_text(start)} and end {time_text(end)}")
        if not pattern:
            raise RefusedError("pattern must not be empty, got ''")
        check_text("pattern", pattern, LONGEST_NAME)
        check_text("reason", reason, LONGEST_NOTE)
        forgotten = time.time_ns() - round(self._state.settings.storage.keep_observations * 1e9)
        with self._state.store.transaction() as writer:
            for window in writer.maintenance():
                if window.end < forgotten:  # there are no older observations
                    writer.remove_maintenance(window.id)
            number = writer.add_maintenance(pattern, start, end, reason, by)
            windows = writer.maintenance()
            if len(windows) > MOST_WINDOWS:
                raise RefusedError(
                    f"there may be at most {MOST_WINDOWS} maintenance windows: remove some that have ended"
                )
        self._state.windows = windows
        return next(window for window in windows if window.id == number)

    @on_engine_thread
    def remove(self, number: int) -> None:
        """Remove a window. Observations that were not judged because of it stay unjudged."""
        if all(window.id != number for window in self._state.windows):
            raise UnknownError(f"there is no maintenance window {number}")
        with self._state.store.transaction() as writer:
            writer.remove_maintenance(number)
            windows = writer.maintenance()
        self._state.windows = windows

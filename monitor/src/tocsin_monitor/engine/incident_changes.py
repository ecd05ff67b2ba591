"""What people do about incidents and events: acknowledge, snooze, label, and plan maintenance."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from tocsin_monitor.as_json import event_json, incident_json, time_text
from tocsin_monitor.engine.changes import Ask, Changes, on_engine_thread
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.held_labels import FALSE_ALARM, FAULT, NOT_HELD, hold_label
from tocsin_monitor.engine.incidents import alarm_facts
from tocsin_monitor.engine.lifecycle import check_text
from tocsin_monitor.engine.replay import TAKEN, latest
from tocsin_monitor.engine.signals import AnySignal, MonitoredSignal, QuarantinedSignal, state_of
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import LONGEST_NAME
from tocsin_monitor.schedules import Schedule
from tocsin_monitor.store import IncidentRow, LabelName, MaintenanceRow, StoreReader, StoreWriter

LONGEST_NOTE = 2000


class Handling(Changes, ABC):
    """What people do about incidents and events alike. Each call returns it as JSON.

    `patterns` are those that the caller is limited to: all signals of an event match them, and all that join later.
    """

    @on_engine_thread
    def acknowledge(
        self, number: int, by: str | None, note: str | None = None, patterns: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Acknowledge it; None for `by` takes that back."""
        fields: dict[str, Any] = {"acknowledged": time.time_ns() if by else None, "acknowledged_by": by}
        return self._change(number, {**fields, **given_note(note)}, patterns)

    @on_engine_thread
    def snooze(self, number: int, until: int | None, patterns: Sequence[str] = ()) -> dict[str, Any]:
        """Send no messages about it until a time; None ends the snooze."""
        return self._change(number, {"snoozed_until": until}, patterns)

    @abstractmethod
    def _change(self, number: int, fields: Mapping[str, Any], patterns: Sequence[str] = ()) -> dict[str, Any]:
        """Change these fields of it."""


class IncidentChanges(Handling):
    """Changes of incidents."""

    @on_engine_thread
    def label(
        self,
        number: int,
        label: str | None,
        exclude: bool | None = None,
        note: str | None = None,
        hold: bool = True,
    ) -> dict[str, Any]:
        """Label an incident. `exclude` excludes its observations from calibration, or includes them again.

        A fault does not count as a false incident: its share of the tolerated rate is given back. The label "false
        alarm" ends an open alarm incident, and its observations are accepted as normal. If they are excluded at the
        same time, the incident ends too, but nothing is learned from it. With `hold`, any other label holds for the
        next incidents like it, too.
        """
        fields = {"label": check_label(label), **given_note(note)}
        before = self._incident(number)
        signal = self._state.by_id(before.signal)
        fields |= share_given_back(signal, before, label)
        if exclude is None or exclude == before.excluded:
            if label == FALSE_ALARM and isinstance(signal, MonitoredSignal) and number == signal.alarm_incident:
                with self._state.store.reading() as reader:
                    settle_share(reader, signal, before, fields)
                return incident_json(self.end_false_alarm(signal, {**fields, **NOT_HELD}), signal.name)
            return self._change(number, fields, hold=hold)
        if isinstance(signal, QuarantinedSignal):
            raise RefusedError(signal.message)
        if before.kind != "alarm":
            raise RefusedError(f"exclude is for incidents of alarms only, got {number}, of kind {before.kind}")

        def change(writer: StoreWriter) -> None:
            held = hold_label(writer, before, label, hold)
            writer.change_incident(number, **{**fields, **held, "excluded": exclude})

        new = self._detectors.fresh(signal.row, signal.reference)
        self._detectors.relearn(signal, new, marks={number: {**fields, "excluded": exclude}}, change=change)
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

    def _change(
        self, number: int, fields: Mapping[str, Any], patterns: Sequence[str] = (), *, hold: bool = False
    ) -> dict[str, Any]:
        row = self._incident(number)
        signal = self._state.by_id(row.signal)
        with self._state.store.transaction() as writer:
            held = hold_label(writer, row, fields["label"], hold) if "label" in fields else {}
            change_incident(writer, signal, row, {**fields, **held})
        return self._published(number, signal)

    def _published(self, number: int, signal: AnySignal) -> dict[str, Any]:
        """Publish an incident as it is now, and return it."""
        shape = incident_json(self._incident(number), signal.name)
        self._state.hub.publish("incident", shape)
        return shape


def share_given_back(signal: AnySignal, row: IncidentRow, label: str | None) -> dict[str, Any]:
    """The change of `given_back` that comes with a label, if any."""
    if row.kind != "alarm" or (label == FAULT) == (row.given_back is not None):
        return {}
    last = signal.last_time if isinstance(signal, MonitoredSignal) else None
    return {"given_back": latest(last, row.end) if label == FAULT else None}


def change_incident(writer: StoreWriter, signal: AnySignal, row: IncidentRow, fields: Mapping[str, Any]) -> None:
    """Change fields of an incident. If its share is given back, the detector's state is stored with that."""
    writer.change_incident(row.id, **fields)
    if isinstance(signal, MonitoredSignal) and settle_share(writer, signal, row, fields):
        writer.put_state(signal.row.id, signal.last_time, time.time_ns(), state_of(signal))
        signal.saved()


def settle_share(reader: StoreReader, signal: MonitoredSignal, row: IncidentRow, fields: Mapping[str, Any]) -> bool:
    """Give an incident's share of the tolerated rate back, or take it again, if `given_back` changes.

    A detector that began after the incident never took it. Returns whether the detector changed.
    """
    if "given_back" not in fields:
        return False
    since = reader.count_observations(signal.row.id, row.start - 1, TAKEN)
    if since > signal.observations:
        return False
    signal.block.fleet.label_fault(signal.place, row.alarms, taken_back=fields["given_back"] is None)
    return True


def check_label(label: str | None) -> str | None:
    """The label, None for no label; RefusedError for an unknown one."""
    if label is not None and label not in (labels := get_args(LabelName)):
        raise RefusedError(f"label must be one of {', '.join(labels)}, got {label!r}")
    return label


def given_note(note: str | None) -> dict[str, Any]:
    """The change of a note, if one is given."""
    return {} if note is None else {"note": check_text("note", note, LONGEST_NOTE)}


# The most incidents of a changed event that are published one by one. Pages that watch a larger event read it again.
MOST_PUBLISHED = 50
# The most incidents of an event whose shares are given back at once.
MOST_LABELLED = 1000


class EventChanges(Handling):
    """What people do to events."""

    def __init__(self, state: EngineState, ask: Ask, incidents: IncidentChanges) -> None:
        super().__init__(state, ask)
        self._incidents = incidents

    @on_engine_thread
    def label(
        self, number: int, label: str | None, note: str | None = None, patterns: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Say what an event was. If it is a false alarm, its open incidents of alarms end: each is taken for normal."""
        fields = {"label": check_label(label), **given_note(note)}
        self._change(number, fields, patterns)
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

    def _change(self, number: int, fields: Mapping[str, Any], patterns: Sequence[str] = ()) -> dict[str, Any]:
        with self._state.store.transaction() as writer:
            if patterns:
                self._state.events.limit(writer, number, patterns)
            writer.change_event(number, **fields)
            writer.change_members(number, **fields)
            if "label" in fields:
                writer.change_members(number, **NOT_HELD)
                self._give_back_shares(writer, number, fields["label"])
        return self._told(number)

    def _give_back_shares(self, writer: StoreWriter, number: int, label: str | None) -> None:
        signals = {signal.row.id: signal for signal in self._state.signals.values()}
        for row in writer.members(number, limit=MOST_LABELLED):
            if (signal := signals.get(row.signal)) and (share := share_given_back(signal, row, label)):
                change_incident(writer, signal, row, share)

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
    def add(
        self, pattern: str, start: int, end: int, reason: str = "", by: str = "", recurs: Schedule | None = None
    ) -> MaintenanceRow:
        """Add a window. From `start` to `end`, observations of matching signals are stored but not judged.

        With `recurs`, only those at its times.
        """
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
            number = writer.add_maintenance(pattern, start, end, reason, by, recurs)
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

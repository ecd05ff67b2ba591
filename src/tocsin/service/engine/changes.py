"""What people change: signals, incidents, maintenance windows. All of it runs on the engine's thread."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin.detection.storage import arrays_from_bytes
from tocsin.service.as_json import incident_json, time_text
from tocsin.service.engine.accepting import accept
from tocsin.service.engine.aside import Aside
from tocsin.service.engine.core import Core
from tocsin.service.engine.incidents import nanoseconds
from tocsin.service.engine.new_signals import check_features, check_text, new_row
from tocsin.service.engine.rebuilding import alone, go_on, mend, rebuild, store_settings
from tocsin.service.engine.replaying import latest, learn_reference
from tocsin.service.engine.status import SignalDetails, SignalStatus
from tocsin.service.engine.watched import NOTHING, Watched
from tocsin.service.errors import RefusedError, UnknownError
from tocsin.service.observations import LONGEST_NAME
from tocsin.service.store import IncidentRow, MaintenanceRow, StoreWriter

FAULT, FALSE_ALARM = "fault", "false alarm"
LABELS = (FAULT, FALSE_ALARM, "expected")
LONGEST_NOTE = 2000
#: Each observation is compared with those that are not over.
MOST_WINDOWS = 1000


def create(
    core: Core, name: str, features: Sequence[str] | None, detector: dict[str, Any] | None,
    silent_after: float | None, unit: str | None,
) -> SignalStatus:  # fmt: skip
    """Make a signal before its first observation."""
    if name in core.signals or name in core.aside:
        raise RefusedError(f"there is a signal {name!r} already")
    refused = core.add([new_row(core.settings, name, features, detector, silent_after, unit)])
    if refused:
        raise RefusedError(refused[name])
    return core.signal(name).status()


def configure(
    core: Core, name: str, features: Sequence[str] | None, detector: dict[str, Any] | None,
    silent_after: float | None, unit: str | None,
) -> SignalStatus:  # fmt: skip
    """Change a signal; None leaves a setting as it is. With other settings its detector learns anew from the store.

    So does one that was set aside, with any settings.
    """
    signal = core.aside.get(name) or core.signal(name)
    if features is not None and check_features(features) != signal.row.features:
        raise RefusedError(f"the features of {name!r} stay {', '.join(signal.row.features)}: remove it to change them")
    given = new_row(core.settings, name, signal.row.features, detector, silent_after, unit)
    # What is stored of it was put together so: that stays.
    interval = {} if signal.row.every is None else {"interval": signal.row.every}
    row = replace(
        signal.row,
        settings=signal.row.settings if detector is None else {**given.settings, **interval},
        silent_after=signal.row.silent_after if silent_after is None else silent_after,
        unit=signal.row.unit if unit is None else unit,
    )
    if isinstance(signal, Aside):
        mend(core, signal, row, learn=True)
    elif row.settings == signal.row.settings:
        with core.store.transaction() as writer:
            store_settings(writer, row)
        with core.lock:
            signal.row = row
    else:
        rebuild(core, signal, alone(core, row, signal.reference))
    core.hub.publish("signal", {"name": name, "change": "configured"})
    return core.status(name)


def reset(core: Core, name: str) -> SignalStatus:
    """Let the detector forget everything but its reference; stored observations stay."""
    if name in core.aside:
        mend(core, core.aside[name], core.aside[name].row, learn=False)
    else:
        _begin_anew(core, core.signal(name))
    core.hub.publish("signal", {"name": name, "change": "reset"})
    return core.status(name)


def _begin_anew(core: Core, signal: Watched) -> None:
    new = alone(core, signal.row, signal.reference)
    with core.store.reading() as reader:
        learn_reference(reader, new)
    go_on(core, signal, new, "reset")


def remove(core: Core, name: str) -> None:
    """Remove a signal with all that belongs to it."""
    signal = core.aside.get(name) or core.signal(name)
    with core.store.transaction() as writer:
        writer.remove_signal(signal.row.id)
        core.histories.end(writer, signal.row.id)
    core.forget(signal)
    core.hub.publish("signal", {"name": name, "change": "removed"})


def restore(core: Core, name: str, state: bytes) -> SignalStatus:
    """Let the detector go on from a state that was taken of one with the same settings.

    What was stored since then is not taken again: with an `interval` it counts as missing.
    """
    signal = core.signal(name)
    if signal.reference is not None:
        raise RefusedError(f"{name!r} has a reference, which a state would replace: remove it before restoring one")
    restored = alone(core, signal.row)
    try:
        last = restored.block.fleet.put(restored.place, arrays_from_bytes(state))
    except ValueError as error:
        raise RefusedError(f"this state cannot be restored: {error}") from error
    if last is not None:
        restored.last_time = _moment(core, last)
    if restored.block.fleet.interval is not None and latest(restored.last_time, signal.last_time) != restored.last_time:
        missing = (NOTHING,) * len(signal.row.features)
        restored.block.run({restored.place: restored.stretch([signal.last_time or 0], [missing])})
    go_on(core, signal, restored, "reset")
    core.hub.publish("signal", {"name": name, "change": "reset"})
    return signal.status()


def _moment(core: Core, last: Any) -> int:
    """The time of the last observation of a state that is brought from elsewhere."""
    if not isinstance(last, np.datetime64):
        raise RefusedError(f"a state must be of observations with times, got one with the number {last!r}")
    moment = nanoseconds(last)
    if moment > time.time_ns() + round(core.settings.engine.future_tolerance * 1e9):
        raise RefusedError(f"a state must not be ahead of the clock, got one of {time_text(moment)}")
    return moment


def acknowledge(core: Core, number: int, by: str | None, note: str | None) -> dict[str, Any]:
    """Somebody has seen an incident; with `by` None nobody has."""
    fields: dict[str, Any] = {"acknowledged": time.time_ns() if by else None, "acknowledged_by": by}
    return _change_incident(core, number, {**fields, **_note(note)})


def snooze(core: Core, number: int, until: int | None) -> dict[str, Any]:
    """Nobody is to be told of an incident until then; None ends that."""
    return _change_incident(core, number, {"snoozed_until": until})


def label(core: Core, number: int, text: str | None, exclude: bool | None, note: str | None) -> dict[str, Any]:
    """Say what an incident was. `exclude` takes its observations out of calibration, or back into it.

    One of alarms that goes on ends if it is a false alarm: what it brought is taken for normal. Where its observations
    are taken out at the same time, it ends by that, and nothing is learned of it.
    """
    if text is not None and text not in LABELS:
        raise RefusedError(f"a label must be one of {', '.join(LABELS)}, got {text!r}")
    fields = {"label": text, **_note(note)}
    before = _incident(core, number)
    signal = core.by_id(before.signal)
    if exclude is None or exclude == before.excluded:
        if text == FALSE_ALARM and isinstance(signal, Watched) and number == signal.alarm_incident:
            return incident_json(accept(core, signal, fields), signal.name)
        return _change_incident(core, number, fields)
    if isinstance(signal, Aside):
        raise RefusedError(signal.told)
    if before.kind != "alarm":
        raise RefusedError("a silence has no observations that could be taken out of calibration")

    def change(writer: StoreWriter) -> None:
        writer.change_incident(number, **fields, excluded=exclude)

    rebuild(core, signal, alone(core, signal.row, signal.reference), marks={number: exclude}, change=change)
    return _told(core, number, signal)


def details(core: Core, name: str) -> SignalDetails:
    """What a signal's detector has learned, and whether it keeps its promise. Known faults do not count against it."""
    signal = core.signal(name)
    with core.store.reading() as reader:
        faults = reader.count_labelled(signal.row.id, FAULT)
    return signal.details(faults)


def _note(note: str | None) -> dict[str, Any]:
    return {} if note is None else {"note": check_text("a note", note, LONGEST_NOTE)}


def _incident(core: Core, number: int) -> IncidentRow:
    with core.store.reading() as reader:
        row = reader.incident(number)
    if row is None:
        raise UnknownError(f"there is no incident {number}")
    return row


def _change_incident(core: Core, number: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    signal = core.by_id(_incident(core, number).signal)
    with core.store.transaction() as writer:
        writer.change_incident(number, **fields)
    return _told(core, number, signal)


def _told(core: Core, number: int, signal: Watched | Aside) -> dict[str, Any]:
    """An incident as it is now; who watches is told."""
    shape = incident_json(_incident(core, number), signal.name)
    core.hub.publish("incident", shape)
    return shape


def add_maintenance(core: Core, pattern: str, start: int, end: int, reason: str, by: str) -> MaintenanceRow:
    """From `start` to `end` observations of the signals that fit the pattern are kept, but not judged."""
    if not end > start:
        raise RefusedError("a maintenance window must end after it starts")
    if not pattern:
        raise RefusedError("a pattern must not be empty")
    check_text("a pattern", pattern, LONGEST_NAME)
    check_text("a reason", reason, LONGEST_NOTE)
    forgotten = time.time_ns() - round(core.settings.storage.keep_observations * 1e9)
    with core.store.transaction() as writer:
        for window in writer.maintenance():
            if window.end < forgotten:  # no observation is that old
                writer.remove_maintenance(window.id)
        number = writer.add_maintenance(pattern, start, end, reason, by)
        windows = writer.maintenance()
        if len(windows) > MOST_WINDOWS:
            raise RefusedError(f"there may be at most {MOST_WINDOWS} maintenance windows: remove some that are over")
    core.windows = windows
    return next(window for window in windows if window.id == number)


def remove_maintenance(core: Core, number: int) -> None:
    """End a window, or call it off. What was not judged in it stays so."""
    if all(window.id != number for window in core.windows):
        raise UnknownError(f"there is no maintenance window {number}")
    with core.store.transaction() as writer:
        writer.remove_maintenance(number)
        windows = writer.maintenance()
    core.windows = windows

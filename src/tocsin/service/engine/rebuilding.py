"""Signals that go on with another detector, now and after every start."""

import time
from collections.abc import Callable, Mapping

from tocsin.detection.storage import arrays_from_bytes
from tocsin.service.engine.aside import Aside
from tocsin.service.engine.block import SignalBlock
from tocsin.service.engine.core import Core
from tocsin.service.engine.incidents import close_incident
from tocsin.service.engine.replaying import Observed, latest, learn_anew, learn_reference, learn_what_can_be
from tocsin.service.engine.states import state_of
from tocsin.service.engine.watched import Watched
from tocsin.service.errors import DamagedError, MonitorError, RefusedError
from tocsin.service.store import Ended, IncidentRow, ReferenceRow, SignalRow, StoreWriter

Change = Callable[[StoreWriter], None]


def alone(core: Core, row: SignalRow, reference: ReferenceRow | None = None) -> Watched:
    """A signal with a fresh detector that is in no block with others yet, and has not learned its reference."""
    block = core.places.alone(row.features, row.settings)
    return Watched(row, block, block.take(None), reference)


def rebuild(
    core: Core, signal: Watched, new: Watched, *, marks: Mapping[int, bool] | None = None,
    observed: Observed | None = None, change: Change | None = None,
) -> None:  # fmt: skip
    """Have a fresh detector learn from what is stored, as `learn_anew` does, and take the signal's place."""
    with core.store.reading() as reader:
        learn_anew(reader, new, marks, observed)
    go_on(core, signal, new, "relearned", change)


def go_on(core: Core, signal: Watched, new: Watched, ended: Ended, change: Change | None = None) -> None:
    """Let a signal go on with another detector; `change` is stored together with that.

    The incident that the detector before had found is over, and `ended` says why; the next alarm begins another one.
    """
    # What was stored before must not be taken again at the next start.
    new.last_time = latest(signal.last_time, new.last_time)
    place, closed = _store(core, signal, new, signal.alarm_incident, ended, change)
    with core.lock:
        core.places.release(signal.block, signal.place)
        signal.block, signal.place = place
        signal.row, signal.reference = new.row, new.reference
        signal.last_time = new.last_time
        signal.saved()
        signal.count()
        if closed is not None:
            signal.remember(closed)
    if closed is not None:
        core.tell([(signal, closed)])


def mend(core: Core, aside: Aside, row: SignalRow, *, learn: bool) -> None:
    """Let a signal that was set aside go on with a fresh detector, which learns from what is stored or from nothing."""
    try:
        new = alone(core, row, aside.reference)
        with core.store.reading() as reader:
            if learn:
                learn_what_can_be(reader, new)
            else:
                learn_reference(reader, new)
            new.last_time = latest(new.last_time, reader.newest_time(row.id))
    except Exception as error:
        if isinstance(error, MonitorError) and not isinstance(error, DamagedError):
            raise
        raise RefusedError(f"signal {row.name!r} stays set aside, since it cannot be rebuilt: {error}") from error
    open_alarm = next((one.id for one in aside.incidents if one.kind == "alarm"), None)
    removed = aside.reference is not None and new.reference is None
    change: Change | None = (lambda writer: writer.remove_reference(row.id)) if removed else None
    (new.block, new.place), closed = _store(core, aside, new, open_alarm, "relearned" if learn else "reset", change)
    new.last_arrival = time.time_ns()
    new.saved()
    for incident in aside.incidents:
        if closed is None or incident.id != closed.id:
            new.remember(incident)
    new.count()
    with core.lock:
        del core.aside[aside.name]
        core.signals[aside.name] = new
    core.count()
    if closed is not None:
        core.tell([(new, closed)])


def _store(
    core: Core, signal: Watched | Aside, new: Watched, number: int | None, ended: Ended, change: Change | None
) -> tuple[tuple[SignalBlock, int], IncidentRow | None]:
    """Store a new detector of a signal; returns its place, and the incident with this number, which is over."""
    now, closed = time.time_ns(), None
    new.block.forget_incidents(new.place)
    state = state_of(new)
    # Its place is there before anything is stored: one for which there is no room must not be asked for at each start.
    with core.placed(new.row, arrays_from_bytes(state)) as place, core.store.transaction() as writer:
        store_settings(writer, new.row)
        writer.put_state(new.row.id, new.last_time, now, state)
        if change is not None:
            change(writer)
        if number is not None and (going_on := writer.incident(number)) is not None:
            close_incident(writer, core.sinks, signal, going_on, ended, now)
            closed = writer.incident(number)
    return place, closed


def store_settings(writer: StoreWriter, row: SignalRow) -> None:
    """Store what can be changed of a signal."""
    writer.change_signal(row.id, settings=row.settings, silent_after=row.silent_after, unit=row.unit)

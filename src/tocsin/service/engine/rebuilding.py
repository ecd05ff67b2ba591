"""Signals that go on with another detector, now and after every start."""

import time
from collections.abc import Callable, Mapping

from tocsin.detection.storage import arrays_from_bytes
from tocsin.service.engine.core import Core
from tocsin.service.engine.incidents import close_incident
from tocsin.service.engine.recovery import Observed, latest, learn_anew, state_of
from tocsin.service.engine.watched import Watched
from tocsin.service.store import Ended, ReferenceRow, SignalRow, Writer

Change = Callable[[Writer], None]


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
    now = time.time_ns()
    # What was stored before must not be taken again at the next start.
    new.last_time = latest(signal.last_time, new.last_time)
    new.block.forget_incidents(new.place)
    state = state_of(new)
    number, closed = signal.alarm_incident, None
    # Its place is there before anything is stored: one for which there is no room must not be asked for at each start.
    with core.placed(new.row, arrays_from_bytes(state)) as place, core.store.transaction() as writer:
        store_settings(writer, new.row)
        writer.put_state(new.row.id, new.last_time, now, state)
        if change is not None:
            change(writer)
        if number is not None and (going_on := writer.incident(number)) is not None:
            close_incident(writer, core.sinks, signal, going_on, ended, now)
            closed = writer.incident(number)
    with core.lock:
        core.places.release(signal.block, signal.place)
        signal.block, signal.place = place
        signal.row, signal.reference = new.row, new.reference
        signal.last_time, signal.unsaved = new.last_time, 0
        signal.count()
        if closed is not None:
            signal.remember(closed)
    if closed is not None:
        core.tell([(signal, closed)])


def store_settings(writer: Writer, row: SignalRow) -> None:
    """Store what can be changed of a signal."""
    writer.change_signal(row.id, settings=row.settings, silent_after=row.silent_after, unit=row.unit)

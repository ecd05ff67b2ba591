"""Changes that people make, and how a signal's detector is replaced.

They may be requested from any thread, but run on the engine's thread. A new detector is there for every later start.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tocsin.detection import arrays_from_bytes
from tocsin_monitor.access_log import carried
from tocsin_monitor.engine.block import SignalBlock
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import close_incident
from tocsin_monitor.engine.replay import (
    Marks,
    Observed,
    latest,
    learn_anew,
    learn_reference,
    learn_what_can_be,
    remember_limits,
    remember_peer,
)
from tocsin_monitor.engine.signals import AnySignal, MonitoredSignal, QuarantinedSignal, state_of
from tocsin_monitor.errors import DamagedError, MonitorError, RefusedError, refusing
from tocsin_monitor.store import Ended, IncidentRow, ReferenceRow, SignalRow, StoreWriter

if TYPE_CHECKING:
    from concurrent.futures import Future

Change = Callable[[StoreWriter], None]
UNLEARNED = "a new detector cannot learn what is stored"


class DetectorReplacement:
    """Builds new detectors next to the current ones, and puts them in their place.

    A `change` is stored in the same transaction as the new detector.
    """

    def __init__(self, state: EngineState) -> None:
        self._state = state

    def fresh(self, row: SignalRow, reference: ReferenceRow | None = None) -> MonitoredSignal:
        """The signal with a new detector in its own block, which has not learned the reference yet."""
        return self.fresh_together([(row, reference)])[0]

    def fresh_together(self, signals: Sequence[tuple[SignalRow, ReferenceRow | None]]) -> list[MonitoredSignal]:
        """The same for signals with the same features and settings, in one block; for fewer if they are large."""
        first, _ = signals[0]
        block = self._state.places.alone(first.features, first.settings, len(signals))
        return [MonitoredSignal(row, block, block.take(None), reference) for row, reference in signals[: block.rows]]

    def relearn(
        self, signal: MonitoredSignal, new: MonitoredSignal, *, marks: Marks | None = None,
        observed: Observed | None = None, change: Change | None = None,
    ) -> None:  # fmt: skip
        """Let a new detector learn from the store, as `learn_anew` does, and replace the current one."""
        with self._state.store.reading() as reader, refusing(UNLEARNED):
            learn_anew(reader, new, marks, observed)
        self.replace(signal, new, "relearned", change)

    def begin_anew(self, signal: MonitoredSignal) -> None:
        """Replace the detector with a new one that knows only the reference, if there is one."""
        new = self.fresh(signal.row, signal.reference)
        with self._state.store.reading() as reader, refusing(UNLEARNED):
            learn_reference(reader, new)
        self.replace(signal, new, "reset")

    def replace(
        self, signal: MonitoredSignal, new: MonitoredSignal, ended: Ended, change: Change | None = None
    ) -> None:
        """Replace a signal's detector.

        The open incident of the old detector is closed, and `ended` says why. The next alarm starts a new incident.
        """
        # The next start must not replay observations from before the replacement.
        new.last_time = latest(signal.last_time, new.last_time)
        place, closed = self._store(signal, new, signal.alarm_incident, ended, change)
        with self._state.lock:
            self._state.places.release(signal.block, signal.place)
            signal.block, signal.place = place
            signal.row, signal.reference = new.row, new.reference
            signal.last_time = new.last_time
            signal.saved()
            signal.count()
            if closed is not None:
                signal.remember(closed)
        if closed is not None:
            self._state.tell([(signal, closed)])

    def mend(self, quarantined: QuarantinedSignal, row: SignalRow, *, learn: bool) -> None:
        """Give a signal that was quarantined a new detector. With `learn`, it learns from the stored observations."""
        try:
            new = self.fresh(row, quarantined.reference)
            with self._state.store.reading() as reader:
                if learn:
                    learn_what_can_be(reader, new)
                else:
                    learn_reference(reader, new)
                    remember_peer(reader, new)
                    remember_limits(reader, new)
                new.last_time = latest(new.last_time, reader.newest_time(row.id))
        except Exception as error:
            if isinstance(error, MonitorError) and not isinstance(error, (DamagedError, RefusedError)):
                raise
            raise RefusedError(
                f"signal {row.name!r} stays quarantined, because it cannot be rebuilt: {error}"
            ) from error
        open_alarm = next((one.id for one in quarantined.incidents if one.kind == "alarm"), None)
        removed = quarantined.reference is not None and new.reference is None
        change: Change | None = (lambda writer: writer.remove_reference(row.id)) if removed else None
        (new.block, new.place), closed = self._store(
            quarantined, new, open_alarm, "relearned" if learn else "reset", change
        )
        new.last_arrival = time.time_ns()
        new.saved()
        for incident in quarantined.incidents:
            if closed is None or incident.id != closed.id:
                new.remember(incident)
        new.count()
        with self._state.lock:
            del self._state.quarantined[quarantined.name]
            self._state.signals[quarantined.name] = new
        self._state.count()
        if closed is not None:
            self._state.tell([(new, closed)])

    def _store(
        self, signal: AnySignal, new: MonitoredSignal, number: int | None, ended: Ended,
        change: Change | None,
    ) -> tuple[tuple[SignalBlock, int], IncidentRow | None]:  # fmt: skip
        """Store a signal's new detector; returns its place, and the closed incident with this number."""
        now, closed = time.time_ns(), None
        new.block.fleet.forget_incidents(new.place)  # the next alarm starts a new one
        state = state_of(new)
        # Take the place before anything is stored: a stored detector without room would fail again at every start.
        with (
            self._state.placed(new.row, arrays_from_bytes(state)) as place,
            self._state.store.transaction() as writer,
        ):
            store_settings(writer, new.row)
            writer.put_state(new.row.id, new.last_time, now, state)
            if change is not None:
                change(writer)
            if number is not None and (going_on := writer.incident(number)) is not None:
                close_incident(writer, self._state.events, signal, going_on, ended, now)
                closed = writer.incident(number)
        return place, closed


def store_settings(writer: StoreWriter, row: SignalRow) -> None:
    """Store the fields of a signal that can change."""
    writer.change_signal(
        row.id,
        settings=row.settings,
        silent_after=row.silent_after,
        unit=row.unit,
        template=row.template,
        rules=row.rules,
    )


P = ParamSpec("P")
T = TypeVar("T")

#: Runs a function on the engine's thread, between two turns.
Ask = Callable[[Callable[[], Any]], "Future[Any]"]


class Changes:
    """Changes of one kind. Methods with `on_engine_thread` may be called from any thread."""

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)


C = TypeVar("C", bound=Changes)


def on_engine_thread(method: Callable[Concatenate[C, P], T]) -> Callable[Concatenate[C, P], "Future[T]"]:
    """Make a method run on the engine's thread; the call returns a future at once."""

    @wraps(method)
    def ask(self: C, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        return self._ask(carried(partial(method, self, *args, **kwargs)))

    return ask

"""What the engine does now and then: it watches the clock, notices silence, stores states, removes what is old."""

import logging
import time
from collections.abc import Callable, Sequence
from itertools import islice

from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.inbox import forget_requests
from tocsin_monitor.engine.incidents import put_incident, silence_facts
from tocsin_monitor.engine.signals import STATES_AT_ONCE, MonitoredSignal, save_states
from tocsin_monitor.engine.stages import in_maintenance

log = logging.getLogger("tocsin.engine")

# The system's clock is moved a little all the time. What is more than this many seconds is a jump.
JUMP = 5.0
# The silences stored in one turn, about a second of work: a gateway may have thousands of signals.
SILENCES_AT_ONCE = 200
# When the monitor stops, states with fewer observations behind are left: to take those again is quicker.
WORTH_SAVING = 100


class SystemClock:
    """Notices jumps of the system's clock, beside one that never jumps."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._between = wall() - steady()
        #: When it last jumped, and by how many seconds.
        self.jumped: tuple[int, float] | None = None

    def jump(self) -> float:
        """By how many seconds the clock has jumped since the last look; 0 for none."""
        between = self._wall() - self._steady()
        jump, self._between = between - self._between, between
        if abs(jump) < JUMP:
            return 0.0
        self.jumped = (round(self._wall() * 1e9), jump)
        return jump


class Upkeep:
    """The chores of the engine's thread, each short enough to be done between two turns."""

    def __init__(self, state: EngineState, clock: SystemClock) -> None:
        self._state, self._clock = state, clock

    def notice_jump(self) -> None:
        """Log a jump of the system's clock; how long ago observations came is counted on."""
        state, jump = self._state, self._clock.jump()
        if jump:
            hint = "" if jump > 0 else ": signals may be ahead of it"
            log.warning("the system's clock jumped by %.1f s%s", jump, hint)
            state.metrics.clock_jumps.inc()
            with state.lock:
                for signal in state.signals.values():
                    signal.zero_since = time.time_ns()
                    if signal.last_arrival is not None:
                        signal.last_arrival += round(jump * 1e9)
        now = time.time_ns()
        state.metrics.signals_ahead.set(sum((signal.last_time or 0) > now for signal in state.signals.values()))

    def save_due_states(self, least: int = STATES_AT_ONCE) -> None:
        """Store the states that are due, a few of them, those first that have waited longest.

        Fewer than `least` wait for others: one by one, each would cost a transaction.
        """
        if len(self._state.due) >= least:
            self._save(sorted(self._state.due, key=lambda one: (-one.unsaved, one.row.id))[:STATES_AT_ONCE])

    def save_all_states(self, until: float) -> None:
        """Store as many states as can be until a moment of the monotonic clock, so that the next start is quick."""
        left = [signal for signal in self._state.signals.values() if signal.unsaved >= WORTH_SAVING]
        left.sort(key=lambda signal: -signal.unsaved)
        while left and time.monotonic() < until:
            self._save(left[:STATES_AT_ONCE])
            left = left[STATES_AT_ONCE:]

    def _save(self, signals: Sequence[MonitoredSignal]) -> None:
        with self._state.metrics.snapshot_seconds.time():
            save_states(self._state.store, signals)
        self._state.due.difference_update(signals)

    def notice_silence(self) -> bool:
        """Open an incident for each signal that has stopped sending, a number of them; true if there are more."""
        now = time.time_ns()
        overdue = (
            (signal, silence_facts(signal, signal.last_time, now))
            for signal in self._state.signals.values()
            if signal.last_time is not None
            and signal.is_overdue(now)
            and not in_maintenance(self._state.windows, signal.name, now)
        )
        silent = list(islice(overdue, SILENCES_AT_ONCE))
        if not silent:
            return False
        with self._state.store.transaction() as writer:
            numbers = [put_incident(writer, self._state.events, signal, facts, now) for signal, facts in silent]
            rows = [writer.incident(number) for number in numbers]
        changed = [(signal, row) for (signal, _), row in zip(silent, rows, strict=True) if row is not None]
        self._state.note({}, changed, now)
        self._state.tell(changed)
        return len(silent) == SILENCES_AT_ONCE

    def prune(self) -> bool:
        """Remove a piece of what is older than it is kept; true if there is more to remove."""
        now, storage = time.time_ns(), self._state.settings.storage
        before = now - round(storage.keep_observations * 1e9)
        more = self._save_held_back(before)
        with self._state.store.transaction() as writer:
            pruned = writer.prune(
                observations_before=before,
                incidents_before=now - round(storage.keep_incidents * 1e9),
                # What is to be judged yet is not removed before.
                keep_after={
                    number: time
                    for number, time in writer.states_times().items()
                    if number not in self._state.pending_imports
                },
            )
            forget_requests(writer, now)
        return pruned.more or more

    def _save_held_back(self, before: int) -> bool:
        """Store states without which nothing of a signal could be removed, some of them; true if there are more.

        A signal that sends rarely, or no more, would otherwise keep all that is not in a state for ever.
        """
        old = [
            signal
            for signal in self._state.signals.values()
            if signal.unsaved and min(signal.row.created, signal.last_time or signal.row.created) < before
        ]
        if not old:
            return False
        with self._state.store.reading() as reader:
            times = reader.states_times()
        held = [signal for signal in old if (time := times.get(signal.row.id)) is None or time < before]
        if held:
            self._save(held[:STATES_AT_ONCE])
        return len(held) > STATES_AT_ONCE

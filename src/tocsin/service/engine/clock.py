"""Clocks that were wrong: those of senders, and the system's own."""

import logging
import time
from collections.abc import Callable

from tocsin.service.as_json import time_text
from tocsin.service.engine.core import Core
from tocsin.service.engine.rebuilding import alone, rebuild
from tocsin.service.engine.status import SignalStatus
from tocsin.service.errors import RefusedError

log = logging.getLogger("tocsin.engine")

# The system's clock is moved a little all the time. What is more than this many seconds is a jump.
JUMP = 5.0


def set_clock(core: Core, name: str, to: int) -> SignalStatus:
    """Take a signal's observations after a time out, since the clock that they were told by was ahead.

    They are listed as refused, and its detector learns anew from those before: what comes from now on is new again.
    """
    signal = core.signal(name)
    now = time.time_ns()
    if to > now:
        raise RefusedError(f"to must not be ahead of the clock, got {time_text(to)} at {time_text(now)}")
    if signal.reference is not None and signal.reference.end > to:
        raise RefusedError(f"the reference of {name!r} ends after {time_text(to)}: remove it first")
    with core.store.transaction() as writer:
        # Without its state it is rebuilt from its observations, should this be interrupted.
        taken = writer.take_out(signal.row, to, "the clock was ahead, and has been set right", now)
        writer.remove_state(signal.row.id)
    with core.lock:
        signal.forget_newest(to)
    rebuild(core, signal, alone(core, signal.row, signal.reference))
    log.warning("the clock of %r is set to %s, %d observations after that are refused", name, time_text(to), taken)
    core.hub.publish("signal", {"name": name, "change": "clock"})
    return core.status(name)


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


def notice_jump(core: Core, clock: SystemClock) -> None:
    """Log a jump of the system's clock; how long ago observations came is counted on."""
    jump = clock.jump()
    if jump:
        log.warning("the system's clock jumped by %.1f s%s", jump, "" if jump > 0 else ": signals may be ahead of it")
        core.metrics.clock_jumps.inc()
        with core.lock:
            for signal in core.signals.values():
                if signal.last_arrival is not None:
                    signal.last_arrival += round(jump * 1e9)
    now = time.time_ns()
    core.metrics.signals_ahead.set(sum(signal.is_ahead(now) for signal in core.signals.values()))

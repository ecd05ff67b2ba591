"""A monitor that lives by the time of its data: weeks pass as quickly as they can be sent.

    python benchmarks/data_clock.py FILE serve --config tocsin.toml

This runs `tocsin` with the system's time (`time.time`, `time.time_ns`) taken from a file, in which another process puts
it (`DataClock`). Whatever the monitor does by the time of day, it does by that one: silence, the hold of messages, the
age of what is told, what is kept. Three things would not fit then, and are changed: the clock does not count as one
that jumps, and what waits for real seconds to look again (chores, messages that are due) looks more often. Timeouts and
retries go by a clock that only measures lengths (`time.monotonic`), and stay.
"""

import sys
import time
from pathlib import Path

import numpy as np

# Real seconds. A monitor does its chores each second; here, some minutes pass meanwhile.
LOOK_EVERY = 0.05


class DataClock:
    """A time in nanoseconds since 1970, in a file that processes share."""

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.exists():
            file.write_bytes(bytes(8))
        self._now = np.memmap(file, dtype=np.int64, mode="r+", shape=(1,))

    def now(self) -> int:
        return int(self._now[0])

    def set(self, now: int) -> None:
        self._now[0] = now


def main() -> None:
    clock = DataClock(Path(sys.argv.pop(1)))
    time.time_ns = clock.now
    time.time = lambda: clock.now() / 1e9
    # Only now, since these may remember what tells the time.
    from tocsin.cli import app
    from tocsin_monitor.engine import engine
    from tocsin_monitor.engine.upkeep import SystemClock
    from tocsin_monitor.sinks.outbox import Outbox

    SystemClock.jump = lambda self: 0.0
    engine.CHORES_EVERY = LOOK_EVERY
    Outbox.__init__.__kwdefaults__["poll"] = LOOK_EVERY
    app(prog_name="tocsin")


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of the benchmarks, whose names are those of other packages
    main()

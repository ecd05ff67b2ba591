"""Times for what comes without one."""

import time


class Stamps:
    """The time now, never the same twice: what comes without a time is told apart by that of its arrival."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Nanoseconds since 1970."""
        self._last = max(time.time_ns(), self._last + 1)
        return self._last

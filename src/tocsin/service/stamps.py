"""Times for messages that have none."""

import time


class Stamps:
    """The current time, never the same twice, so that messages without a time stay distinct."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Nanoseconds since 1970."""
        self._last = max(time.time_ns(), self._last + 1)
        return self._last

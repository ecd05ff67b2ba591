"""The log, with a limit on repeated lines."""

import logging
import time
from collections.abc import Callable

WINDOW = 60.0  # seconds


class RepeatLimit(logging.Filter):
    """Limits the lines per minute from each place in the program; the next line says how many were left out."""

    def __init__(self, most: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._clock = most, clock
        self._seen: dict[tuple[str, int], tuple[float, int, int]] = {}  # since when, how many passed, how many did not

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        since, seen, left_out = self._seen.get((record.pathname, record.lineno), (now, 0, 0))
        if now - since >= WINDOW:
            if left_out:
                record.msg, record.args = f"{record.getMessage()} (and {left_out} more like it left out)", ()
            since, seen, left_out = now, 0, 0
        passes = seen < self._most
        self._seen[record.pathname, record.lineno] = (since, seen + passes, left_out + (not passes))
        return passes


def start_logging(level: str) -> None:
    """Log to standard error."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatLimit())
    if level == "info":
        # The monitor logs its own start and stop, so those of the server are not needed.
        logging.getLogger("uvicorn").setLevel("WARNING")

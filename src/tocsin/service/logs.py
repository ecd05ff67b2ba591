"""The log, which nobody can flood."""

import logging
import time
from collections.abc import Callable

WINDOW = 60.0  # seconds


class Sparing(logging.Filter):
    """Lets through so many lines a minute from each place in the program; the next one tells how many were left out."""

    def __init__(self, most: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._clock = most, clock
        self._seen: dict[tuple[str, int], tuple[float, int, int]] = {}  # since when, how many, how many not

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
        handler.addFilter(Sparing())
    if level == "info":
        # What the server says of its own start and end is no news beside what the monitor says.
        logging.getLogger("uvicorn").setLevel("WARNING")

"""How much a trial may do, and how far it is."""

import threading
import time
from typing import Literal

# After this many seconds, a trial ends and says how far it came.
MOST_SECONDS = 120.0

TrialStage = Literal["running", "done", "cancelled", "failed"]


class Limits:
    """How much a trial may still do, be it of one signal or of many: observations, seconds, until it is stopped."""

    def __init__(self, rows: int, seconds: float) -> None:
        self.rows, self._end = rows, time.monotonic() + seconds
        self.stop = threading.Event()

    @property
    def reached(self) -> bool:
        """Whether it may do no more."""
        return self.rows <= 0 or time.monotonic() >= self._end or self.stop.is_set()

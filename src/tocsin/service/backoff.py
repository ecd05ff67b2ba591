"""How long to wait before another try."""

import random

LONGEST = 300.0  # seconds


def delay_after(failures: int, least: float = 1.0, most: float = LONGEST) -> float:
    """Seconds to wait after so many failures in a row: doubling, and spread so that not all come back at once."""
    whole = min(most, least * 2.0 ** min(max(failures, 1) - 1, 60))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 nothing secret about it


class Backoff:
    """Counts failures in a row and says how long to wait."""

    def __init__(self, least: float = 1.0, most: float = LONGEST) -> None:
        self._least, self._most = least, most
        self._failures = 0

    def failed(self) -> float:
        """Note a failure: seconds to wait now."""
        self._failures += 1
        return delay_after(self._failures, self._least, self._most)

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self._failures = 0

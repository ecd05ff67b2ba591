"""How long to wait before a retry."""

import random

LONGEST = 300.0  # seconds


def delay_after(failures: int, least: float = 1.0, most: float = LONGEST) -> float:
    """Seconds to wait after this many failures in a row: doubling, and random, so that not all retry at once."""
    whole = min(most, least * 2.0 ** min(max(failures, 1) - 1, 60))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 not a secret


class Backoff:
    """Counts failures in a row and computes how long to wait."""

    def __init__(self, least: float = 1.0, most: float = LONGEST) -> None:
        self._least, self._most = least, most
        self._failures = 0

    def failed(self) -> float:
        """Count a failure; returns the seconds to wait."""
        self._failures += 1
        return delay_after(self._failures, self._least, self._most)

    def succeeded(self) -> None:
        """Count from zero again."""
        self._failures = 0

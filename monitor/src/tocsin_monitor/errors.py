"""The errors of the monitor, their text, and how long to wait before a retry."""

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settings_at(path: str) -> Iterator[None]:
    """Prefix a ValueError with the path of the setting."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


class MonitorError(Exception):
    """Something that the monitor refuses or cannot do now; the message is for the caller."""


class OverloadedError(MonitorError):
    """The queue is full: try again after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the monitor's backlog is full: try again in {retry_after:.0f} s")
        self.retry_after = retry_after


class NotReadyError(MonitorError):
    """The monitor is starting or waiting for its store."""


class UnknownError(MonitorError):
    """There is no such signal, incident, window or token."""


class RefusedError(MonitorError):
    """The request cannot be fulfilled; the message says what is accepted."""


class StoreError(MonitorError):
    """The store cannot be opened, or failed; assume that the write did not succeed."""


class OwnedError(StoreError):
    """Another monitor uses the store."""


class UnfitError(StoreError):
    """The store rejects the data permanently: a retry will not help."""


class DamagedError(StoreError):
    """The store can be read only in part."""


def error_text(error: Exception) -> str:
    """The message of the monitor's own errors; for others, the type too, since it says as much as the message."""
    return str(error) if isinstance(error, MonitorError) else f"{type(error).__name__}: {error}"


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Refuse what a detector cannot do, whatever it raises, so that only who asked for it is told.

    Nothing may have changed by then. A lack of memory is nobody's fault.
    """
    try:
        yield
    except (MonitorError, MemoryError):
        raise
    except Exception as error:
        raise RefusedError(f"{what}: {error}") from error


LONGEST = 300.0  # seconds


def delay_after(failures: int, most: float = LONGEST) -> float:
    """Seconds to wait after this many failures in a row: doubling, and random, so that not all retry at once."""
    whole = min(most, 2.0 ** min(max(failures, 1) - 1, 60))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 not a secret


class Backoff:
    """Counts failures in a row and computes how long to wait."""

    def __init__(self, most: float = LONGEST) -> None:
        self._most = most
        self._failures = 0

    def failed(self) -> float:
        """Count a failure; returns the seconds to wait."""
        self._failures += 1
        return delay_after(self._failures, self._most)

    def succeeded(self) -> None:
        self._failures = 0

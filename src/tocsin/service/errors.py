"""What the monitor says when it cannot do what it is asked."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settings_at(path: str) -> Iterator[None]:
    """Have a ValueError say which of the settings it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


class MonitorError(Exception):
    """Something that the monitor refuses or cannot do now; the text is for who asked."""


class OverloadedError(MonitorError):
    """The queue is full: try again after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the monitor has as much waiting as it takes: try again in {retry_after:.0f} s")
        self.retry_after = retry_after


class NotReadyError(MonitorError):
    """The monitor is starting, or waits for its store."""


class UnknownError(MonitorError):
    """There is no such signal, incident, window or token."""


class RefusedError(MonitorError):
    """What was asked for cannot be done; the text says what is accepted."""


class StoreError(MonitorError):
    """The store cannot be opened, or failed; what it was asked to write is not in it as far as one can tell."""


class UnfitError(StoreError):
    """The store refuses what it was given, and always will: it is no use to try again."""


class DamagedError(StoreError):
    """What the store has can be read in part only."""

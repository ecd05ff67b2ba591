"""The errors of the monitor."""

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

"""The access log of who changed what: an action goes from a request to its transaction, and is stored with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

#: Longer details are cut off.
LONGEST_DETAILS = 500


@dataclass
class AccessEntry:
    """An action of a user. `who` is the name of a token; `details` may still grow. It is stored once."""

    who: str
    action: str
    target: str
    details: str = ""
    stored: bool = False


_now: ContextVar[AccessEntry | None] = ContextVar("access_entry", default=None)


def pending_entry() -> AccessEntry | None:
    """The current action, unless it is already stored."""
    entry = _now.get()
    return None if entry is None or entry.stored else entry


@contextmanager
def recording(entry: AccessEntry | None) -> Iterator[None]:
    """Make the next transaction in the block store this action."""
    token = _now.set(entry)
    try:
        yield
    finally:
        _now.reset(token)


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """The call with the current action, so that it can run on another thread."""
    entry = pending_entry()
    if entry is None:
        return call

    def calling() -> T:
        with recording(entry):
            return call()

    return calling

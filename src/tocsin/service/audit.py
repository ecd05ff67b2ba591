"""The audit trail: an action is passed from a request to its transaction, and stored with it or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

#: Longer details are cut off.
LONGEST_DETAILS = 500


@dataclass
class AuditEntry:
    """An action of a user. `who` is the name of a token; `details` may still grow. It is stored once."""

    who: str
    action: str
    target: str
    details: str = ""
    stored: bool = False


_now: ContextVar[AuditEntry | None] = ContextVar("audit_entry", default=None)


def pending_entry() -> AuditEntry | None:
    """The current action, unless it is already stored."""
    entry = _now.get()
    return None if entry is None or entry.stored else entry


@contextmanager
def auditing(entry: AuditEntry | None) -> Iterator[None]:
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
        with auditing(entry):
            return call()

    return calling

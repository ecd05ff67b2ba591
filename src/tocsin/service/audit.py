"""Who did what: a deed is carried from a request to the transaction that does it, and stored with it or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

#: Of longer details only the beginning is kept.
LONGEST_DETAILS = 500


@dataclass
class Deed:
    """What somebody does: `who` is the name of a token, `details` may still be read. It is stored once."""

    who: str
    action: str
    target: str
    details: str = ""
    stored: bool = False


_now: ContextVar[Deed | None] = ContextVar("deed", default=None)


def deed_now() -> Deed | None:
    """What is being done here, as long as it is not stored."""
    deed = _now.get()
    return None if deed is None or deed.stored else deed


@contextmanager
def doing(deed: Deed | None) -> Iterator[None]:
    """Have the next transaction in here store this deed."""
    token = _now.set(deed)
    try:
        yield
    finally:
        _now.reset(token)


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """The call, to be made on another thread, that still does what is being done here."""
    deed = deed_now()
    if deed is None:
        return call

    def calling() -> T:
        with doing(deed):
            return call()

    return calling

"""What a check found."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it."""

    check: str
    state: State
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """All is well."""
    return Finding(check, State.OK, message)


def warning(check: str, message: str, advice: str) -> Finding:
    """It works, but not for ever, or not as well as it could."""
    return Finding(check, State.WARNING, message, advice)


def failed(check: str, message: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(check, State.FAILED, message, advice)

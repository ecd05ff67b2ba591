"""Which attacks there are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tests.service.attacks.ground import Ground

F = TypeVar("F", bound=Callable[[Ground], None])


@dataclass(frozen=True)
class Attack:
    """One attack. It is held off if the function returns: what it finds amiss it raises."""

    name: str
    run: Callable[[Ground], None]
    #: The configuration of the monitor that it is tried on.
    config: str
    #: Whether it is quick enough for the suite.
    short: bool
    #: Whether the monitor's store is a real PostgreSQL.
    postgresql: bool
    #: Whether the monitor has an administrator's token, which the ground sends with every request.
    tokens: bool
    #: How many files the monitor may have open; None for as many as it likes.
    files: int | None


ATTACKS: dict[str, Attack] = {}


def attack(
    *, config: str = "", short: bool = True, postgresql: bool = False, tokens: bool = False, files: int | None = None
) -> Callable[[F], F]:
    """Register a function as an attack, by its name."""

    def register(function: F) -> F:
        name = function.__name__.replace("_", " ")
        ATTACKS[name] = Attack(name, function, config, short, postgresql, tokens, files)
        return function

    return register

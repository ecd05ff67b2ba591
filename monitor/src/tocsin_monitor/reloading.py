"""Which settings change while the monitor runs, when its file is read again; all others need a restart."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tocsin_monitor.config import Settings
from tocsin_monitor.config.section import Section
from tocsin_monitor.fields import Shown

#: What is looked up each time it is needed. All else was given to a part of the monitor when it was made.
LIVE = ("log_level", "detector", "templates", "depends")
LIVE_IN = {
    "engine": ("auto_create", "future_tolerance", "max_signals"),
    "storage": ("keep_incidents", "keep_observations"),
}


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Which settings changed, and which of the file's are not in force before a restart."""

    changed: Annotated[tuple[str, ...], Shown("The settings that changed.")]
    needs_restart: Annotated[tuple[str, ...], Shown("Settings of the file that are not in force before a restart.")]


def reloaded(now: Settings, new: Settings) -> tuple[Settings, Reloaded]:
    """The settings with what can change while the monitor runs, and what became of the differences."""
    parts = {name: getattr(new, name) for name in LIVE}
    for name, inner in LIVE_IN.items():
        parts[name] = getattr(now, name).model_copy(update={one: getattr(getattr(new, name), one) for one in inner})
    in_force = now.model_copy(update=parts)
    return in_force, Reloaded(tuple(_different(now, in_force)), tuple(_different(in_force, new)))


def _different(one: Section, other: Section, path: str = "") -> Iterator[str]:
    for name in type(one).model_fields:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, Section):
            yield from _different(mine, theirs, f"{path}{name}.")
        elif mine != theirs:
            yield path + name

"""The properties of each setting, read from its declaration."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic.functional_validators import BeforeValidator

from tocsin.service.config.section import DURATION, OF_FILE, Section


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One setting. `part` is the type of a section, or of each entry of a list of sections."""

    name: str
    field: FieldInfo
    part: type[Section] | None
    several: bool
    secret: bool
    duration: bool


def settings_of(part: type[Section]) -> Iterator[ConfigField]:
    """The settings of one part."""
    for name, field in part.model_fields.items():
        types = [field.annotation, *get_args(field.annotation)]
        parts = [one for one in types if isinstance(one, type) and issubclass(one, Section)]
        yield ConfigField(
            name=name,
            field=field,
            part=parts[0] if parts else None,
            several=bool(parts) and any(get_origin(one) is tuple for one in types),
            secret=_has(field, OF_FILE) or SecretStr in types,
            duration=_has(field, DURATION),
        )


def every_setting(part: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], ConfigField]]:
    """All settings that are not sections, with their paths; a list's entries have `[]` after its name."""
    for setting in settings_of(part):
        if setting.part is None:
            yield (*path, setting.name), setting
        else:
            yield from every_setting(setting.part, (*path, setting.name + ("[]" if setting.several else "")))


def setting_at(part: type[Section], path: tuple[str | int, ...]) -> ConfigField | None:
    """The setting that a path leads to or into, such as ("server", "port"); None if there is none."""
    found: ConfigField | None = None
    for step in path:
        if isinstance(step, int):
            continue
        if found is not None:
            if found.part is None:
                return found  # into a table of any names
            part = found.part
        found = next((setting for setting in settings_of(part) if setting.name == step), None)
        if found is None:
            return None
    return found


def path_text(path: tuple[str | int, ...]) -> str:
    """A path as text: sources.mqtt[0].host."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _has(field: FieldInfo, marker: BeforeValidator) -> bool:
    def inside(annotation: Any) -> bool:
        return marker in getattr(annotation, "__metadata__", ()) or any(map(inside, get_args(annotation)))

    return marker in field.metadata or inside(field.annotation)

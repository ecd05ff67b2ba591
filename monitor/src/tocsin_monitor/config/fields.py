"""The properties of each setting, read from its declaration, and the secrets among their values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic.functional_validators import BeforeValidator

from tocsin_monitor.config.section import DURATION, OF_FILE, Section
from tocsin_monitor.secrecy import parts_of_url


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


# A user, or a part of a path, that is shorter is a word that may stand in any message.
_LONG = 12


def secrets_in(settings: Section) -> tuple[str, ...]:
    """All secrets, and those parts of secret addresses that must not be shown either."""
    return tuple(dict.fromkeys(part for text in _texts(settings) for part in _parts(text)))


def _texts(part: Section) -> Iterator[str]:
    for setting in settings_of(type(part)):
        value = getattr(part, setting.name)
        if setting.secret:
            yield from _told(value)
        else:
            for one in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(one, Section):
                    yield from _texts(one)


def _told(value: Any) -> Iterator[str]:
    """The texts of a secret, which may be a table of them."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _told(one)
    elif isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif value is not None:
        yield str(value)


def _parts(secret: str) -> Iterator[str]:
    """The secret; of an address only what could be a password: who reads a log has to know where it leads."""
    if "://" not in secret:
        yield secret
        return
    address = urlsplit(secret)
    plain = {address.username, address.path, *address.path.split("/")}
    for part in parts_of_url(secret):
        if part not in plain or len(part) >= _LONG:
            yield part

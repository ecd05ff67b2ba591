"""Settings as text: the effective ones, and an example with all of them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, get_origin

from pydantic_core import to_jsonable_python

from tocsin_monitor.config.fields import ConfigField, path_text, settings_of
from tocsin_monitor.config.loading import Layer, origin_of
from tocsin_monitor.config.section import Section
from tocsin_monitor.config.settings import Settings
from tocsin_monitor.secrecy import MASK, hide_in_url, shown_path

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

HEAD = """\
Settings of the monitor (tocsin serve --config FILE). Every setting is listed with its default, or with an example if it
has none; uncomment those you want to change. Environment variables override the file: server.port is
TOCSIN_SERVER__PORT, lists and tables are JSON. Durations are seconds or text such as "5min". Every secret may also be
given as {file = "/path"}, which is read when the monitor starts."""


def effective(settings: Settings, layers: Sequence[Layer]) -> list[tuple[str, str, str | None]]:
    """Every effective setting: its path, its value as TOML (secrets masked) and where it was set (None: default)."""
    return [(path_text(path), text, origin_of(layers, path)) for path, text in _leaves(settings, ())]


def example() -> str:
    """A TOML file with every setting and its description."""
    lines = [*_comment(HEAD), ""]
    lines += _section(Settings, "")
    return "\n".join(lines).rstrip("\n") + "\n"


def _leaves(part: Section, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for setting in settings_of(type(part)):
        value = getattr(part, setting.name)
        here = (*path, setting.name)
        if isinstance(value, Section):
            yield from _leaves(value, here)
        elif setting.several and value:
            for number, one in enumerate(value):
                yield from _leaves(one, (*here, number))
        elif isinstance(value, dict) and value:
            for name, one in value.items():
                yield (*here, name), as_toml(one, setting)
        elif setting.secret and value:
            yield here, json.dumps(MASK)
        else:
            yield here, as_toml(value, setting)


def _section(part: type[Section], path: str) -> Iterator[str]:
    """The settings of a part, then its sections: TOML requires this order."""
    settings = sorted(settings_of(part), key=lambda one: not one.field.is_required())
    sections = [one for one in settings if one.part or (not path and get_origin(one.field.annotation) is dict)]
    for setting in settings:
        if setting not in sections:
            yield from _comment(setting.field.description or "")
            yield f"#{setting.name} = {as_toml(_shown(setting), setting)}"
            yield ""
    for setting in sections:
        name = path + setting.name
        if setting.part and not setting.several and all(one.part for one in settings_of(setting.part)):
            yield from _section(setting.part, f"{name}.")  # a section with only subsections
            continue
        yield from _comment(setting.field.description or "")
        yield f"#[[{name}]]" if setting.several else f"[{name}]"
        if setting.part:
            yield from _section(setting.part, f"{name}.")
        else:
            yield from (f"#{key} = {as_toml(value, setting)}" for key, value in _shown(setting).items())
            yield ""


def _comment(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (f"# {line}" for line in wrap(paragraph, width=116))


def _shown(setting: ConfigField) -> Any:
    """The example, if there is one, because it says more than an empty list; else the default."""
    if setting.field.examples:
        return setting.field.examples[0]
    return setting.field.get_default(call_default_factory=True)


def as_toml(value: Any, setting: ConfigField) -> str:
    """A value of a setting as TOML, with secrets masked."""
    if isinstance(value, Path) and value != setting.field.default:
        value = shown_path(value)
    plain = to_jsonable_python(value)
    if isinstance(plain, dict):
        return "{" + ", ".join(f"{_key(name)} = {as_toml(one, setting)}" for name, one in plain.items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(as_toml(one, setting) for one in plain) + "]"
    if plain is None:
        return "none"
    if setting.duration and isinstance(plain, float):
        plain = _duration(plain)
    return json.dumps(hide_in_url(plain) if isinstance(plain, str) else plain, ensure_ascii=False)


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name)


def _duration(seconds: float) -> str:
    """A duration in the largest unit that gives a whole number."""
    unit, length = next(((unit, length) for unit, length in UNITS if seconds % length == 0), UNITS[-1])
    return f"{seconds / length:.15g}{unit}"

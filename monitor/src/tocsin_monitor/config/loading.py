"""Settings from a TOML file, overridden by environment variables, overridden by options.

Each of these is a layer. Layers keep the origin of every value, which error messages name.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from tocsin_monitor.config.fields import every_setting, path_text, setting_at, settings_of
from tocsin_monitor.config.settings import Settings
from tocsin_monitor.secrecy import hide_in_url, shown_path

PREFIX = "TOCSIN_"
DELIMITER = "__"


@dataclass(frozen=True)
class Layer:
    """Settings from one place: a file, a variable or an option."""

    origin: str
    tree: Mapping[str, Any]


class _InVariables(Settings, BaseSettings):
    """The settings as `EnvSettingsSource` needs them."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
    # For a plain dict, pydantic-settings parses the text as JSON if it can, so a number stays a number.
    detector: dict = Field(default_factory=dict)  # type: ignore[type-arg]


def _override(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    both = {name for name in above if isinstance(above[name], Mapping) and isinstance(below.get(name), Mapping)}
    return {**below, **above, **{name: _override(below[name], above[name]) for name in both}}


def origin_of(layers: Sequence[Layer], path: Sequence[str | int]) -> str | None:
    """Where the value at a path was set; None if nowhere."""
    return next((layer.origin for layer in reversed(layers) if _holds(layer.tree, path)), None)


def _holds(tree: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        try:
            tree = tree[step]
        except (IndexError, KeyError, TypeError):
            return False
    return True


class ConfigError(ValueError):
    """Invalid settings; `problems` has one line per reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Loaded:
    """Settings, their layers (later ones override), and warnings about likely mistakes."""

    settings: Settings
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]


def read_settings(
    file: Path | None = None,
    options: Sequence[Layer] = (),
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """The settings of a TOML file (or the defaults), then variables, then options; ConfigError lists all errors."""
    variables = {
        name: text
        for name, text in (os.environ if environment is None else environment).items()
        if name.upper().startswith(PREFIX)
    }
    layers, problems = _from_variables(variables)
    if file is not None:
        layers = [_from_file(file), *layers]
    layers = [*layers, *options]
    nothing: Mapping[str, Any] = {}
    try:
        settings = Settings.model_validate(reduce(_override, (layer.tree for layer in layers), nothing))
    except ValidationError as error:
        raise ConfigError([*problems, *explain(error, layers)]) from None
    if problems:
        raise ConfigError(problems)
    return Loaded(settings, tuple(layers), (*_misspelt(variables), *_missing_files(settings)))


def variable_of(path: Sequence[str]) -> str:
    """The environment variable for a setting."""
    return PREFIX + DELIMITER.join(path).upper()


def _from_file(file: Path) -> Layer:
    # The source in pydantic-settings silently skips missing files and pipes.
    try:
        return Layer(str(file), tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file} is not valid TOML: {error}"]) from error
    except OSError as error:
        raise ConfigError([f"{file} cannot be read: {error.strerror or error}"]) from error


def _from_variables(variables: Mapping[str, str]) -> tuple[list[Layer], list[str]]:
    """One layer per variable, the more specific ones last, and errors about the other variables."""
    layers, problems = [], []
    for name, text in sorted(variables.items(), key=lambda item: (item[0].count(DELIMITER), item[0])):
        path = tuple(name[len(PREFIX) :].lower().split(DELIMITER))
        source = EnvSettingsSource(_InVariables)
        source.env_vars = {name.lower(): text}
        try:
            layer = Layer(name, source())
        except SettingsError:
            problems.append(f'{name} must be JSON, such as ["one", "two"] for a list')
            continue
        if layer.tree and setting_at(Settings, path) is not None:
            layers.append(layer)
        elif len(path) > 1:
            problems.append(f"{name}: there is no such setting{_nearest(name)}")
    return layers, problems


def _misspelt(variables: Mapping[str, str]) -> list[str]:
    """Warnings about unused variables whose names resemble a setting."""
    # They are not errors: they may have another purpose, such as a container's links to other services.
    sections = [variable_of([name]) for name in Settings.model_fields]
    return [
        f"{name} is not a setting and is ignored{_nearest(name)}"
        for name in variables
        if DELIMITER not in name
        and name.upper() not in sections
        and (name.upper().startswith(tuple(sections)) or get_close_matches(name.upper(), sections, cutoff=0.85))
    ]


def _missing_files(settings: Settings) -> list[str]:
    """Warnings about files that do not exist. They may be created before they are needed."""
    places = [
        ("server", settings.server),
        *((f"sources.{place}", one) for place, one in settings.sources.each()),
        *((f"sinks.{place}", one) for place, one in settings.sinks.each()),
    ]
    given = {f"{place}.{name}": value for place, part in places for name, value in part}
    return [
        f"{path}: {shown_path(file)} does not exist"
        for path, file in given.items()
        if isinstance(file, Path) and not file.exists()
    ]


def _nearest(name: str) -> str:
    known = [variable_of(path) for path, _ in every_setting(Settings) if not any("[]" in step for step in path)]
    near = get_close_matches(name.upper(), known, n=1, cutoff=0.7)
    return f": did you mean {near[0]}?" if near else ""


# What pydantic names by the Python type, in TOML's words.
_IN_TOML = {"dict_type": "must be a table", "model_type": "must be a table", "tuple_type": "must be a list"}


def explain(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """One line per error: the setting, what it accepts, its value and where it was set. Secrets are left out."""
    lines = []
    for one in error.errors(include_url=False, include_context=False):
        path = one["loc"]
        origin = origin_of(layers, path) if path else None
        text = _message(one["type"], one["msg"], path, one["input"])
        lines.append((f"{path_text(path)}: " if path else "") + text + (f" ({origin})" if origin else ""))
    return lines


def _message(kind: str, message: str, path: tuple[str | int, ...], given: Any) -> str:
    if kind == "extra_forbidden":
        return _unknown(path)
    setting = setting_at(Settings, path)
    text = _IN_TOML.get(kind) or re.sub(r"^(Input|String|Tuple) should", "must", message.removeprefix("Value error, "))
    if kind == "tuple_type" and setting is not None and setting.part is not None:
        text = f"must be a list of tables: in TOML, [[{path_text(path)}]]"
    # What is unknown, secret or a section may be a secret or contain one.
    may_be_shown = setting is not None and not setting.secret and setting.part is None
    if may_be_shown and isinstance(given, (str, int, float, bool)) and ", got " not in text:
        text += f", got {given!r}"
    return hide_in_url(text)


def _unknown(path: tuple[str | int, ...]) -> str:
    """Suggest a setting. The message leaves out the value, which may belong to a misspelt secret."""
    around = setting_at(Settings, path[:-1])
    known = [setting.name for setting in settings_of(around.part if around and around.part else Settings)]
    near = get_close_matches(str(path[-1]), known, n=1)
    return "there is no such setting" + (
        f": did you mean {near[0]}?" if near else f"; known settings: {', '.join(known)}"
    )

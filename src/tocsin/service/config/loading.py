"""Settings from a TOML file, overridden by environment variables, overridden by options."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import SettingsError

from tocsin.service.config.explaining import explain
from tocsin.service.config.fields import every_setting, setting_at
from tocsin.service.config.layers import DELIMITER, PREFIX, Layer, layer_of_variable, merge
from tocsin.service.config.settings import Settings


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
    try:
        settings = merge(layers)
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
        try:
            layer = layer_of_variable(name, text)
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
        f"{path}: {file} does not exist" for path, file in given.items() if isinstance(file, Path) and not file.exists()
    ]


def _nearest(name: str) -> str:
    known = [variable_of(path) for path, _ in every_setting(Settings) if not any("[]" in step for step in path)]
    near = get_close_matches(name.upper(), known, n=1, cutoff=0.7)
    return f": did you mean {near[0]}?" if near else ""

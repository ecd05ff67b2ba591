"""Settings as they were given, one layer above another; `pydantic-settings` reads variables and merges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tocsin.service.config.settings import Settings

PREFIX = "TOCSIN_"
DELIMITER = "__"


@dataclass(frozen=True)
class Layer:
    """Settings that came from one place: a file, a variable or an option."""

    origin: str
    tree: Mapping[str, Any]


class _Reading(Settings, BaseSettings):
    """The settings while they are read; `Settings` themselves read nothing, wherever they are made."""

    model_config = SettingsConfigDict(case_sensitive=True)  # in files; variables may be written either way
    # Only in a table whose values have no type is a variable read as JSON where it can be, so that a number is one.
    detector: dict = Field(default_factory=dict)  # type: ignore[type-arg]


def merged(layers: Sequence[Layer]) -> Settings:
    """The settings of all layers, the later above the earlier."""

    class Reading(_Reading):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: Any, **__: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return tuple(InitSettingsSource(settings_cls, dict(layer.tree)) for layer in reversed(layers))

    return Settings(**dict(Reading()))


def of_variable(name: str, text: str) -> Layer:
    """What one variable gives, apart from the others so that one can tell where a value is from."""
    source = EnvSettingsSource(_Reading, case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
    source.env_vars = {name.lower(): text}
    return Layer(name, source())


def origin_of(layers: Sequence[Layer], path: Sequence[str | int]) -> str | None:
    """Where the value at a path comes from; None if nobody gave it."""
    return next((layer.origin for layer in reversed(layers) if _holds(layer.tree, path)), None)


def _holds(tree: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        try:
            tree = tree[step]
        except (IndexError, KeyError, TypeError):
            return False
    return True

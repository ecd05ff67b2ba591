"""Settings as given, in layers that override each other; `pydantic-settings` reads variables and merges."""

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
    """Settings from one place: a file, a variable or an option."""

    origin: str
    tree: Mapping[str, Any]


class _Reading(Settings, BaseSettings):
    """The settings while they are read; `Settings` themselves read nothing."""

    model_config = SettingsConfigDict(case_sensitive=True)  # in files; variables may be written either way
    # Only in a table with untyped values is a variable read as JSON if possible, so that a number is a number.
    detector: dict = Field(default_factory=dict)  # type: ignore[type-arg]


def merged(layers: Sequence[Layer]) -> Settings:
    """The settings of all layers; later ones override earlier ones."""

    class Layered(_Reading):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: Any, **__: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return tuple(InitSettingsSource(settings_cls, dict(layer.tree)) for layer in reversed(layers))

    return Settings(**dict(Layered()))


def of_variable(name: str, text: str) -> Layer:
    """The setting in one variable, kept apart so that the origin of each value is known."""
    source = EnvSettingsSource(_Reading, case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
    source.env_vars = {name.lower(): text}
    return Layer(name, source())


def origin_of(layers: Sequence[Layer], path: Sequence[str | int]) -> str | None:
    """Where the value at a path comes from; None if it was not given."""
    return next((layer.origin for layer in reversed(layers) if _holds(layer.tree, path)), None)


def _holds(tree: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        try:
            tree = tree[step]
        except (IndexError, KeyError, TypeError):
            return False
    return True
